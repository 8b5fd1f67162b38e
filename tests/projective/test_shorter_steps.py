"""Steps that are not found as a whole are taken in shorter ones; worlds in which these are not found are lost alone."""

import dataclasses

import pytest
import torch
from skeletons import arm
from soft_bodies import CELL, DT, beam, beating, cloth, machine, rolled, sliding, stirred, swimming

import warpbots as wb
from warpbots.gradients import Checkpoints
from warpbots.scene import Box, Material, Scene, SoftBody, floor
from warpbots.simulation import LostWorldWarning, Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics

FEW = {"max_iterations": 100, "max_halvings": 2, "linear_solver": "iterative"}
"""A quarter of these is not enough for a step of most scenes, so that these are halved, once or twice."""
NONE = torch.zeros(0)


def crash(speed: float = 20.0, youngs_modulus: float = 1e6) -> Scene:
    """A cube that is thrown at another one on a floor, and moves by twice its size in a step of 10 ms."""
    matter = Material(youngs_modulus, 0.4, 1000.0, "neo_hookean")
    lower = SoftBody("lower", Box((0, 0, 0), (0.1, 0.1, 0.1)), matter, friction=0.3)
    place = Box((0.01, 0.02, 0.13), (0.11, 0.12, 0.23))
    upper = SoftBody("upper", place, matter, velocity=(0.3, 0, -speed), friction=0.3)
    return Scene((lower, upper), obstacles=(floor(friction=0.5),))


def thrown(worlds: int = 1, **options) -> Simulation:
    return Simulation(crash(), ProjectiveDynamics(0.05, tolerance=1e-5, **options), 0.01, worlds=worlds)


def test_an_impact_that_crushes_is_taken_in_shorter_steps():
    """In free flight, momentum is conserved, and energy and impulse are those of steps that are shorter throughout."""
    scene = dataclasses.replace(crash(), obstacles=(), gravity=(0.0, 0.0, 0.0))
    with pytest.raises(SimulationError, match="the step did not converge|surfaces cannot be kept apart"):
        Simulation(scene, ProjectiveDynamics(0.05, max_halvings=0), 0.01).rollout(None, 1)
    ends = {}
    for h in (0.01, 0.0025):
        sim = Simulation(scene, ProjectiveDynamics(0.05, tolerance=1e-5), h)
        mesh, final = sim.model.matter, sim.rollout(None, round(0.03 / h)).final
        mass, upper = torch.as_tensor(mesh.density * mesh.volume)[:, None], torch.as_tensor(mesh.body == 1)
        momentum = mass * final.velocity[0].cpu()
        energy = 0.5 * float((mass * final.velocity[0].cpu() ** 2).sum())
        ends[h] = momentum.sum(0), momentum[upper].sum(0), energy, final.shorter_steps[0].item(), final.lost[0].item()
    (total, impulse, energy, taken, lost), (others, other_impulse, other_energy, none, _) = ends.values()
    assert taken >= 2
    assert none == lost == 0
    for p in (total, others):
        torch.testing.assert_close(p, torch.tensor([0.3, 0.0, -20.0]).to(p), rtol=0.0, atol=2e-3)
    assert (impulse - other_impulse).norm() < 0.1 * 20.0
    assert energy == pytest.approx(other_energy, rel=0.05)
    assert energy < 0.5 * (20.0**2 + 0.3**2)


def test_a_world_does_not_depend_on_the_others():
    """To the last bit: in a batch whose worlds need none, some and many shorter steps, each is as it is alone."""
    speeds = (0.5, 40.0, 0.0, 12.0)
    batch, alone = thrown(len(speeds)), thrown()

    def start(sim: Simulation, speeds: tuple[float, ...]):
        velocity = sim.state().velocity.clone()
        upper = torch.as_tensor(sim.model.matter.body == 1)
        velocity[:, upper, 2] = -torch.tensor(speeds)[:, None].to(velocity)
        return sim.state(velocity=velocity)

    state, states = start(batch, speeds), [start(alone, (v,)) for v in speeds]
    for _ in range(2):
        state = batch.step(state, NONE)
        states = [alone.step(s, NONE) for s in states]
    for name, value in vars(state).items():
        assert torch.equal(value, torch.cat([getattr(s, name) for s in states])), name
    assert state.shorter_steps[1] > 0
    assert state.shorter_steps[2] == 0


CASES = {
    "beats": (beating, {"max_iterations": 24}),
    "swims": (lambda: swimming(beam("neo_hookean")), {"max_iterations": 80}),
    "turns": (lambda: machine(youngs_modulus=1e5), {"max_iterations": 40}),
    "slides": (lambda: sliding("corotated", (floor(friction=0.3),)), {"max_iterations": 30}),
    "folds": (cloth, {"max_iterations": 40}),
    "walks": (lambda: arm("revolute", gravity=(0.0, 0.0, -9.81)), {"cell_size": 0.02, "max_iterations": 40}),
}


@pytest.mark.verification
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_steps_that_were_taken(case, rng):
    """Of steps that are halved, against central differences that take the same shorter steps."""
    make, options = CASES[case]
    solver = ProjectiveDynamics(**{"cell_size": CELL, "tolerance": 1e-13, "collisions": False, **FEW, **options})
    sim = Simulation(make(), solver, DT)
    inputs = stirred(sim, rng, 2)
    shape = sim.state().position.shape
    weight = torch.as_tensor(rng.normal(size=shape))

    def loss(values: dict) -> tuple[torch.Tensor, float]:
        end = rolled(sim, values)
        assert end.lost[0] == 0
        return (weight * (end.position + 0.01 * end.velocity)).sum(), end.shorter_steps[0].item()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    value, taken = loss(leaves)
    value.backward()
    assert taken >= 4
    checked = [n for n in ("position", "velocity", "control", "youngs_modulus", "load", "phase") if n in inputs]
    for name in checked:
        if not inputs[name].numel():
            continue
        direction = torch.as_tensor(rng.normal(size=inputs[name].shape))
        scale = float(inputs[name].abs().mean()) or 1.0
        slopes = []
        for step in (1e-3, 1e-4, 1e-5):
            with torch.no_grad():
                ends = [loss(inputs | {name: inputs[name] + s * step * scale * direction}) for s in (1, -1, 2, -2)]
            if {n for _, n in ends} == {taken}:
                there, back, far, far_back = (v for v, _ in ends)
                slopes.append(float(8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        steepest = float(leaves[name].grad.norm() * direction.norm())
        assert slopes, name
        assert min(abs(slope - s) for s in slopes) <= 1e-5 * max(abs(slope), 1e-3 * steepest), (name, slope, slopes)


def halved(worlds: int, checkpoints: Checkpoints | None = None, **options) -> Simulation:
    """Bars whose steps have too few iterations to be found as a whole, where these are not many."""
    scene = dataclasses.replace(beam("neo_hookean", nu=0.45), gravity=(0.0, 0.0, -9.81))
    few = {"max_iterations": 40, "max_halvings": 3, "linear_solver": "iterative"}
    solver = ProjectiveDynamics(CELL, 1e-6, collisions=False, **{**few, **options})
    return Simulation(scene, solver, 0.02, substeps=2, worlds=worlds, checkpoints=checkpoints)


def spread(sim: Simulation) -> torch.Tensor:
    """Young's moduli that differ from world to world."""
    return sim.parameter("youngs_modulus") * torch.linspace(0.5, 2.0, sim.worlds)[:, None]


def test_every_schedule_takes_the_same_shorter_steps():
    """And has the same gradient, to the last bit, whether substeps are kept or computed again."""
    found = []
    for schedule in (Checkpoints.all(), Checkpoints.every(2)):
        sim = halved(2, schedule)
        control = torch.full((2, 3, sim.channels), 0.3, requires_grad=True)
        moduli = spread(sim).requires_grad_()
        motion = sim.rollout(control, 3, youngs_modulus=moduli)
        motion.final.position.square().sum().backward()
        assert (motion.final.shorter_steps > 0).all()
        assert (motion.lost == -1).all()
        found.append([control.grad, moduli.grad, *motion.final.fields()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def strong(sim: Simulation, lost: int) -> torch.Tensor:
    """Loads under which one world cannot go on: its elements are turned inside out."""
    load = sim.parameter("load")
    load[lost] = load[lost] * 1e5
    return load


def test_a_batch_goes_on_without_a_world_that_cannot():
    """It stays as it was, marked, and neither motions nor gradients of the others know of it."""
    sim, rest = halved(3, max_iterations=100), halved(2, max_iterations=100)
    ends, grads = [], []
    for each, load in ((sim, strong(sim, 1)), (rest, rest.parameter("load"))):
        moduli = each.parameter("youngs_modulus").requires_grad_()
        if each is sim:
            with pytest.warns(LostWorldWarning, match=r"lost world 1 of 3, which stay.*control step 0, substep 0"):
                motion = each.rollout(None, 3, youngs_modulus=moduli, load=load)
        else:
            motion = each.rollout(None, 3, youngs_modulus=moduli, load=load)
        motion.final.position.square().sum().backward()
        ends.append(motion)
        grads.append(moduli.grad)
    lost, others = ends
    assert lost.lost.tolist() == [-1, 0, -1]
    assert lost.final.lost.tolist() == [0.0, 1.0, 0.0]
    assert "1 of 3 worlds lost" in repr(lost)
    assert torch.equal(lost.final.position[1], lost.start.position[1])
    assert torch.equal(lost.final.position[[0, 2]], others.final.position)
    assert torch.equal(grads[0][[0, 2]], grads[1])
    assert not grads[0][1].any()
    one = halved(1, max_iterations=100)
    with pytest.raises(SimulationError, match=r"in world 0.*parts of 0.00125 s were tried"):
        one.rollout(None, 3, load=strong(one, 0))


def test_the_gradient_at_the_start_passes_through_a_lost_world():
    """What it is at the end is what it was at the start."""
    sim = halved(2, max_iterations=100)
    position = sim.state().position.requires_grad_()
    weight = torch.arange(position.numel()).reshape(position.shape).to(position)
    with pytest.warns(LostWorldWarning):
        end = sim.rollout(None, 2, sim.state(position=position), load=strong(sim, 1)).final
    (weight * end.position).sum().backward()
    assert torch.equal(position.grad[1], weight[1])
    assert not torch.equal(position.grad[0], weight[0])


def test_training_says_how_many_worlds_it_lost():
    """Each iteration counts them, and they can be left out of the loss."""
    sim = halved(2, max_iterations=100)
    load, unknown = strong(sim, 1), torch.tensor(1.0, requires_grad=True)

    def loss() -> torch.Tensor:
        motion = sim.rollout(None, 1, load=load, youngs_modulus=1e5 * unknown * torch.ones_like(spread(sim)))
        return motion.final.position[motion.lost < 0].square().mean()

    with pytest.warns(LostWorldWarning):
        history = wb.fit([unknown], loss, iterations=2, progress=False)
    assert history.lost_worlds == [1, 2, 3]
    assert history.failures == [0, 0, 0]


def test_zero_halvings_take_whole_steps_only():
    with pytest.raises(SimulationError, match=r"use a shorter step \(now 0.01 s\)"):
        halved(1, max_halvings=0, max_iterations=8).rollout(None, 3)
    with pytest.raises(ValueError, match="max_halvings must be from 0 to 10, got 11"):
        ProjectiveDynamics(CELL, max_halvings=11)
