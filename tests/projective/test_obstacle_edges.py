"""Edges and corners of obstacles: which are sharp, and that they stay out of faces whose corners are outside."""

import itertools

import numpy as np
import pytest
import torch
import trimesh
from scipy.spatial.transform import Rotation
from test_degenerate_contact import prism

from warpbots.contact import signed_distance
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    Material,
    Obstacle,
    Posed,
    Scene,
    Sheet,
    SoftBody,
    Sphere,
    TriangleMesh,
    Union,
)
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact.obstacle_edges import obstacle_edges_of

MATERIAL = Material(1e5, 0.3, 1000.0, "corotated")
TURN = Rotation.from_euler("xyz", [20, 30, 40], degrees=True).as_matrix()


def mesh(vertices, faces) -> TriangleMesh:
    return TriangleMesh(np.array(vertices, dtype=float), np.array(faces))


BLOCK = trimesh.creation.box(extents=(2, 4, 6))
BALL = trimesh.creation.icosphere(3, 0.3)
STAIR = prism(
    np.array([(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2)]),
    [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (5, 4, 7), (5, 7, 6)],
    np.array([0.0, 3.0]),
)


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        (Box((0, 0, 0), (1, 2, 3)), 4 * (1 + 2 + 3)),
        (Posed(Box((0, 0, 0), (1, 2, 3)), (5, 0, 0), TURN), 4 * (1 + 2 + 3)),
        (mesh(BLOCK.vertices, BLOCK.faces), 4 * (2 + 4 + 6)),
        (mesh(STAIR.vertices, STAIR.surface), 2 * 8 + 5 * 3),
        (Cylinder((0, 0, 0), (0, 0, 1), 0.5), 2 * 2 * np.pi * 0.5),
        (mesh(BALL.vertices, BALL.faces), 0),
        (Sphere((0, 0, 0), 1), 0),
        (Capsule((0, 0, 0), (0, 0, 1), 0.1), 0),
        (HalfSpace((0, 0, 0), (0, 0, 1)), 0),
        (Union((Box((0, 0, 0), (1, 1, 1)), Sphere((3, 0, 0), 1))), 12),
    ],
    ids=lambda s: type(s).__name__ if not isinstance(s, int | float) else "",
)
def test_sharp_edges_are_those_that_stick_out(shape, length):
    """By their total length; the inner corner of a stair, diagonals of flat faces, and round surfaces have none.

    They are once for each size of elements, a hundredth of it under all faces.
    """
    body = SoftBody("body", Box((9, 9, 9), (10, 10, 10)), MATERIAL)
    sizes = np.array([0.02, 0.1])
    found = obstacle_edges_of(Scene((body,), obstacles=(Obstacle(shape),)), sizes)
    for size in sizes:
        edges = found.edges[found.edge[found.edges[:, 0]] == size]
        ends = found.position[edges]
        assert np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).sum() == pytest.approx(length, rel=0.01)
        depth = -signed_distance(shape, found.position[np.unique(edges)])
        np.testing.assert_allclose(depth, 0.01 * size, atol=3e-4 * size)


def penetration(solid: TriangleMesh | Box, sim: Simulation, state) -> float:
    """How deep a surface is inside a solid, or a vertex of the solid inside a closed surface [m]."""
    x, faces = state.position[0].double().numpy(), sim.model.matter.meshes[0].faces
    weights = np.array([w for w in itertools.product(np.linspace(0, 1, 21), repeat=3) if abs(sum(w) - 1) < 1e-9])
    on_faces = np.einsum("sk,fki->fsi", weights, x[faces]).reshape(-1, 3)
    depth = -signed_distance(solid, on_faces).min()
    if len(sim.model.matter.tets):
        depth = max(depth, -signed_distance(TriangleMesh(x, faces), vertices_of(solid)).min())
    return float(depth)


def vertices_of(solid: TriangleMesh | Box) -> np.ndarray:
    return (
        solid.vertices
        if isinstance(solid, TriangleMesh)
        else np.array(list(itertools.product(*zip(*solid.bounds, strict=True))))
    )


PYRAMID = mesh(
    [(-0.03, -0.03, -0.1), (0.03, -0.03, -0.1), (0.03, 0.03, -0.1), (-0.03, 0.03, -0.1), (0, 0, 0)],
    [(0, 2, 1), (0, 3, 2), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)],
)
TABLE = Box((-0.1, -0.1, -0.2), (0.013, 0.017, 0.0))


@pytest.mark.parametrize("dt", [0.002, 0.01])
@pytest.mark.parametrize(
    ("obstacle", "angle"), [(PYRAMID, np.arctan(0.3)), (TABLE, np.pi / 4)], ids=["spike", "corner"]
)
@pytest.mark.parametrize("kind", ["cube", "cloth"])
def test_nothing_is_pierced_by_an_obstacle_between_its_nodes(kind, obstacle, angle, dt):
    """A spike, and the corner of a table, in the middle of faces of 6 cm.

    They are rounded to a hundredth of an edge, which takes 1 / sin(angle) - 1 times as much off a tip of this half angle.
    """
    if kind == "cube":
        shape = Box((-0.03, -0.03, 0.004), (0.03, 0.03, 0.064))
    else:
        shape = Sheet.rectangle((-0.09, -0.09), (0.09, 0.09), 1e-3, (3, 3), height=0.004)
    body = SoftBody("body", shape, MATERIAL, velocity=(0, 0, -1.0))
    scene = Scene((body,), obstacles=(Obstacle(obstacle, name="below"),))
    sim = Simulation(scene, ProjectiveDynamics(0.06), dt)
    state = sim.state()
    for _ in range(8):
        state = sim.step(state, torch.zeros(0))
        assert penetration(obstacle, sim, state) < 0.01 * (1.1 / np.sin(angle) - 1.0) * sim.model.matter.edge


@pytest.mark.parametrize(("condition", "friction"), [("friction", 0.3), ("friction", 0.0), ("slip", 0.3)])
def test_a_body_on_rails_slides_by_the_friction_of_the_rails(condition, friction):
    """v = v0 - mu g t on two edges that run between its nodes, and v = v0 without friction."""
    up = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    half = 0.05
    rails = [
        Obstacle(
            Posed(Box((-1, -half, -half), (1, half, half)), (0, y, -half * 2**0.5), up),
            condition,
            friction,
            f"rail {k}",
        )
        for k, y in enumerate((-0.09, 0.09))
    ]
    material = Material(1e6, 0.3, 1000.0, "corotated")
    body = SoftBody("sled", Box((-0.12, -0.12, 1e-5), (0.12, 0.12, 0.12)), material, velocity=(1.0, 0, 0), friction=0.9)
    sim = Simulation(Scene((body,), obstacles=rails), ProjectiveDynamics(0.12), 0.005)
    state, steps = sim.state(), 30
    for _ in range(steps):
        state = sim.step(state, torch.zeros(0))
    mass = torch.as_tensor(sim.model.matter.volume * sim.model.matter.density)
    velocity = float((state.velocity[0, :, 0].double() * mass).sum() / mass.sum())
    mu = friction if condition == "friction" else 0.0
    assert velocity == pytest.approx(1.0 - mu * 9.81 * steps * 0.005, abs=0.02)
    assert sim.report().contacts[0] > 0 and abs(float(state.position[0, :, 2].min())) < 5e-3
