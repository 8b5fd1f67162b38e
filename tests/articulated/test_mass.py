"""Masses and moments of solids against those of their surfaces' triangles."""

import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    Material,
    Posed,
    RigidBody,
    Scene,
    SoftBody,
    Sphere,
    TriangleMesh,
    Union,
)
from warpbots.solvers.articulated.inertia import body_inertia, combine, solid_moments
from warpbots.solvers.articulated.point_cloud import surface_mesh

TURN = trimesh.transformations.random_rotation_matrix(np.array([0.2, 0.5, 0.8]))[:3, :3]
SOLIDS = {
    "box": Box((-0.1, 0.2, 0.3), (0.4, 0.5, 1.0)),
    "sphere": Sphere((0.3, -0.2, 0.1), 0.4),
    "capsule": Capsule((0.1, 0.2, 0.0), (0.4, -0.3, 0.6), 0.2),
    "cylinder": Cylinder((0.1, 0.2, 0.0), (0.4, -0.3, 0.6), 0.2),
    "posed": Posed(Box((0, 0, 0), (0.1, 0.2, 0.4)), (1.0, 2.0, 3.0), TURN),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_moments_are_those_of_a_fine_mesh(name):
    shape = SOLIDS[name]
    mesh = surface_mesh(shape)
    volume, center, moments = solid_moments(shape)
    fine = 1e-12 if name in ("box", "posed") else 0.02  # round surfaces are facets in the mesh
    assert np.isclose(volume, mesh.volume, rtol=fine)
    assert np.allclose(center, mesh.center_mass, atol=1e-6)
    # per volume what the facets cut off hardly counts
    exact, found = (
        np.linalg.eigvalsh(J) / V ** (5 / 3) for J, V in ((mesh.moment_inertia, mesh.volume), (moments, volume))
    )
    assert np.allclose(found, exact, rtol=max(fine / 4, 1e-9))
    assert np.allclose(
        moments / volume, mesh.moment_inertia / mesh.volume, atol=fine / 2 * np.abs(moments).max() / volume + 1e-12
    )


def test_a_mesh_is_the_body_that_it_bounds():
    box = trimesh.creation.box((0.2, 0.3, 0.5)).apply_translation((1.0, 0.0, 0.0))
    found = body_inertia(RigidBody("a", TriangleMesh(box.vertices, box.faces), 700.0))
    exact = body_inertia(RigidBody("a", Box((0.9, -0.15, -0.25), (1.1, 0.15, 0.25)), 700.0))
    assert np.isclose(found.mass, exact.mass, rtol=1e-12)
    assert np.allclose(found.center, exact.center)
    assert np.allclose(found.moments, exact.moments, rtol=1e-10, atol=1e-12)


def test_parts_add_up():
    """Two halves of a box are the box."""
    halves = Union((Box((0, 0, 0), (0.5, 1, 2)), Box((0.5, 0, 0), (1, 1, 2))))
    for found, exact in zip(solid_moments(halves), solid_moments(Box((0, 0, 0), (1, 1, 2))), strict=True):
        assert np.allclose(found, exact)
    assert combine([solid_moments(SOLIDS["sphere"])])[0] == solid_moments(SOLIDS["sphere"])[0]


@pytest.mark.parametrize(
    "solver", [wb.Articulated(), wb.ProjectiveDynamics(0.1), wb.Coupled(wb.MPM(0.05), wb.Articulated())]
)
def test_an_overlap_that_counts_twice_is_named(solver):
    """Two boxes of 10 kg share a quarter of each, which no solid fills twice."""
    boxes = Box((0, 0, 0), (0.2, 0.2, 0.25)), Box((0.15, 0, 0), (0.35, 0.2, 0.25))
    soft = SoftBody("soft", Box((1, 0, 0), (1.2, 0.2, 0.2)), Material(1e5, 0.3))

    def build(shape):
        rigid = RigidBody("pair", shape)
        solver.build(Scene([rigid] if isinstance(solver, wb.Articulated) else [rigid, soft]))

    for shape in (Union(boxes), Posed(Union(boxes), (0.5, 0, 0), TURN)):
        with pytest.warns(UserWarning, match=r"'pair': parts.* overlap.* twice: 20 kg instead of 17.\d* kg"):
            build(shape)
    build(Union((boxes[0], Box((0.2, 0, 0), (0.35, 0.2, 0.25)))))
