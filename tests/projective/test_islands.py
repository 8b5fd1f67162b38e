"""What happens in one place of a world changes nothing in another: convergence, tolerance, Newton steps and gradients.

A hanging cloth moves as it does alone, whatever is beside it. Cloth is what shows it: its errors are a thousand times
as large as its corrections, so that it needs its own Newton steps and its own measure of what is enough.
"""

import dataclasses

import numpy as np
import pytest
import torch
from cases import to_numpy
from skeletons import arm

import warpbots as wb
from warpbots.numerics import precision

pytestmark = pytest.mark.verification(float32=True)

Box, Material = wb.shapes.Box, wb.Material
STEPS = 6
NODES = 81


def cloth(at: float = 0.0, youngs_modulus: float = 3e5, density: float = 250.0, name: str = "cloth") -> wb.SoftBody:
    """A wavy cloth of 8 x 8 squares of 5 cm, which hangs on one edge."""
    n = 9
    g = np.linspace(0.0, 0.4, n)
    x, y = np.meshgrid(g, g, indexing="ij")
    z = 0.9 + 0.012 * np.sin(8.0 * y) + 0.003 * np.cos(11.0 * x)
    vertices = np.stack([x.ravel(), y.ravel() + at, z.ravel()], axis=1)
    corners = [i * n + k for i in range(n - 1) for k in range(n - 1)]
    faces = [f for a in corners for f in ((a, a + n, a + n + 1), (a, a + n + 1, a + 1))]
    sheet = wb.shapes.Sheet(vertices, faces, 1e-3)
    matter = Material(youngs_modulus, 0.3, density, damping=1e-2)
    return wb.SoftBody(name, sheet, matter, {f"{name} edge": Box((-1, at - 0.1, 0), (1e-3, at + 0.5, 1))})


def block(lift: float = 0.0, push: float = 0.0, youngs_modulus: float = 1e5, nu: float = 0.3) -> wb.SoftBody:
    """A block 5 m away, at rest on the floor, above it, or with a velocity along it."""
    box = Box((5, 0, lift), (5.24, 0.24, 0.24 + lift))
    return wb.SoftBody("far", box, Material(youngs_modulus, nu), velocity=(push, 0.0, 0.0))


def crash(at: float = 4.0) -> list[wb.SoftBody]:
    """A cube that is thrown at another one, and moves by twice its size in a step of 10 ms: no step finds the end."""
    matter = Material(1e6, 0.4, 1000.0, "neo_hookean")
    lower = wb.SoftBody("lower", Box((at, 0, 1.0), (at + 0.1, 0.1, 1.1)), matter, friction=0.3)
    place = Box((at + 0.01, 0.02, 1.13), (at + 0.11, 0.12, 1.23))
    return [lower, wb.SoftBody("upper", place, matter, velocity=(0.3, 0, -20.0), friction=0.3)]


BESIDE = {
    "soft block at rest": lambda: ([block()], []),
    "stiff block at rest": lambda: ([block(youngs_modulus=2e7)], []),
    "incompressible block at rest": lambda: ([block(youngs_modulus=8e7, nu=0.45)], []),
    "falling block": lambda: ([block(lift=0.02, youngs_modulus=3e6)], []),
    "crash": lambda: (crash(), []),
    "cloth of paper": lambda: ([cloth(2.0, 3e8, 700.0, "paper"), block()], [wb.Constraint("paper edge", name="2")]),
    "light cloth": lambda: ([cloth(2.0, 2e3, 20.0, "silk"), block()], [wb.Constraint("silk edge", name="2")]),
}


def simulation(beside: str | None, **options) -> wb.Simulation:
    """The cloth alone, or beside something."""
    more, constraints = BESIDE[beside]() if beside else ([], [])
    scene = wb.Scene([cloth(), *more], obstacles=[wb.floor()], constraints=[wb.Constraint("cloth edge"), *constraints])
    cell = 0.05 if beside == "crash" else 0.12
    return wb.Simulation(scene, wb.ProjectiveDynamics(cell, **options), dt=1e-2)


def astray(sim: wb.Simulation, own: wb.Simulation) -> tuple[float, int]:
    """Largest distance of the cloth after a step from the cloth of `own`, which is alone; and how many steps are shorter.

    The distance is in tolerances. Both begin each step at the same place: waves of the cloth grow by a factor of 20 in a
    step. The lone cloth takes no shorter steps.
    """
    state, lone, far, shorter = sim.state(), own.state(), 0.0, 0
    for _ in range(STEPS):
        position, velocity = state.position.clone(), state.velocity.clone()
        position[:, :NODES], velocity[:, :NODES] = lone.position[:, :NODES], lone.velocity[:, :NODES]
        state = dataclasses.replace(state, position=position, velocity=velocity)
        state, lone = sim.step(state, torch.zeros(1, sim.channels)), own.step(lone, torch.zeros(1, own.channels))
        distance = (state.position[:, :NODES] - lone.position[:, :NODES]).abs().max().item()
        far = max(far, distance / float(own.report().tolerance))
        shorter += int(sim.report().shorter_steps[0])
        assert own.report().shorter_steps[0] == 0
    return far, shorter


@pytest.mark.parametrize("beside", BESIDE)
def test_a_cloth_moves_as_it_does_alone(beside):
    """Up to its tolerance in every step, which is that of its own edges."""
    far, shorter = astray(simulation(beside), simulation(None))
    assert far <= 1.0
    if beside != "cloth of paper":  # which takes some in double precision only
        assert (shorter > 0) == (beside == "crash")


@pytest.mark.parametrize("linear_solver", ["iterative", "direct"])
def test_every_linear_solver_keeps_islands_apart(linear_solver):
    """A block that presses on the floor takes neither Newton steps nor factors from a cloth."""
    cloths = (simulation(beside, linear_solver=linear_solver) for beside in ("stiff block at rest", None))
    assert astray(*cloths)[0] <= 1.0


def test_a_robot_with_bones_leaves_a_cloth_as_it_is():
    """Bones have systems that are not symmetric, and no Newton steps: they, not what hangs beside them."""
    robot = arm("revolute", thickness=0.03)
    scene = wb.Scene(
        [cloth(0.5), *robot.bodies], robot.actuators, constraints=[wb.Constraint("cloth edge")], joints=robot.joints
    )
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.015), dt=1e-2)
    own = wb.Simulation(
        wb.Scene([cloth(0.5)], constraints=[wb.Constraint("cloth edge")]), wb.ProjectiveDynamics(0.015), dt=1e-2
    )
    assert astray(sim, own)[0] <= 1.0


SPIN = 120.0
"""Angular velocity of an arm whose tip hits the floor at 19 m/s [rad/s]."""


def arms(*places: float) -> wb.Simulation:
    """Soft arms with a bone each, on hinges beside one another above a floor; 20 iterations do for an arm that falls."""
    bodies, joints = [], []
    for k, y in enumerate(places):
        bodies.append(wb.SoftBody(f"arm {k}", Box((0, y, 0), (0.16, y + 0.08, 0.08)), Material(5e4, 0.3, 1000.0)))
        bodies.append(wb.RigidBody(f"bone {k}", Box((0, y, 0), (0.05, y + 0.08, 0.08))))
        at = (0.0, y + 0.04, 0.04)
        joints.append(wb.Joint(f"hinge {k}", "revolute", None, f"bone {k}", position=at, axis=(0.0, 1.0, 0.0)))
    floor = wb.Obstacle(wb.shapes.HalfSpace((0.0, 0.0, -0.02), (0.0, 0.0, 1.0)))
    scene = wb.Scene(bodies, joints=joints, obstacles=[floor])
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.04, max_iterations=80), dt=1e-2)


def test_bones_are_components_with_what_they_are_connected_to():
    """An arm hits the floor and takes shorter steps; a bone elsewhere moves as it does alone, and so its gradient."""
    both, alone_ = arms(0.0, 0.5), arms(0.5)
    assert len(both.model.topology.components) == 2
    ends, slopes = [], []
    for sim in (alone_, both):
        start = sim.state()
        qd, velocity = start.qd.clone(), start.velocity.clone()
        body = torch.as_tensor(sim.model.matter.body)
        if sim is both:
            spinning = body == 0
            qd[0, 0] = SPIN
            velocity[0, spinning, 0] = SPIN * (start.position[0, spinning, 2] - 0.04)
            velocity[0, spinning, 2] = -SPIN * start.position[0, spinning, 0]
        qd.requires_grad_()
        end = sim.rollout(None, 2, sim.state(qd=qd, velocity=velocity)).final
        own = body == body.max()
        (end.position[0, own].double().square().mean() + end.q[0, -1].double() ** 2).backward()
        ends.append(np.append(to_numpy(end.position)[0, own].ravel(), to_numpy(end.q)[0, -1]))
        slopes.append(float(qd.grad[0, -1]))
        assert (end.shorter_steps[0] > 0) == (sim is both)
    np.testing.assert_allclose(ends[1], ends[0], atol=2e-6)
    assert slopes[1] == pytest.approx(slopes[0], rel={"float32": 1e-3, "float64": 1e-6}[precision])


def slope(sim: wb.Simulation) -> tuple[float, float]:
    """Derivative of the mean height of the cloth by a factor of its Young's modulus, and by one of its density."""
    sheet = slice(0, 0) if sim.model.matter is None else sim.model.matter.element_body == 0
    factor = torch.ones(2, dtype=torch.float64, requires_grad=True)
    values = {}
    for k, name in enumerate(("youngs_modulus", "density")):
        own = sim.parameter(name)
        scale = torch.where(torch.as_tensor(sheet), factor[k], 1.0).to(own.dtype)
        values[name] = own * scale
    end = sim.rollout(None, 4, **values).final.position[0, :81, 2]
    end.double().mean().backward()
    return tuple(factor.grad.tolist())


@pytest.mark.parametrize("beside", ["stiff block at rest", "falling block", "crash"])
def test_gradients_of_a_cloth_are_those_that_it_has_alone(beside):
    """Its adjoint is solved as exactly beside a block whose gradient is zero, and whose contacts rule out symmetry."""
    expected = slope(simulation(None))
    close = {"float32": 2e-3, "float64": 1e-6}[precision]
    assert slope(simulation(beside)) == pytest.approx(expected, rel=close)


def pile(gap: float = 2e-3) -> wb.Scene:
    """Two blocks that fall on one another, and a third one beside them."""
    matter, side = Material(1e5, 0.3, 1000.0), 0.1
    places = ((0, 0, 0), (0.01, 0.02, side + gap), (3.0, 0, 0.5))
    bodies = [
        wb.SoftBody(f"block {k}", Box(p, tuple(np.array(p) + side)), matter) for k, p in enumerate(places)
    ]  # fmt: skip
    return wb.Scene(bodies, obstacles=[wb.floor()])


def test_bodies_in_contact_are_one_island_for_as_long_as_they_are():
    """Three components: two of them touch from some step on, and then iterate as one; the third one never does."""
    sim = wb.Simulation(pile(), wb.ProjectiveDynamics(0.05), dt=5e-3)
    assert len(sim.model.topology.components) == 3
    state, roots = sim.state(), []
    for _ in range(8):
        state = sim.step(state, torch.zeros(1, 0))
        roots.append(sim.model.matrices.islands.root.numpy().tolist())
    assert roots[0] == [0, 1, 2]
    assert roots[-1] == [0, 0, 2]


def test_blocks_that_collide_keep_their_momentum():
    """Blocks that collide in free fall keep their momentum, which needs one iteration for both."""
    scene = wb.Scene([*pile().bodies[:2]], gravity=(0, 0, 0))
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=5e-3)
    start = sim.state()
    upper = torch.as_tensor(sim.model.matter.body == 1)
    velocity = start.velocity.clone()
    velocity[:, upper, 2] = -1.0
    end = sim.rollout(None, 4, sim.state(velocity=velocity)).final
    mass = torch.as_tensor(sim.model.matter.density * sim.model.matter.volume)
    momentum = [(mass[:, None] * v[0].double()).sum(dim=0) for v in (velocity, end.velocity)]
    small = {"float32": 2e-4, "float64": 1e-6}[precision]
    np.testing.assert_allclose(momentum[1], momentum[0], atol=small * float(momentum[0].norm()))


def test_worlds_of_a_batch_have_islands_of_their_own():
    """Two worlds of the pile, one of which begins higher and meets later: each as it does alone, to the bit."""
    both, one = (wb.Simulation(pile(), wb.ProjectiveDynamics(0.05), dt=5e-3, worlds=n) for n in (2, 1))
    lift = torch.tensor([0.0, 4e-3])
    rest = one.state().position
    upper = torch.as_tensor(one.model.matter.body == 1)
    starts = []
    for height in lift:
        x = rest.clone()
        x[:, upper, 2] += height
        starts.append(x)
    together = both.rollout(None, 7, both.state(position=torch.cat(starts))).final.position
    for k, x in enumerate(starts):
        assert torch.equal(one.rollout(None, 7, one.state(position=x)).final.position[0], together[k])


def crashed(more: list[wb.SoftBody], constraints: list[wb.Constraint]) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the cubes of a crash end after two steps, the gradient of their places by velocities, and shorter steps."""
    scene = wb.Scene([*crash(), *more], constraints=constraints)
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=1e-2)
    velocity = sim.state().velocity.clone().requires_grad_()
    end = sim.rollout(None, 2, sim.state(velocity=velocity)).final
    cubes = int((sim.model.matter.body <= 1).sum())
    (end.position[0, :cubes].double() ** 2).sum().backward()
    return to_numpy(end.position)[0, :cubes], to_numpy(velocity.grad)[0, :cubes], int(end.shorter_steps[0])


def test_shorter_steps_belong_to_what_needs_them():
    """A crash beside a cloth takes the shorter steps that it takes alone, with the same end and gradient."""
    alone_, beside = crashed([], []), crashed([cloth()], [wb.Constraint("cloth edge")])
    assert alone_[2] == beside[2] > 0
    np.testing.assert_allclose(beside[0], alone_[0], atol=2e-6)
    np.testing.assert_allclose(beside[1], alone_[1], atol=1e-3 * np.abs(alone_[1]).max())


def test_what_a_crash_might_touch_takes_its_shorter_steps():
    """A third cube under the crash is within its reach and goes along, and the impact goes through to it."""
    matter = Material(1e6, 0.4, 1000.0, "neo_hookean")
    under = wb.SoftBody("under", Box((4.0, 0, 0.88), (4.1, 0.1, 0.98)), matter)
    sim = wb.Simulation(wb.Scene([*crash(), under], gravity=(0, 0, 0)), wb.ProjectiveDynamics(0.05), dt=1e-2)
    end = sim.rollout(None, 4).final
    mass = torch.as_tensor(sim.model.matter.density * sim.model.matter.volume)[:, None]
    momentum = (mass * end.velocity[0].double()).sum(dim=0)
    assert end.shorter_steps[0] > 0
    np.testing.assert_allclose(to_numpy(momentum), (0.3, 0.0, -20.0), atol=5e-3)
    third = sim.model.matter.body == 2
    assert to_numpy(end.velocity)[0, third, 2].mean() < -1.0
