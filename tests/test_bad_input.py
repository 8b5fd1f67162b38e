"""What cannot be simulated is refused, or warned of, in one sentence with the place and the remedy, under every solver."""

import dataclasses
import warnings

import numpy as np
import pytest

import warpbots as wb
from warpbots.scene import (
    Box,
    Constraint,
    Contact,
    HalfSpace,
    Inertia,
    Joint,
    Material,
    Obstacle,
    PrescribedMotion,
    RigidBody,
    Scene,
    SceneError,
    SoftBody,
    floor,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics

SIDE = 0.1
SOLVERS = {
    "MPM": MPM(0.02), "MassSpring": MassSpring(0.02), "ProjectiveDynamics": ProjectiveDynamics(0.05),
    "Articulated": Articulated("bdf1"),
}  # fmt: skip
SOFT = ("MPM", "MassSpring", "ProjectiveDynamics")
RIGID = ("ProjectiveDynamics", "Articulated")


def body(solver: str, points: int = 8):
    """A cube of 10 cm with a corner at the origin: soft, but rigid under `Articulated`."""
    if solver != "Articulated":
        return SoftBody("block", Box((0.0,) * 3, (SIDE,) * 3), Material(1e5, 0.25))
    half = SIDE / 2.0
    return RigidBody("block", Box((-half,) * 3, (half,) * 3), points=points, position=(half,) * 3)


def scene(solver: str, *obstacles: Obstacle, **parts) -> Scene:
    """The cube and obstacles, without gravity, with laws of contact under `Articulated`."""
    laws = [Contact("block", o.name, 1e7, 1e8) for o in obstacles] if solver == "Articulated" else []
    return Scene([body(solver)], obstacles=obstacles, contacts=laws, gravity=(0, 0, 0), **parts)


def simulated(solver: str, of: Scene) -> Simulation:
    """A simulation in steps of 5 ms, without warnings about stiff contact and few points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Simulation(of, SOLVERS[solver], 5e-3, substeps=None if solver in ("MPM", "MassSpring") else 1)


def moving(shape, *displacements, name: str = "tool", beyond: str = "hold", end: float = 0.1) -> Obstacle:
    """An obstacle that is at these displacements at equal times until `end`."""
    times = np.linspace(0.0, end, len(displacements))
    return Obstacle(shape, name=name, motion=PrescribedMotion(times, displacements, beyond=beyond))


@pytest.mark.parametrize("solver", SOFT)
@pytest.mark.parametrize("displaced", (False, True))
def test_a_tool_in_soft_matter_at_the_start(solver, displaced):
    """Also where it is at the start by its motion."""
    if solver == "ProjectiveDynamics" and displaced:
        pytest.skip("the start of its motion is checked with its nodes")
    shape = Box((0.02, 0.02, 0.02), (0.08, 0.08, 0.12))
    tool = Obstacle(shape, name="tool")
    if displaced:
        low, high = (tuple(np.add(v, (0.0, 0.0, 0.5))) for v in (shape.lower, shape.upper))
        tool = moving(Box(low, high), (0.0, 0.0, -0.5), (0.0, 0.0, 0.0))
    with pytest.raises(SceneError, match=r"'tool': (?=.*inside)(?=.*'block').*; move the body or the obstacle apart"):
        SOLVERS[solver].build(scene(solver, tool))


@pytest.mark.parametrize("solver", ("MPM", "MassSpring"))
def test_matter_that_starts_deep_in_an_obstacle(solver):
    """It stays where it is. Obstacles that stick and constraints hold it on purpose, and a cell is not deep."""
    sunk = Obstacle(HalfSpace((0.0, 0.0, 0.05), (0, 0, 1)), name="ground")
    said = (
        r"'block' starts 0\.0[45].* m deep in Obstacle 'ground', .*: move the body or the obstacle apart, or use cond"
    )
    with pytest.warns(UserWarning, match=said):
        sim = Simulation(scene(solver, sunk), SOLVERS[solver], 5e-3)
    assert (sim.rollout(None, 4).final.position - sim.state().position).abs().max() < 1e-5
    held = dataclasses.replace(body(solver), regions={"base": Box((0.0,) * 3, (SIDE, SIDE, 0.02))})
    for of in (
        scene(solver, dataclasses.replace(sunk, condition="sticky")),
        scene(solver, dataclasses.replace(sunk, shape=HalfSpace((0.0, 0.0, 0.015), (0, 0, 1)))),
        dataclasses.replace(scene(solver, sunk), bodies=[held], constraints=[Constraint("base")]),
    ):
        Simulation(of, SOLVERS[solver], 5e-3)  # a warning is an error in tests


def test_a_robot_that_is_partly_in_soft_matter():
    """Few of its nodes are inside a thin link, which is neither bound nor in contact then."""
    link = RigidBody("link", Box((-0.005, -0.005, -0.05), (0.005, 0.005, 0.05)), position=(0.05, 0.05, 0.1))
    robot = Scene([body("MPM"), link], joints=[Joint("j", "fixed", None, "link")])
    with pytest.raises(SceneError, match=r"RigidBody 'link' \(from .*\): . nodes .* move it out of the soft bodies by"):
        ProjectiveDynamics(0.05).build(robot)


FAST = moving(Box((0.3, 0.0, 0.0), (0.36, 0.1, 0.1)), (0.0, 0.0, 0.0), (-20.0, 0.0, 0.0))
"""A tool 6 cm thick at 200 m/s."""


@pytest.mark.filterwarnings("ignore:boxes")
def test_a_tool_that_moves_by_more_than_half_its_thickness_in_a_step_of_articulated():
    """A warning, also if contacts are stiffer than the steps resolve."""
    said = r"is not resolved .*; Obstacle 'tool' moves by up to 1 m .* half its thickness of 0\.06 m, .*: use steps"
    with pytest.warns(UserWarning, match=said):
        Simulation(scene("Articulated", FAST), Articulated(), 5e-3, substeps=1).rollout(None, 1)


def test_a_tool_that_masses_would_pass_through_in_a_step():
    with pytest.raises(SimulationError, match=r"'block' .* passes through the obstacle 'tool' .* more substeps"):
        Simulation(scene("MassSpring", FAST), SOLVERS["MassSpring"], 1e-2, substeps=20).rollout(None, 1)


def test_a_tool_that_moves_by_more_than_a_cell_in_a_step_of_mpm():
    sim = simulated("MPM", scene("MPM", moving(HalfSpace((0.0, 0.0, -0.02), (0, 0, 1)), (0.0, 0.0, 0.0), (0, 0, 90.0))))
    with pytest.raises(
        SimulationError, match=r"'tool' in world 0 moves .* more than a cell of 0\.02 m, .* more substeps"
    ):
        sim.rollout(None, 4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_table_that_is_too_short(solver):
    tool = moving(HalfSpace((0.0, 0.0, -0.1), (0, 0, 1)), (0, 0, 0), (0, 0, 0.01), beyond="error", end=0.012)
    with pytest.raises(
        ValueError, match=r"Obstacle 'tool' ends at 0\.012 s, .* simulate at most 2 of them, give the table"
    ):
        simulated(solver, scene(solver, tool)).rollout(None, 10)


def test_a_tool_that_is_also_free():
    """A drive of a body, and an obstacle with the name of a body that moves by itself."""
    drive = wb.actuators.VelocityDrive("push", "block", 1.0, (1, 0, 0))
    with pytest.raises(
        SceneError, match="'push': body 'block' moves freely, .* make it an Obstacle, or drive its joint"
    ):
        Scene([body("Articulated", 0)], [drive], [floor(-1.0)])
    tool = moving(Box((0.2, 0.0, 0.0), (0.3, 0.1, 0.1)), (0, 0, 0), (0, 0, 1), name="block")
    for obstacle in (tool, dataclasses.replace(tool, motion=None, surface_velocity=(1.0, 0.0, 0.0))):
        with pytest.raises(
            SceneError, match="Obstacle 'block': it moves as prescribed, and a body of the same name moves"
        ):
            Scene([body("Articulated", 0)], obstacles=[obstacle])


@pytest.mark.parametrize("solver", RIGID)
def test_a_joint_that_starts_far_beyond_its_limits(solver):
    """In degrees, say; 0.2 rad beyond is a start of robots."""
    joints = [
        Joint("hinge", "revolute", None, "a", axis=(0, 1, 0), lower=-0.1, upper=0.2, start=28.6),
        Joint("rail", "prismatic", "a", "b", axis=(0, 1, 0), lower=0.3, upper=0.5),
    ]
    links = [RigidBody(n, Box((-0.01,) * 3, (0.01,) * 3), position=(0.2 * k, 0, 0)) for k, n in enumerate("ab")]
    said = (
        r"Joint 'hinge' starts at 28\.6, beyond its limits -0\.1 to 0\.2, .*, and 1 more .*; give Joint\.start a value"
    )
    with pytest.warns(UserWarning, match=said):
        SOLVERS[solver].build(Scene(links, joints=joints))
    alone = [dataclasses.replace(joints[0], lower=None), dataclasses.replace(joints[1], start=0.4)]
    with pytest.warns(
        UserWarning, match=r"Joint 'hinge' starts at 28\.6, beyond its limits -inf to 0\.2, whose springs"
    ):
        SOLVERS[solver].build(Scene(links, joints=alone))
    within = [dataclasses.replace(j, start=x) for j, x in zip(joints, (0.4, 0.4), strict=True)]
    SOLVERS[solver].build(Scene(links, joints=within))  # near or within: no warning, which is an error in tests


@pytest.mark.parametrize("solver", RIGID)
def test_a_body_without_mass(solver):
    for ghost in (RigidBody("ghost", None), RigidBody("ghost", None, inertia=None)):
        with pytest.raises(
            SceneError, match="'ghost', which has no mass and carries none; give it a shape, an inertia"
        ):
            SOLVERS[solver].build(Scene([ghost]))
    with pytest.raises(SceneError, match="mass"):
        Inertia(0.0, (0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_plates_that_meet_with_a_body_between(solver):
    """The run stops with both names and the place."""
    bottom = Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), name="bottom")
    press = moving(HalfSpace((0, 0, SIDE), (0, 0, -1)), (0, 0, 0), (0, 0, -1.5 * SIDE), name="press")
    sim = simulated(solver, scene(solver, bottom, press))
    with pytest.raises(
        SimulationError, match=r"'block'.* at \[.*\] m.*'(bottom|press)' and '(bottom|press)'.* have met"
    ):
        sim.rollout(None, 16)
