"""Edges and corners of obstacles: which are sharp, and that they stay out of faces whose corners are outside."""

import dataclasses
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
    material = MATERIAL if kind == "cube" else dataclasses.replace(MATERIAL, law=Material.law)
    body = SoftBody("body", shape, material, velocity=(0, 0, -1.0))
    scene = Scene((body,), obstacles=(Obstacle(obstacle, name="below"),))
    sim = Simulation(scene, ProjectiveDynamics(0.06), dt)
    state = sim.state()
    for _ in range(8):
        state = sim.step(state, torch.zeros(0))
        assert penetration(obstacle, sim, state) < 0.01 * (1.1 / np.sin(angle) - 1.0) * sim.model.matter.edge


def rails(condition: str, friction: float, static: float | None = None) -> list[Obstacle]:
    """Two edges along x, which run between the nodes of a body of 24 cm."""
    up = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    beam = Box((-1, -0.05, -0.05), (1, 0.05, 0.05))
    places = [(0, y, -0.05 * 2**0.5) for y in (-0.09, 0.09)]
    return [
        Obstacle(Posed(beam, place, up), condition, friction, f"rail {k}", static_friction=static)
        for k, place in enumerate(places)
    ]


def sled(nu: float, speed: float) -> SoftBody:
    material = Material(1e6, nu, 1000.0, "corotated")
    return SoftBody(
        "sled", Box((-0.12, -0.12, 1e-5), (0.12, 0.12, 0.12)), material, velocity=(speed, 0, 0), friction=0.9
    )


def mean_velocity(sim: Simulation, state) -> torch.Tensor:
    """Velocity of the centre of mass along the rails [m/s], shape (worlds,)."""
    mass = torch.as_tensor(sim.model.matter.volume * sim.model.matter.density)
    return (state.velocity[:, :, 0].double() * mass).sum(dim=1) / mass.sum()


@pytest.mark.parametrize(("condition", "friction"), [("friction", 0.3), ("friction", 0.0), ("slip", 0.3)])
def test_a_body_on_rails_slides_by_the_friction_of_the_rails(condition, friction):
    """v = v0 - mu g t on two edges that run between its nodes, and v = v0 without friction."""
    scene = Scene((sled(0.3, 1.0),), obstacles=rails(condition, friction))
    sim = Simulation(scene, ProjectiveDynamics(0.12), 0.005)
    state, steps = sim.state(), 30
    for _ in range(steps):
        state = sim.step(state, torch.zeros(0))
    mu = friction if condition == "friction" else 0.0
    assert float(mean_velocity(sim, state)) == pytest.approx(1.0 - mu * 9.81 * steps * 0.005, abs=0.02)
    assert sim.report().contacts[0] > 0 and abs(float(state.position[0, :, 2].min())) < 5e-3


def tilted(slope: torch.Tensor) -> torch.Tensor:
    """Gravity on inclines of these slopes, shape (worlds, 3)."""
    angle = torch.atan(slope)
    return 9.81 * torch.stack([torch.sin(angle), torch.zeros_like(angle), -torch.cos(angle)], dim=-1)


def shear_of_contacts(sim: Simulation) -> np.ndarray:
    """Ratios of friction to pressure at all contacts of the last step that press, one array for each world."""
    model, sizes = sim.model, sim.model.topology.sizes
    z = model.matrices.of(sim.dt / sim.substeps).iteration.history.z.numpy().reshape(sim.worlds, sizes.stride, -1)
    force, contacts = z[:, sizes.first_contact :, :3], model.workspace.contact.contacts
    normal, listed = (a.numpy().reshape(sim.worlds, sizes.contacts, -1) for a in (contacts.normal, contacts.listed))
    pressure = (force * normal).sum(axis=-1)
    shear = np.linalg.norm(force - pressure[..., None] * normal, axis=-1)
    presses = (listed[..., 0] == 1) & (pressure > 1e-2 * pressure.max())
    return [s[p] / q[p] for s, q, p in zip(shear, pressure, presses, strict=True)]


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("friction", "gentle"), [(0.2, 0.3), (0.0, 0.1)])
def test_a_body_on_rails_sticks_up_to_the_static_coefficient(friction, gentle):
    """With a static coefficient of 0.5: on a gentle slope, on a slope of 0.6, and on the gentle one when pushed along.

    Only the first body sticks, with more than the sliding coefficient at its contacts. The others slide with g (sin -
    mu cos), which changes with mu by -g t cos. What sticks does not move if mu changes, although the static coefficient
    changes by as much.
    """
    dt, level, steps = 0.01, 20, 20
    scene = Scene((sled(0.0, 0.0),), obstacles=rails("friction", friction, 0.5))
    sim = Simulation(scene, ProjectiveDynamics(0.12, tolerance=1e-5), dt, worlds=3)
    slope, slides = torch.tensor([gentle, 0.6, gentle]), torch.tensor([False, True, True])
    state, most = sim.state(), 0.0
    for k in range(2 * level):  # a sudden change would make it ring
        state = sim.step(state, torch.zeros(0), gravity=tilted(slope * max(0.0, k / level - 1.0)))
        most = max(most, *(s.max() for s in shear_of_contacts(sim)))
    state.velocity[2, :, 0] += 0.5
    gravity, mu, start = tilted(slope), sim.parameter("friction").requires_grad_(), state
    for _ in range(steps):
        state = sim.step(state, torch.zeros(0), gravity=gravity, friction=mu)
    holds, *slid = shear_of_contacts(sim)
    assert 0.4 < most < 0.5 + 1e-3 and friction + 0.1 < holds.max() < 0.5 + 1e-3
    assert all(np.abs(s - friction).max() < 1e-3 for s in slid)
    rounding = sim.solver.tolerance * sim.model.matter.edge / dt
    assert state.velocity[0].abs().max() < 1e-6 + 3 * rounding
    gained, time = mean_velocity(sim, state) - mean_velocity(sim, start), steps * dt
    expected = (gravity[:, 0] + friction * gravity[:, 2]) * time
    torch.testing.assert_close(gained[slides], expected[slides], rtol=0.01, atol=0.0, check_dtype=False)
    (found,) = torch.autograd.grad(gained.sum(), mu)
    expected = torch.where(slides, gravity[:, 2] * time, 0.0)
    torch.testing.assert_close(found.sum(dim=1), expected, rtol=0.01, atol=0.01, check_dtype=False)
