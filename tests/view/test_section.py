"""Sections close bodies that are cut open exactly at the cut, in every motion of the body."""

import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.contact import signed_distance
from warpbots.scene import Box, HalfSpace, Material, Scene, SoftBody, Sphere, TriangleMesh
from warpbots.surfaces.section import clipped_triangles
from warpbots.surfaces.skin import skins_of
from warpbots.view.mesh_bodies import node_facets, node_meshes

CUBE = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
CORNER = HalfSpace((1.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""What is below the plane x + y + z = 1: a sixth of the cube."""
MIDDLE = HalfSpace((0.5, 0.5, 0.5), (1.0, 1.0, 1.0))
"""Half of the cube; the section is a regular hexagon with edges of half the diagonal of a face."""
F = np.array([[1.1, 0.2, 0.0], [-0.1, 0.9, 0.3], [0.05, 0.0, 1.2]])


def volume(corner):
    """Volume inside of triangles that face outwards, by the divergence theorem, from corners of shape (m, 3, 3)."""
    return float(np.linalg.det(corner).sum()) / 6.0


def area(corner):
    return float(np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1).sum()) / 2.0


def opened(shape, cut, solver, move=None):
    """Corners of all triangles that show a body, at rest or moved."""
    scene = Scene([SoftBody("body", shape, Material(1e5, 0.25, 1000.0))])
    matter = solver.build(scene, 1, "cpu").matter.drawn
    x = matter.position if move is None else matter.position @ move.T
    if matter.surfaces:
        return node_facets(node_meshes(scene, matter, cut), x, np.ones_like(x)).corner
    (skin,) = skins_of(scene, matter, cut)
    vertices, intact, _ = skin.at(x)
    assert intact.all()
    return vertices[skin.faces]


SOLVERS = {
    "tetrahedra": wb.ProjectiveDynamics(0.21),
    "quadratic": wb.ProjectiveDynamics(0.4, elements="quadratic_tetrahedra"),
    "particles": wb.MPM(dx=0.2),
    "lattice": wb.MassSpring(spacing=0.2),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("cut", "left"), [(CORNER, 5.0 / 6.0), (MIDDLE, 0.5)], ids=["corner", "middle"])
def test_an_oblique_plane_leaves_the_volume_on_its_other_side(solver, cut, left):
    """Exact, since the distance to a plane is linear; the borders of a section of particles are linear, too."""
    corner = opened(CUBE, cut, SOLVERS[solver])
    assert volume(corner) == pytest.approx(left, rel=1e-6 if "part" not in solver and solver != "lattice" else 2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_section_moves_with_the_body(solver):
    """An affine motion multiplies the volume by det F."""
    corner = opened(CUBE, MIDDLE, SOLVERS[solver], F)
    assert volume(corner) == pytest.approx(0.5 * np.linalg.det(F), rel=1e-2)


def test_the_section_is_a_hexagon():
    """Its area is 3/2 sqrt(3) a^2, with edges a of sqrt(1/2)."""
    corner = opened(CUBE, MIDDLE, SOLVERS["tetrahedra"])
    section = np.abs(signed_distance(MIDDLE, corner.reshape(-1, 3)).reshape(-1, 3)).max(axis=1) < 1e-9
    assert area(corner[section]) == pytest.approx(0.75 * np.sqrt(3.0), rel=1e-6)
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])[section]
    assert (normal @ np.ones(3) < 0.0).all()  # towards what is cut away


@pytest.mark.parametrize("solver", SOLVERS)
def test_edges_of_a_cut_are_sharp(solver):
    """A box that reaches into the cube takes away its own volume."""
    cut = Box((0.31, -1.0, 0.43), (0.72, 2.0, 2.0))
    assert volume(opened(CUBE, cut, SOLVERS[solver])) == pytest.approx(1.0 - 0.41 * 0.57, abs=2e-3)


@pytest.mark.parametrize("solver", ["tetrahedra", "particles"])
def test_a_chamber_is_open(solver):
    """A cube with a chamber of 0.4 m, cut through its middle."""
    outer, inner = trimesh.creation.box((1.0, 1.0, 1.0)), trimesh.creation.box((0.4, 0.4, 0.4))
    inner.invert()
    mesh = trimesh.util.concatenate([outer, inner])
    cut = HalfSpace((0.0, 0.0, 0.0), (0.0, 0.6, 0.8))
    corner = opened(TriangleMesh(mesh.vertices, mesh.faces), cut, SOLVERS[solver])
    assert volume(corner) == pytest.approx((1.0 - 0.4**3) / 2.0, rel=5e-3)


def test_a_round_cut_is_round():
    """A ball of 0.4 m in the middle; its surface is that of a polyhedron, slightly smaller."""
    corner = opened(CUBE, Sphere((0.5, 0.5, 0.5), 0.4), SOLVERS["tetrahedra"])
    assert volume(corner) == pytest.approx(1.0 - 4.0 / 3.0 * np.pi * 0.4**3, rel=5e-3)


def test_triangles_beside_a_cut_stay_as_they_are():
    x, faces = np.eye(3), np.array([[0, 1, 2]])
    part = clipped_triangles(x, faces, lambda at: at[:, 0] + 1.0)
    np.testing.assert_array_equal(part.at(x)[part.faces], x[faces])
    assert not len(clipped_triangles(x, faces, lambda at: -1.0 - at[:, 0]).faces)
