"""Too thin obstacles are refused, the thinnest accepted ones hold, and matter that passes an obstacle stops the run."""

import numpy as np
import pytest
import trimesh
from cases import to_numpy

from warpbots.contact import thickness
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    Heightfield,
    Material,
    Obstacle,
    Posed,
    Scene,
    SceneError,
    Sheet,
    Silhouette,
    SoftBody,
    Sphere,
    TriangleMesh,
    Union,
    floor,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, MassSpring, ProjectiveDynamics


def mesh(points) -> TriangleMesh:
    """The convex hull of points."""
    hull = trimesh.convex.convex_hull(np.array(points, dtype=float))
    return TriangleMesh(hull.vertices, hull.faces)


def plate(thick: float) -> list:
    """Corners of a plate of 1 m with its upper face at z = 0."""
    return [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-thick, 0.0)]


BALL = trimesh.creation.icosphere(3, 0.3)
RAMP = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0.27), (1, 1, 0.27)]
SHEET = Sheet.rectangle((-0.5, -0.5), (0.5, 0.5), 1e-3, (2, 2))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (HalfSpace((0, 0, 0), (0, 0, 1)), np.inf),
        (Box((0, 0, 0), (1, 2, 0.3)), 0.3),
        (Posed(Box((0, 0), (1, 0.1)), (0, 0), np.eye(2)), 0.1),
        (Sphere((0, 0, 0), 0.2), 0.4),
        (Capsule((0, 0, 0), (0, 0, 1), 0.1), 0.2),
        (Cylinder((0, 0, 0), (0, 0, 0.05), 0.1), 0.05),
        (SHEET, 1e-3),
        (Union((Sphere((0, 0), 0.2), Box((0, 0), (1, 0.3)))), 0.3),
        (Silhouette(np.ones((3, 20), bool), (0, 0), 0.01), 0.03),
        (mesh(plate(0.02)), 0.02),
        (mesh(plate(0.2)), np.inf),
        (TriangleMesh(BALL.vertices, BALL.faces), np.inf),
        (mesh(RAMP), np.inf),
    ],
)
def test_thickness(shape, expected):
    """The thickness of a mesh where it is below 0.1 m; the toe of a ramp does not count."""
    assert thickness(shape, 0.1) == pytest.approx(expected, rel=0.06)


def falls(solver, shape, dt=1e-2, lower=(-0.1, -0.1, 0.02), upper=(0.1, 0.1, 0.22), **parts) -> Simulation:
    """A block that falls on an obstacle of this shape."""
    body = SoftBody("block", Box(lower, upper), Material(2e4, 0.25, 1000.0), velocity=parts.pop("velocity", None))
    scene = Scene([body], obstacles=[Obstacle(shape, name="plate", **parts)])
    return Simulation(scene, solver, dt, substeps=None)


@pytest.mark.parametrize(
    "shape", [SHEET, Box(*plate(0.02)[::7]), mesh(plate(0.02)), Cylinder((0, 0, -1), (0, 0, 0), 0.02)]
)
@pytest.mark.parametrize("solver", [MPM(0.05), MassSpring(0.05)], ids=["mpm", "springs"])
def test_what_is_too_thin_is_refused(solver, shape):
    with pytest.raises(
        SceneError, match=r"'plate': it is 0\.\d+ m thick, and .* 0.05 m apart can miss solids thinner than"
    ):
        falls(solver, shape)


def test_a_thin_plate_that_samples_miss_is_refused():
    with pytest.raises(SceneError, match=r"'plate': it is too thin for samples 0.0156 m apart, 64 along"):
        falls(ProjectiveDynamics(0.1), SHEET)


@pytest.mark.parametrize("place", [(0.0, 0.01), (0.25, 0.99), (0.5, 0.99), (0.5, 0.5)], ids=str)
@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize(
    ("solver", "condition", "thick"),
    [
        (MPM(0.05), "separate", 0.15),
        (MPM(0.05), "friction", 0.15),
        (MPM(0.05), "sticky", 0.075),
        (MassSpring(0.05), "friction", 0.075),
        (MassSpring(0.05, integrator="rk4"), "friction", 0.075),
    ],
    ids=str,
)
def test_the_thinnest_plate_holds(solver, condition, thick, upright, place):
    """A plate that is just not refused, wherever it is between the nodes, lying or on its edge under the block.

    On an edge the block is stopped by then, though it may tip over.
    """
    x, top = 0.05 * np.array(place)
    wide, deep = (thick, 0.5) if upright else (0.8, thick)
    shape = Box((x - 0.5 * wide, top - deep), (x + 0.5 * wide, top + 1e-9))
    sim = falls(solver, shape, lower=(x - 0.1, top + 0.04), upper=(x + 0.1, top + 0.14), condition=condition)
    end = to_numpy(sim.rollout(None, 20).final.position)[0]
    assert end[:, 1].mean() > top - 0.06  # in free fall it is 0.12 m below
    with pytest.raises(SceneError, match="'plate': it is .* m thick"):
        falls(solver, Box((0, 0), (0.98 * thick, 0.5)), lower=(0, 0.6), upper=(0.2, 0.8), condition=condition)


@pytest.mark.parametrize(
    "shape",
    [
        mesh(plate(0.2)),
        Cylinder((0, 0, -0.3), (0, 0, 0), 0.5),
        Heightfield((-1.0, -1.0), 0.1, np.zeros((21, 21))),
        Union((Heightfield((-1.0, -1.0), 0.1, np.zeros((21, 21))), Box((0, 0, -0.2), (0.1, 0.1, 0)))),
    ],
)
@pytest.mark.filterwarnings("ignore:.* its lattice may fold there")
def test_an_obstacle_far_below_is_there(shape):
    """In a scene without a domain, springs touch every shape at its place, and not only near the bodies at rest."""
    sim = falls(MassSpring(0.05), shape, lower=(-0.1, -0.1, 1.0), upper=(0.1, 0.1, 1.2))
    assert to_numpy(sim.rollout(None, 55).final.position)[0, :, 2].min() > -0.05  # in free fall -0.5 m


def test_an_obstacle_of_too_many_samples_is_refused():
    with pytest.raises(SceneError, match="'plate': samples of its distance: .* GB .* a smaller Scene.domain"):
        falls(MassSpring(0.01), mesh(10.0 * np.array(plate(0.2))))


def test_what_lies_outside_of_the_grid_is_not_looked_at():
    body = SoftBody("block", Box((0, 0), (0.2, 0.2)), Material(2e4, 0.25, 1000.0))
    far = Obstacle(Box((3, 3), (4, 3.001)), name="far")
    MPM(0.05).build(Scene([body], obstacles=[far], domain=((-0.5, -0.5), (1.0, 1.0))))


@pytest.mark.parametrize(
    ("solver", "speed"),
    [(MassSpring(0.05, contact_stiffness=1e5), 0.0), (MassSpring(0.05), 100.0)],
    ids=["soft", "fast"],
)
@pytest.mark.filterwarnings("ignore:.* its lattice may fold there")
def test_what_passes_an_obstacle_stops_the_run(solver, speed):
    """Pushed below the middle of a plate that gives way, or from one side to the other in a single step."""
    sim = falls(solver, Box(*plate(0.1)[::7]), velocity=(0.0, 0.0, -speed))
    with pytest.raises(SimulationError, match="mass .* of 'block' in world 0 passes through the obstacle 'plate'"):
        sim.rollout(None, 100)


@pytest.mark.parametrize("integrator", ["euler", "verlet", "rk4"])
def test_a_block_at_rest_does_not_sink(integrator):
    """Into a floor that gives way to nothing; stages between the ends of a step know of none."""
    body = SoftBody("block", Box((0.0, 1e-3), (0.2, 0.201)), Material(1e4, 0.25, 1000.0))
    scene = Scene([body], obstacles=[floor(dim=2)])
    sim = Simulation(scene, MassSpring(0.05, integrator=integrator, damping=2e-3), 1e-2, substeps=4)
    height = to_numpy(sim.rollout(None, 120, observe=lambda s: s.position[..., 1].min(dim=1).values).observation)[0]
    assert height[-1] == pytest.approx(height[50], abs=1e-6)
