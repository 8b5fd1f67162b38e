"""Paths of nodes through obstacles: a step may be long, but nothing comes out on the other side."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

from warpbots.contact import signed_distance
from warpbots.numerics import real, vector
from warpbots.scene import Box, Capsule, Cylinder, Material, Obstacle, Posed, Scene, Sheet, SoftBody, Sphere
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact.node_contact import ObstacleArrays, distance_on_path, free_of_solid

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from degenerate_contacts import run

SPACING = 0.01
SLAB = Box((-0.2, -0.2, -0.06), (0.2, 0.2, 0.0))
MATERIAL = Material(1e5, 0.3, 1000.0, "neo_hookean")


@wp.kernel
def measure_kernel(
    obstacles: ObstacleArrays,
    spacing: real,
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    distance_out: wp.array[real],
    normal_out: wp.array[vector(3)],
):
    """Distance and normal of the first solid at the ends of paths."""
    i = wp.tid()
    R = obstacles.solid.rotation[0]
    d, _slope, n, _C = distance_on_path(obstacles, 0, R, obstacles.solid.position[0], spacing, x[i], y[i])
    distance_out[i] = d
    normal_out[i] = n


@wp.kernel
def free_kernel(
    obstacles: ObstacleArrays,
    depth: real,
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    free_out: wp.array[real],
):
    """Part of paths that is free of the first solid."""
    i = wp.tid()
    R = obstacles.solid.rotation[0]
    free_out[i] = free_of_solid(obstacles, 0, R, obstacles.solid.position[0], depth, x[i], y[i] - x[i])


def obstacle_and_ends(shape, paths):
    """Model with an obstacle, and both ends of paths."""
    body = SoftBody("body", Box((1, 1, 1), (1.1, 1.1, 1.1)), MATERIAL)
    model = ProjectiveDynamics(0.1).build(Scene((body,), obstacles=(Obstacle(shape),)))
    return model, [wp.array(p, dtype=wp.vec3d, device=model.device) for p in np.array(paths, float).swapaxes(0, 1)]


def measured(shape, paths) -> tuple[np.ndarray, np.ndarray]:
    """Distances [m] and normals of a solid at the ends of paths."""
    model, (x, y) = obstacle_and_ends(shape, paths)
    distance, normal = wp.zeros(len(x), dtype=real, device=model.device), wp.zeros(len(x), dtype=vector(3))
    normal = normal.to(model.device)
    wp.launch(measure_kernel, len(x), [model.obstacles, SPACING, x, y], [distance, normal], device=model.device)
    return distance.numpy(), normal.numpy()


def test_a_path_through_a_slab_ends_under_the_plane_at_which_it_entered():
    """Wherever it ends: deep inside, near the other side, and beyond; however it is inclined."""
    paths = [((x, 0.0, 0.02), (0.0, 0.01, z)) for x in (0.0, 0.05) for z in (-0.031, -0.05, -0.06, -0.1, -0.5)]
    distance, normal = measured(SLAB, paths)
    assert distance == pytest.approx([end[2] for _, end in paths], abs=1e-6)
    assert normal == pytest.approx(np.tile([0.0, 0.0, 1.0], (len(paths), 1)), abs=1e-6)


def test_a_path_through_a_round_solid_ends_under_its_tangent():
    """At the place where it entered, to a hundredth of the radius; a turned solid has turned tangents."""
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    for shape in (
        Sphere((0, 0, 0), 0.1),
        Cylinder((0, -1, 0), (0, 1, 0), 0.1),
        Capsule((0, -1, 0), (0, 1, 0), 0.1),
        Posed(Cylinder((0, 0, -1), (0, 0, 1), 0.1), (0, 0, 0), tilt),
    ):
        distance, normal = measured(shape, [((0, 0, 0.2), (0, 0, -0.2))])
        assert distance == pytest.approx([-0.3], abs=1e-3)
        assert normal[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-3)


@pytest.mark.parametrize(
    ("start", "end", "least", "most"),
    [
        ((0, 0, 0.02), (0, 0, -0.08), 0.2, 0.21),  # from above, down to the depth
        ((0, 0, 0), (0, 0, -0.5), 0.0, 0.002),  # from the surface
        ((0, 0, 0), (0.1, 0, -0.0005), 1.0, 1.0),  # along it
        ((-0.3, 0, -0.03), (0.3, 0, -0.03), 1 / 6, 1 / 6 + 0.001 / 0.6),  # from the side
        ((0, 0, -0.005), (0, 0, 0.02), 1.0, 1.0),  # out of the slab
        ((0, 0, -0.005), (0, 0, -0.02), 0.0, 0.0),  # deeper into it
        ((-0.3, 0, 0.001), (0.3, 0, 0.001), 1.0, 1.0),  # past it
    ],
)
def test_a_path_is_free_of_a_solid_until_it_enters_deeper_than_it_began(start, end, least, most):
    model, (x, y) = obstacle_and_ends(SLAB, [(start, end)])
    free = wp.zeros(1, dtype=real, device=model.device)
    wp.launch(free_kernel, 1, [model.obstacles, 0.001, x, y], [free], device=model.device)
    assert least - 1e-6 <= free.numpy()[0] <= most + 1e-6


def test_a_path_may_cut_a_corner():
    """A right angle, and the shoulder of a ball: what counts is where it ends. So does a short path, and one outside."""
    corner = [((0.15, 0.0, 0.01), (0.21, 0.0, -0.05)), ((0.19, 0.0, 0.01), (0.205, 0.0, -0.01))]
    short, outside = ((0.0, 0.0, 0.001), (0.0, 0.0, -0.015)), ((0.0, 0.0, 0.3), (0.1, 0.1, 0.05))
    paths = [*corner, short, outside]
    distance, normal = measured(SLAB, paths)
    assert distance == pytest.approx([0.01, 0.005, -0.015, 0.05], abs=1e-6)
    assert normal[:2] == pytest.approx(np.tile([1.0, 0.0, 0.0], (2, 1)), abs=1e-6)
    shoulder = [((-0.06, 0.0, 0.085), (0.06, 0.0, 0.085))]
    distance, normal = measured(Sphere((0, 0, 0), 0.1), shoulder)
    assert distance == pytest.approx([np.hypot(0.06, 0.085) - 0.1], abs=1e-6)
    assert normal[0] == pytest.approx(np.array([0.06, 0.0, 0.085]) / np.hypot(0.06, 0.085), abs=1e-5)


@pytest.mark.parametrize("dt", [0.02, 0.1])
def test_a_blade_in_a_crack_does_not_come_out_below(dt):
    """A crack whose walls are thin beside the way of the blade in a step."""
    found = run("ridge in a crack", "obstacle", dt)
    assert found.depth < 1e-4, found.end  # edges cut edges of the crack by 6e-5 m in some of its starts
    assert not found.why


@pytest.mark.parametrize("dt", [0.01, 0.05])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("cube", SLAB), ("cloth", SLAB), ("cube", Sphere((0, 0, -0.06), 0.06))],
    ids=lambda s: str(s)[:4],
)
def test_what_is_thrown_at_an_obstacle_stays_on_its_side(kind, shape, dt):
    """At 8 m/s, by up to 40 cm in a step, onto what is 6 and 12 cm thick; and no step has to be shorter for that."""
    if kind == "cube":
        body = SoftBody("body", Box((-0.03, -0.03, 0.01), (0.03, 0.03, 0.07)), MATERIAL, velocity=(0, 0, -8.0))
    else:
        sheet = Sheet.rectangle((-0.05, -0.05), (0.05, 0.05), 1e-3, (5, 5), height=0.01)
        body = SoftBody("body", sheet, MATERIAL, velocity=(0, 0, -8.0))
    sim = Simulation(Scene((body,), obstacles=(Obstacle(shape, friction=0.5),)), ProjectiveDynamics(0.02), dt)
    state = sim.state()
    for _ in range(3):
        state = sim.step(state, torch.zeros(0))
        x = state.position[0].cpu().double().numpy()
        assert signed_distance(shape, x).min() > -1e-3 * 0.02
        assert x[:, 2].mean() > -0.06
        assert state.shorter_steps.max() == 0
