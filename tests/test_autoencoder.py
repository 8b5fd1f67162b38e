"""Matter on a grid, and an autoencoder of it that controllers observe."""

import copy
import pickle

import numpy as np
import pytest
import torch
from cases import SOLVERS, busy

import warpbots as wb
from warpbots.numerics import precision
from warpbots.observers import Autoencoder, Grid
from warpbots.observers.grid import GridFields

exact = pytest.mark.skipif(precision != "float64", reason="central differences need float64")


def simulation(dim: int = 2, worlds: int = 1) -> wb.Simulation:
    return wb.Simulation(busy(dim), SOLVERS["mpm"](1 / 8), 4e-3, 2, worlds=worlds)


def wobbling(sim: wb.Simulation, seed: int = 0):
    """A state in which points have moved and turn about the centre."""
    rng, rest = np.random.default_rng(seed), sim.state()
    x = rest.position + 0.02 * torch.as_tensor(rng.standard_normal(rest.position.shape)).to(rest.position)
    v = torch.as_tensor(rng.standard_normal(rest.position.shape)).to(rest.position)
    return sim.state(position=x, velocity=v)


@pytest.mark.parametrize("dim", [2, 3])
def test_mass_and_momentum_are_on_the_grid(dim):
    sim = simulation(dim, worlds=2)
    state, matter = wobbling(sim), sim.model.matter
    grid = GridFields(Grid(4, margin=3.0), sim)
    fields = grid(state)
    assert fields.shape == (2, 1 + dim, *grid.shape)
    mass = torch.as_tensor(matter.density * matter.volume).to(state.position)
    full = float(mass.sum() / matter.volume.sum()) * grid.spacing**dim
    length = float(np.subtract(*sim.scene.bodies[0].shape.bounds[::-1]).max())
    sums = full * fields.flatten(start_dim=2).sum(dim=2)
    torch.testing.assert_close(sums[:, 0], mass.sum().expand(2), rtol=1e-5, atol=0)
    torch.testing.assert_close(sums[:, 1:] * length, (mass @ state.velocity), rtol=1e-4, atol=1e-5)
    middles = [(torch.arange(n, dtype=fields.dtype) + 0.5 - 0.5 * n) * grid.spacing for n in grid.shape]
    first = [(fields[:, 0] * x).flatten(1).sum(1) for x in torch.meshgrid(*middles, indexing="ij")]
    torch.testing.assert_close(torch.stack(first), torch.zeros(dim, 2).to(fields), rtol=0, atol=1e-3 * grid.spacing)
    inner = grid(sim.state())[:, 0].max()
    assert 0.9 < inner < 1.3, "the cells in the middle of the robot are full"


def test_the_grid_moves_along_and_loses_sight_of_what_leaves_it():
    sim = simulation()
    state, grid = wobbling(sim), GridFields(Grid(4, margin=3.0), sim)
    moved = sim.state(position=state.position + torch.tensor([0.07, -0.03]).to(state.position), velocity=state.velocity)
    torch.testing.assert_close(grid(moved), grid(state), rtol=1e-4, atol=1e-4)
    rest = sim.state()
    stretched = (rest.position - rest.position.mean(1)) * torch.tensor([5.0, 1.0]).to(rest.position)
    seen = grid(sim.state(position=stretched + rest.position.mean(1)))[:, 0].sum()
    assert 0.3 < seen / grid(rest)[:, 0].sum() < 0.9


def test_as_an_observer_it_is_flat():
    sim = simulation(worlds=2)
    seen = Grid(4).bind(sim)(wobbling(sim))
    torch.testing.assert_close(seen, GridFields(Grid(4), sim)(wobbling(sim)).flatten(start_dim=1))
    assert wb.controllers.MLP(sim, Grid(4))(sim.state(), 0.0).shape == (2, sim.channels)


@exact
def test_gradients_through_the_grid_and_the_encoder_are_those_of_differences():
    sim = simulation()
    state = wobbling(sim)
    observe = Autoencoder(sim, 3, grid=Grid(4), channels=(4,)).bind(sim)

    def seen(x, v):
        return observe(sim.state(position=x, velocity=v))

    x, v = (t.clone().requires_grad_() for t in (state.position, state.velocity))
    torch.autograd.gradcheck(seen, (x, v), eps=1e-6, atol=1e-7, rtol=1e-5)


def test_the_divergence_is_that_from_a_normal_distribution():
    sim = simulation()
    coder = Autoencoder(sim, 3, grid=Grid(4), channels=(4,), beta=0.5)
    fields = coder.fields(wobbling(sim)).expand(4, -1, -1, -1)
    mean, log_variance = coder.encode(fields)
    normal = torch.distributions.Normal
    found = normal(mean, (0.5 * log_variance).exp())
    divergence = torch.distributions.kl_divergence(found, normal(0 * mean, 1 + 0 * mean)).sum(dim=1).mean()
    torch.manual_seed(0)
    loss = coder.loss(fields)
    torch.manual_seed(0)
    sample = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
    torch.testing.assert_close(loss, (coder.decode(sample) - fields).square().mean() + 0.5 * divergence)


def babble(sim: wb.Simulation, seed: int, steps: int = 24) -> torch.Tensor:
    """Fields along a motion under random controls."""
    coder = Autoencoder(sim, grid=Grid(4), channels=(8,))
    draw = torch.Generator().manual_seed(seed)
    control = torch.rand(sim.worlds, steps, sim.channels, generator=draw) * 2 - 1
    with torch.no_grad():
        return sim.rollout(control, steps, observe=coder.fields).observation


@pytest.mark.parametrize("dim", [2, 3])
def test_learned_ahead_it_knows_motions_that_it_has_not_seen(dim):
    """Decoded fields of another motion are nearer to its fields than the mean of the training fields."""
    sim = simulation(dim, worlds=2)
    seen, unseen = (babble(sim, seed).flatten(end_dim=1) for seed in (0, 1))
    torch.manual_seed(0)
    coder = Autoencoder(sim, 6, grid=Grid(4), channels=(8,), beta=1e-5)
    losses = coder.learn(seen, 400, lr=5e-3)
    assert np.mean(losses[-20:]) < 0.1 * losses[0]
    with torch.no_grad():
        error = (coder.decode(coder.encode(unseen)[0]) - unseen).square().mean()
    assert error < 0.35 * (seen.mean(dim=0) - unseen).square().mean()


def test_a_controller_learns_with_it_in_the_loop():
    """The policy by its loss, the autoencoder from the same rollouts; neither changes the other's weights."""
    sim = simulation()
    coder = Autoencoder(sim, 4, grid=Grid(4), channels=(8,), beta=1e-5)
    policy = wb.controllers.MLP(sim, coder, hidden=(16,))
    assert not {id(p) for p in coder.parameters()} & {id(p) for p in policy.parameters()}
    motions, learned = [], []

    def loss():
        motion = sim.rollout(policy, 12, observe=coder.fields)
        motions.append(motion.observation)
        return -100.0 * motion.final.velocity[..., 0].mean()

    def learn(history):
        learned.extend(coder.learn(motions[-1], 5, lr=5e-3))

    torch.manual_seed(0)
    history = wb.minimize(loss, policy, wb.methods.Torch(lr=3e-2), iterations=12, callback=learn, progress=False)
    assert history.loss[history.best] < history.loss[0] - 0.02 * abs(history.loss[0])
    assert np.mean(learned[-5:]) < 0.5 * learned[0]


def test_end_to_end_its_weights_are_unknowns():
    sim = simulation()
    coder = Autoencoder(sim, 4, grid=Grid(4), channels=(4,))
    policy = wb.controllers.MLP(sim, coder, hidden=(8,))
    before = [p.detach().clone() for p in coder.encoder.parameters()]
    loss = lambda: sim.rollout(policy, 4).final.velocity.square().mean()
    wb.minimize(loss, [policy, coder.encoder], wb.methods.Torch(lr=1e-2), iterations=2, progress=False)
    assert any(not torch.equal(p, q) for p, q in zip(coder.encoder.parameters(), before, strict=True))


def test_copies_observe_the_same():
    sim = simulation()
    coder = Autoencoder(sim, 4, grid=Grid(4), channels=(4,))
    policy, state = wb.controllers.MLP(sim, coder, hidden=(8,)), wobbling(sim)
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert torch.equal(other(state, 0.0), policy(state, 0.0))


def test_faults():
    sim = simulation()
    with pytest.raises(ValueError, match="Grid: cells must be at least 2 and margin at least 1, got 1"):
        Grid(1)
    with pytest.raises(ValueError, match="Autoencoder: latent and channels must be at least 1"):
        Autoencoder(sim, 0)
    with pytest.raises(ValueError, match="there is no region 'tail'"):
        Autoencoder(sim, grid=Grid(region="tail"))
    coder = Autoencoder(sim, grid=Grid(4), channels=(4,))
    with pytest.raises(ValueError, match=r"fields must have the shape \(\.\.\., 3, .*, got \(1, 2\)"):
        coder.learn(torch.zeros(1, 2))
    with pytest.raises(ValueError, match="iterations and batch must be at least 1"):
        coder.learn(babble(sim, 0, 2), 0)
    with pytest.raises(ValueError, match="it was made for a grid of 8, 8 cells, and that of .* has 8, 8, 8"):
        coder.bind(simulation(3))
