"""Gradients through contact with obstacles that move, and through constraints that move, against differences."""

import dataclasses

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.numerics import precision

TIGHT = 1e-12 if precision == "float64" else None
"""Tolerance of implicit steps, for differences."""
SOLVERS = {
    "MassSpring": (wb.MassSpring(0.04, integrator="euler", damping=3e-3), 20),
    "MPM": (wb.MPM(0.02), 4),
    "ProjectiveDynamics": (wb.ProjectiveDynamics(0.04, elements="tetrahedra", tolerance=TIGHT), 1),
}
"""Solvers that take obstacles that move, each with its substeps in 2 ms."""
DEPTHS = {"ProjectiveDynamics": -0.0005}
"""Depth of obstacles in bodies at the start, by solver [m]; negative for a solver that refuses an overlap."""
SPRINGS = {
    "verlet": (wb.MassSpring(0.04, integrator="verlet"), 20),
    "rk4": (wb.MassSpring(0.04, integrator="rk4", contact_stiffness=1e7), 20),
}

TIMES = np.array([0.0, 0.005, 0.02, 0.03, 0.05])
MOTION = {
    "positions": np.array([[0, 0, 0], [2, 1, 1], [6, 3, 2], [9, 1, 1], [12, 4, 3]]) * 1e-3,
    "rotations": np.array([[0, 0, 0], [1, 0, 2], [3, -1, 4], [4, 2, 9], [6, 1, 12]]) * 1e-2,
    "pivot": (0.05, 0.02, 0.01),
}


def pushed(condition="friction", depth=0.001):
    """A block that a plate lifts, turns and drags, while a slanted ball pushes it from the side.

    Both begin `depth` [m] inside the block.
    """
    block = wb.SoftBody("block", wb.shapes.Box((0, 0, 0), (0.12, 0.08, 0.08)), wb.Material(3e5, 0.25, 1000.0))
    plate = wb.Obstacle(
        wb.shapes.HalfSpace((0, 0, depth), (0, 0, 1)), condition, 0.2, name="plate",
        motion=wb.PrescribedMotion(TIMES, **MOTION), surface_velocity=(0.1, 0.05, 0.0),
    )  # fmt: skip
    ball = wb.Obstacle(wb.shapes.Sphere((-0.05 + depth, 0.045, 0.041), 0.05), "separate", name="ball")
    drives = [
        wb.actuators.VelocityDrive("push", "ball", 0.3, (1, 0.1, 0)),
        wb.actuators.VelocityDrive("roll", "ball", 2.0, (0, 1, 0), kind="rotation", pivot=(0.0, 0.0, 0.0)),
        wb.actuators.VelocityDrive("belt", "plate", 0.2, (0, 1, 0), kind="surface"),
    ]
    return wb.Scene([block], drives, obstacles=[plate, ball])


def pulled(freedom="fixed", direction=None):
    """A bar whose ends are carried along by two constraints, one by a table and one by drives."""
    ends = {"left": wb.shapes.Box((-1, -1, -1), (0.01, 1, 1)), "right": wb.shapes.Box((0.15, -1, -1), (1, 1, 1))}
    bar = wb.SoftBody("bar", wb.shapes.Box((0, 0, 0), (0.16, 0.08, 0.08)), wb.Material(3e5, 0.25, 1000.0), ends)
    drives = [
        wb.actuators.VelocityDrive("pull", "right_jaw", 0.3, (1, 0.2, 0)),
        wb.actuators.VelocityDrive("twist", "right_jaw", 3.0, (1, 0, 0), kind="rotation", pivot=(0.1, 0.03, 0.04)),
    ]
    jaws = [
        wb.Constraint("left", freedom, direction, name="left_jaw", motion=wb.PrescribedMotion(TIMES, **MOTION)),
        wb.Constraint("right", name="right_jaw"),
    ]
    return wb.Scene([bar], drives, constraints=jaws, obstacles=[wb.floor(-0.05, condition="slip")])


def shoved():
    """In a plane, a block between a wall and a paddle without a closed form, which swings and is driven."""
    block = wb.SoftBody("block", wb.shapes.Box((0, 0), (0.12, 0.12)), wb.Material(3e5, 0.25, 1000.0))
    paddle = wb.shapes.Union(
        (wb.shapes.Sphere((-0.0613, 0.0517), 0.0707), wb.shapes.Box((-0.2037, -0.1), (-0.0133, 0.0211)))
    )
    swing = {"positions": MOTION["positions"][:, :2], "rotations": MOTION["rotations"][:, 2], "pivot": (-0.1, 0.02)}
    tool = wb.Obstacle(paddle, "friction", 0.3, name="paddle", motion=wb.PrescribedMotion(TIMES, **swing))
    wall = wb.Obstacle(wb.shapes.HalfSpace((0.121, 0), (-1, 0)), "friction", 0.2, name="wall")
    drives = [
        wb.actuators.VelocityDrive("turn", "paddle", 3.0, kind="rotation", pivot=(-0.05, 0.1)),
        wb.actuators.VelocityDrive("push", "paddle", 0.3, (1, 0.1)),
    ]
    return wb.Scene([block], drives, obstacles=[tool, wall])


def check(scene, solver, substeps, steps=12, rel=1e-5):
    """Directional derivatives of a loss by every parameter of the motion, the controls and friction, at two seeds."""
    sim = wb.Simulation(scene, solver, dt=2e-3, substeps=substeps)
    start = sim.state()
    weight = torch.tensor(np.random.default_rng(1).normal(size=tuple(start.position.shape)))
    control = torch.tensor(np.random.default_rng(2).uniform(0.2, 0.9, size=(steps, sim.channels)))
    own = ("motion_position", "motion_rotation", "drive_speed", "surface_velocity", "friction")
    values = {name: sim.parameter(name).clone() for name in own if name in sim.parameters()}

    def loss(control, **values):
        final = sim.rollout(control, steps, **values).final
        return (weight * final.position).sum() + 0.02 * (weight * final.velocity).sum()

    leaves = {"control": control, **values}
    for value in leaves.values():
        value.requires_grad_(True)
    gradients = dict(zip(leaves, torch.autograd.grad(loss(**leaves), list(leaves.values())), strict=True))
    leaves = {name: value.detach() for name, value in leaves.items()}
    found = {}
    for name, value in leaves.items():
        direction = torch.tensor(np.random.default_rng(3).normal(size=tuple(value.shape)))
        if name == "friction":
            direction[value == 0.0] = 0.0  # of the ball, which has none
        e = 5e-9 if name.startswith("motion") else 1e-6
        with torch.no_grad():
            pair = [loss(**leaves | {name: value + s * e * direction}) for s in (1.0, -1.0)]
        found[name] = (float((gradients[name] * direction).sum()), float(pair[0] - pair[1]) / (2.0 * e))
    for name, (gradient, difference) in found.items():
        assert gradient != 0.0, name
        assert gradient == pytest.approx(difference, rel=rel), (name, found)


@pytest.mark.verification
@pytest.mark.parametrize("condition", ["friction", "sticky"])
@pytest.mark.parametrize("name", SOLVERS)
def test_obstacles(name, condition):
    check(pushed(condition, DEPTHS.get(name, 0.001)), *SOLVERS[name])


@pytest.mark.verification
@pytest.mark.parametrize("name", [n for n in SOLVERS if n != "ProjectiveDynamics"])
def test_in_a_plane(name):
    check(shoved(), *SOLVERS[name])


@pytest.mark.verification
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(("freedom", "direction"), [("fixed", None), ("line", (1, 0, 1)), ("plane", (1, 1, 0))])
def test_constraints(name, freedom, direction):
    check(pulled(freedom, direction), *SOLVERS[name])


@pytest.mark.verification
@pytest.mark.parametrize("name", SPRINGS)
@pytest.mark.parametrize("scene", [pushed, pulled])
def test_schemes_of_springs(name, scene):
    check(scene(), *SPRINGS[name])


READERS = SOLVERS | {
    "ProjectiveDynamics": (
        wb.ProjectiveDynamics(0.04, elements="tetrahedra", tolerance=TIGHT, contact_interval=2e-3),
        1,
    )
}
"""Solvers whose readings have the forces on supports, each with its substeps in 2 ms."""
SUPPORTED = {
    "pushed": lambda solver: pushed(depth=DEPTHS.get(solver, 0.001)),
    "fixed": lambda solver: pulled(),
    "line": lambda solver: pulled("line", (1, 0, 1)),
    "plane": lambda solver: pulled("plane", (1, 1, 0)),
}
"""Scenes with forces on obstacles, or on constraints, by the name of a solver."""
RATES = ("drive_speed", "surface_velocity", "velocity", "control")
"""Inputs whose effect in a step is small, so that differences need larger changes."""
SUPPORTS = ("contact_force", "contact_torque", "constraint_force", "constraint_torque")


@pytest.mark.verification
@pytest.mark.parametrize(("name", "scene"), [(n, s) for n in READERS for s in SUPPORTED if n != "MPM" or s == "pushed"])
def test_forces_on_supports(name, scene):
    """Readings of forces and torques, after contact has begun, by the state, the motion and the controls."""
    solver, substeps = READERS[name]
    sim = wb.Simulation(SUPPORTED[scene](name), solver, dt=2e-3, substeps=substeps)
    with torch.no_grad():
        state = sim.state()
        for _ in range(12):  # until both obstacles are touched
            state = sim.rollout(torch.full((1, sim.channels), 0.5, dtype=torch.float64), 1, state).final
            if (sim.sense(state).contact_force.norm(dim=-1) > 0.0).all() or scene != "pushed":
                break
    own = [
        n for n in ("motion_position", "motion_rotation", "drive_speed", "surface_velocity") if n in sim.parameters()
    ]
    leaves = {n: sim.parameter(n).clone() for n in own}
    leaves |= {n: getattr(state, n).clone() for n in ("position", "velocity", "time", "travel")}
    leaves["control"] = torch.full((1, sim.channels), 0.4, dtype=torch.float64)
    rng = np.random.default_rng(5)

    def read(values):
        fields = {n: values[n] for n in ("position", "velocity", "time", "travel")}
        parameters = {n: values[n] for n in own}
        found = vars(sim.sense(dataclasses.replace(state, **fields), values["control"], **parameters))
        return [found[n] for n in SUPPORTS if n in found and found[n].numel()]

    weights = [torch.tensor(rng.normal(size=tuple(r.shape))) for r in read(leaves)]
    assert sum(float(r.abs().max()) > 0.0 for r in read(leaves)) >= 2

    def loss(values):
        return sum((w * r).sum() for w, r in zip(weights, read(values), strict=True))

    for value in leaves.values():
        value.requires_grad_(True)
    gradients = dict(zip(leaves, torch.autograd.grad(loss(leaves), list(leaves.values())), strict=True))
    leaves = {n: v.detach() for n, v in leaves.items()}
    for n, value in leaves.items():
        direction = torch.tensor(rng.normal(size=tuple(value.shape)))
        e = 1e-6 if n in RATES else 1e-8
        pair = [float(loss(leaves | {n: value + s * e * direction})) for s in (1.0, -1.0)]
        slope = float((gradients[n] * direction).sum())
        assert slope != 0.0, n
        assert slope == pytest.approx((pair[0] - pair[1]) / (2.0 * e), rel=1e-5), n
