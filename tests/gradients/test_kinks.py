"""Gradients next to the kinks of the physics: right on both sides at a distance of 1e-3, finite on them.

Central differences with h = 1e-6, a thousandth of the distance; float64.
"""

import dataclasses

import pytest
import torch
from cases import CONTINUA, DIMENSIONS, EXPLICIT, block

from warpbots.scene import Cable, floor
from warpbots.simulation import Simulation

pytestmark = pytest.mark.verification

MU, DOWN = 0.5, 1.0
STEP = 1e-3


def sliding(solver: str, dim: int) -> Simulation:
    """A block that touches a floor, without gravity; one control interval is one step."""
    height = 0.25 if solver in CONTINUA else 0.2501  # masses on the surface do not touch it
    scene = block(dim, obstacles=(floor(height, dim, friction=MU),), gravity=(0.0,) * dim)
    return Simulation(scene, EXPLICIT[solver](1 / 16), dt=STEP)


def loss_of(sim: Simulation, weights: torch.Tensor):
    """Weighted sum of final velocities, as a function of initial velocities and of friction.

    Springs are without force, which would move what is next to a kink beyond it.
    """
    loose = {"stiffness": 1e-9 * sim.parameter("stiffness")} if "stiffness" in sim.parameters() else {}

    def loss(velocity, friction):
        state = sim.state(velocity=velocity)
        return (weights * sim.step(state, torch.zeros(0), friction=friction, **loose).velocity).sum()

    return loss


def inputs_at(sim: Simulation, ratio: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Everything moves along the floor at `ratio` times the speed at which friction just stops it.

    A stiff floor stops what falls, an elastic one pushes by the depth.
    """
    v = torch.zeros_like(sim.state().velocity)
    push = torch.full_like(v[..., 0], DOWN)
    if getattr(sim.solver, "contact_stiffness", 0.0) > 0.0:
        met = sim.state().position[..., -1] - sim.solver.scheme.c[0] * STEP * DOWN  # where the first stage is
        depth = (sim.scene.obstacles[0].shape.point[-1] - met).clamp(min=0.0)
        push = torch.as_tensor(sim.model.contact.numpy()) * depth * STEP / sim.parameter("mass")
        push = push * (1.0 + sim.solver.contact_damping * DOWN)
    v[..., 0], v[..., -1] = ratio * MU * push, -DOWN
    return v, torch.full((1, 1), MU, dtype=v.dtype)


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("side", ["sticks", "slips"])
@pytest.mark.parametrize("solver", EXPLICIT)
def test_friction(solver, side, dim):
    """Every node of the floor sticks for |v_t| = mu |v_n| (1 - 1e-3), and slips for (1 + 1e-3)."""
    sim = sliding(solver, dim)
    v, mu = inputs_at(sim, {"sticks": 1 - 1e-3, "slips": 1 + 1e-3}[side])
    loss = loss_of(sim, torch.randn_like(v))
    v_g, mu_g = torch.autograd.grad(loss(v.requires_grad_(), mu.requires_grad_()), [v, mu])
    with torch.no_grad():
        for _ in range(3):
            d = torch.randn_like(v)
            difference = float(loss(v + 1e-6 * d, mu) - loss(v - 1e-6 * d, mu)) / 2e-6
            assert float((v_g * d).sum()) == pytest.approx(difference, rel=1e-6, abs=1e-8)
        difference = float(loss(v, mu + 1e-6) - loss(v, mu - 1e-6)) / 2e-6
    assert float(mu_g) == pytest.approx(difference, rel=1e-6, abs=1e-8)
    assert (abs(float(mu_g)) > 1e-3) == (side == "slips")


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("solver", EXPLICIT)
def test_friction_on_its_kinks(solver, dim):
    """Finite where it just sticks, where it does not move at all, where it only falls, and where v_n = 0."""
    sim = sliding(solver, dim)
    at_rest = torch.zeros_like(inputs_at(sim, 1.0)[0])
    along = at_rest.clone()
    along[..., 0] = 1.0
    for v in (inputs_at(sim, 1.0)[0], inputs_at(sim, 0.0)[0], at_rest, along):
        mu = torch.full((1, 1), MU, dtype=v.dtype, requires_grad=True)
        weights = torch.randn_like(v)
        for gradient in torch.autograd.grad(loss_of(sim, weights)(v.requires_grad_(), mu), [v, mu]):
            assert torch.isfinite(gradient).all()
            assert gradient.abs().max() < 10 * weights.abs().sum()


def pulled(solver: str, ratio: float) -> Simulation:
    """A block with a cable of `ratio` times the length of its route."""
    ends = ((0.3125 - 1 / 64, 0.3125 - 1 / 64), (0.4375 - 1 / 64, 0.4375 - 1 / 64))
    cable = Cable("cable", ends, 200.0)
    for _ in range(2):
        scene = block(2, actuators=(cable,), gravity=(0.0, 0.0))
        sim = Simulation(scene, EXPLICIT[solver](1 / 16), dt=STEP)
        cable = dataclasses.replace(cable, rest_length=ratio * float(sim.model.cables.rest_length.numpy()[0]))
    return sim


@pytest.mark.parametrize("side", ["slack", "taut"])
@pytest.mark.parametrize("solver", EXPLICIT)
def test_cable(solver, side):
    """A cable whose length is 1e-3 over its route does nothing; one that is 1e-3 short pulls."""
    sim = pulled(solver, {"slack": 1 + 1e-3, "taut": 1 - 1e-3}[side])
    x = sim.state().position
    weights = torch.randn_like(x)

    def loss(x, u):
        return (weights * sim.step(sim.state(position=x), u).velocity).sum()

    u = torch.zeros(1, dtype=x.dtype, requires_grad=True)
    x_g, u_g = torch.autograd.grad(loss(x.requires_grad_(), u), [x, u])
    with torch.no_grad():
        difference = float(loss(x, u + 1e-6) - loss(x, u - 1e-6)) / 2e-6
        assert float(u_g) == pytest.approx(difference, rel=1e-6, abs=1e-8)
        assert (abs(float(u_g)) > 1e-3) == (side == "taut")
        d = 0.01 * torch.randn_like(x)
        difference = float(loss(x + 1e-6 * d, u) - loss(x - 1e-6 * d, u)) / 2e-6
        assert float((x_g * d).sum()) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("solver", EXPLICIT)
def test_cable_on_its_kink(solver):
    """A cable exactly as long as its route has the derivative of a taut one."""
    sides = []
    for ratio in (1.0, 1 + 1e-9, 1 - 1e-9):
        sim = pulled(solver, ratio)
        u = torch.zeros(1, dtype=sim.state().position.dtype, requires_grad=True)
        velocity = sim.step(sim.state(), u).velocity
        sides += torch.autograd.grad((torch.arange(velocity.numel()).reshape(velocity.shape) * velocity).sum(), u)
    on, slack, taut = (float(g) for g in sides)
    assert slack == 0.0
    assert taut != 0.0
    assert on == pytest.approx(taut, rel=1e-6)


@pytest.mark.parametrize("solver", [s for s in EXPLICIT if s != "springs-rk4"])
def test_a_cable_whose_waypoints_meet(solver):
    """It is the cable without its last waypoint, whose segment has no direction; springs between the two have none.

    In a scheme of one stage: between two they part.
    """
    ends = [(0.3125 - 1 / 64, 0.3125 - 1 / 64), (0.375 - 1 / 64, 0.375 - 1 / 64), (0.4375 - 1 / 64, 0.375 - 1 / 64)]
    cables = [Cable("cable", ends[:count], 200.0, 0.05) for count in (2, 3)]
    short, long = (
        Simulation(block(2, actuators=(c,), gravity=(0.0, 0.0)), EXPLICIT[solver](1 / 16), STEP) for c in cables
    )
    stays, goes = long.model.cables.particle.numpy()[1:]
    x = short.state().position
    x[:, goes] = x[:, stays]
    weights, d = torch.randn_like(x), 0.01 * torch.randn_like(x)
    d[:, goes] = d[:, stays]

    def loss(sim, x, u):
        return (weights * sim.rollout(u, 1, sim.state(position=x)).final.velocity).sum()

    u = torch.full((1, 1), 0.2, dtype=x.dtype, requires_grad=True)
    x_g, u_g = torch.autograd.grad(loss(long, x.requires_grad_(), u), [x, u])
    with torch.no_grad():
        assert float(loss(long, x, u)) == pytest.approx(float(loss(short, x, u)), rel=1e-12)
        difference = float(loss(long, x, u + 1e-6) - loss(long, x, u - 1e-6)) / 2e-6
        assert float(u_g) == pytest.approx(difference, rel=1e-6)
        difference = float(loss(long, x + 1e-6 * d, u) - loss(long, x - 1e-6 * d, u)) / 2e-6
        assert float((x_g * d).sum()) == pytest.approx(difference, rel=1e-6)
