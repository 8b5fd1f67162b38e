"""Shapes of tetrahedra and of cloth: what they are, how far things are from them, what they weigh, what they refuse."""

import dataclasses
import itertools

import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.contact import signed_distance
from warpbots.meshing import tetrahedra
from warpbots.scene import Box, Posed, SceneError, Sheet, TetMesh, TriangleMesh, Union, sheets_of
from warpbots.scene.shapes import dimension
from warpbots.solvers.articulated.inertia import solid_moments
from warpbots.solvers.articulated.point_cloud import surface_mesh

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
TETS = [[0, 1, 2, 3], [2, 3, 1, 4]]
TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def test_volumes_bounds_and_surface():
    """The second tetrahedron has the volume |det| / 6 of the edges from (0, 1, 0): 1/3."""
    mesh = TetMesh(CORNERS, TETS)
    np.testing.assert_allclose(mesh.volumes, [1 / 6, 1 / 3])
    assert mesh.volume == pytest.approx(0.5)
    np.testing.assert_array_equal(mesh.bounds, [[0, 0, 0], [1, 1, 1]])
    assert len(mesh.surface) == 6
    assert {frozenset(f) for f in mesh.surface.tolist()} == {
        frozenset(f) for t in TETS for f in itertools.combinations(t, 3)
    } - {frozenset({1, 2, 3})}
    assert TriangleMesh(CORNERS, mesh.surface).volume == pytest.approx(0.5)  # closed, and its faces look outwards
    assert np.array_equal(TriangleMesh(CORNERS, mesh.surface).faces, mesh.surface)
    assert (dimension(mesh), mesh) == (3, TetMesh(CORNERS, TETS))
    assert mesh != TetMesh(CORNERS + 1.0, TETS)


def test_arrays_of_meshes_cannot_be_written_to():
    mesh, sheet = TetMesh(CORNERS, TETS), Sheet.rectangle((0, 0), (1, 1), 0.1, (2, 2))
    for array in (mesh.vertices, mesh.tets, mesh.surface, mesh.volumes, sheet.vertices, sheet.faces):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_tetrahedra_in_any_order_are_oriented():
    for order in itertools.permutations(range(4)):
        mesh = TetMesh.oriented(CORNERS, [[0, 1, 2, 3], np.array([2, 3, 1, 4])[list(order)]])
        np.testing.assert_allclose(mesh.volumes, [1 / 6, 1 / 3])
    given = np.array([[1, 0, 2, 3]])
    TetMesh.oriented(CORNERS[:4], given)
    assert given.tolist() == [[1, 0, 2, 3]]  # what is given stays as it is


@pytest.mark.parametrize(
    ("vertices", "tets", "message"),
    [
        (CORNERS, [[0, 1, 2, 3], [3, 2, 1, 4]], r"of 2 tetrahedra 1 are inverted and 0 are flat; the first is 1 with the vertices \[3, 2, 1, 4\] at \[\[0.0, 0.0, 1.0\], .* a volume of -0.333333 m\^3; TetMesh.oriented"),
        ([*CORNERS[:3], [1, 1, 0]], [[0, 1, 2, 3]], r"0 are inverted and 1 are flat; .* a volume of 0 m\^3; mesh the solid again or remove flat ones"),
        ([*CORNERS[:3], [0.2, 0.2, 1e-10]], [[0, 1, 2, 3]], "1 are flat"),
        (CORNERS, [[0, 1, 2, 9]], r"TetMesh.tets must index vertices 0 to 4, got 0 to 9"),
        (CORNERS, [[0, 1, 2, 3], [1, 1, 2, 4]], r"TetMesh.tets: 1 of 2 have a vertex twice; the first is 1 with \[1, 1, 2, 4\]"),
        (CORNERS, [[0, 1, 2, 3]], r"TetMesh: 1 of 5 vertices belong to no tetrahedron, the first is 4 at \[1.0, 1.0, 1.0\] m; remove them"),
        (CORNERS, [[0, 1, 2]], r"needs \(n, 3\) vertices and \(m, 4\) tets, got \(5, 3\) and \(1, 3\)"),
        ([[0, 0, np.nan]], [[0, 1, 2, 3]], r"TetMesh: vertices must be finite, got nan at index \(0, 2\)"),
        (np.vstack([CORNERS, [2, 2, 1]]), [*TETS, [2, 3, 1, 5]], r"the face of the vertices \[1, 2, 3\] belongs to 3 tetrahedra"),
        (np.vstack([CORNERS[:4], [0.1, 0.1, 0.1]]), [[0, 1, 2, 3], [4, 1, 2, 3]], r"the tetrahedra 0 and 1 are on the same side of the face"),
    ],
)  # fmt: skip
def test_what_is_no_mesh_of_tetrahedra(vertices, tets, message):
    with pytest.raises(SceneError, match=message):
        TetMesh(vertices, tets)


def test_flat_ones_stay_flat_when_oriented():
    with pytest.raises(SceneError, match="0 are inverted and 1 are flat"):
        TetMesh.oriented([*CORNERS[:3], [1, 1, 0]], [[0, 1, 2, 3]])


def test_a_rectangle_of_cloth():
    """Faces look upwards; with even numbers of cells the mesh is its own mirror image, in x and in y."""
    sheet = Sheet.rectangle((-1.0, -2.0), (1.0, 2.0), 0.1, (4, 6), height=0.5)
    assert (len(sheet.vertices), len(sheet.faces)) == (35, 48)
    assert sheet.area == pytest.approx(8.0)
    np.testing.assert_allclose(sheet.areas, 8.0 / 48)
    np.testing.assert_allclose(sheet.bounds, [[-1.05, -2.05, 0.45], [1.05, 2.05, 0.55]])
    a, b, c = (sheet.vertices[sheet.faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()
    faces = {frozenset(map(tuple, sheet.vertices[f].round(9).tolist())) for f in sheet.faces}
    for axis in (0, 1):
        mirror = np.where(np.arange(3) == axis, -1.0, 1.0)
        assert faces == {frozenset(map(tuple, (sheet.vertices[f] * mirror).round(9).tolist())) for f in sheet.faces}
    assert (sheet.bending, Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1), bending=0.2).bending) == (None, 0.2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sheet(CORNERS[:4], [[0, 1, 2], [1, 0, 3]], 0.0), "Sheet.thickness must be a positive number, got 0"),
        (lambda: Sheet(CORNERS[:3], [[0, 1, 2]], 0.1, -1.0), r"Sheet.bending must be a flexural rigidity >= 0 \[N m\].*got -1"),
        (lambda: Sheet(CORNERS, [[0, 1, 7]], 0.1), "Sheet.faces must index vertices 0 to 4, got 0 to 7"),
        (lambda: Sheet(CORNERS, [[0, 1, 1]], 0.1), r"Sheet.faces: 1 of 1 have a vertex twice; the first is 0 with \[0, 1, 1\]"),
        (lambda: Sheet([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], 0.1), r"1 of 1 triangles have no area; the first is 0 with the vertices \[0, 1, 2\]"),
        (lambda: Sheet(CORNERS, [[0, 1, 2], [1, 0, 3], [0, 1, 4]], 0.1), r"1 edges belong to more than two faces; the first is \[0, 1\] with 3 faces"),
        (lambda: Sheet(CORNERS[:4], [[0, 1, 2], [0, 1, 3]], 0.1), r"1 pairs of neighbours have opposite orientations; .* the faces 0 and 1 at the edge \[0, 1\]; swap two vertices"),
        (lambda: Sheet(CORNERS, [[0, 1, 2]], 0.1), r"2 of 5 vertices belong to no face, the first is 3 at \[0.0, 0.0, 1.0\] m; remove them"),
        (lambda: Sheet(CORNERS, [[0, 1, 2, 3]], 0.1), r"needs \(n, 3\) vertices and faces, got \(5, 3\) and \(1, 4\)"),
        (lambda: Sheet.rectangle((0, 0), (1, 0), 0.1, (1, 1)), "both coordinates of lower .* must be below upper"),
        (lambda: Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 0)), "cells must be two whole numbers >= 1, got"),
    ],
)  # fmt: skip
def test_what_is_no_sheet(make, message):
    with pytest.raises(SceneError, match=message):
        make()


def test_sheets_within_shapes():
    sheet = Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1), bending=0.2)
    inside = Union((Box((0, 0, 0), (1, 1, 1)), Posed(Union((sheet,)), (1, 2, 3), TURN)))
    (found,) = sheets_of(inside)
    np.testing.assert_allclose(found.vertices[1], [0, 2, 3])  # (0, 1, 0) is turned to (-1, 0, 0) and moved
    assert (found.thickness, found.bending) == (0.1, 0.2)
    assert sheets_of(Box((0, 0, 0), (1, 1, 1))) == ()


# distances and moments


def test_distance_to_tetrahedra_is_that_to_the_box_they_fill(rng):
    box = Box((0.1, 0.2, 0.3), (0.5, 0.4, 0.6))
    x = rng.uniform(-0.2, 1.0, (500, 3))
    np.testing.assert_allclose(signed_distance(tetrahedra(box, 0.1), x), signed_distance(box, x), atol=1e-6)


def test_distance_to_a_sheet_is_that_to_a_rounded_plate(rng):
    """Beyond its edges too: the distance to the rectangle in the middle, less half the thickness."""
    sheet = Sheet.rectangle((0.0, 0.0), (0.4, 0.2), 0.05, (3, 3), height=0.1)
    x = rng.uniform(-0.2, 0.6, (500, 3))
    nearest = np.clip(x, [0.0, 0.0, 0.1], [0.4, 0.2, 0.1])
    np.testing.assert_allclose(signed_distance(sheet, x), np.linalg.norm(x - nearest, axis=1) - 0.025, atol=1e-6)


def test_a_closed_sheet_is_hollow():
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.2)
    sheet = Sheet(ball.vertices, ball.faces, 0.02)
    np.testing.assert_allclose(signed_distance(sheet, np.array([[0, 0, 0], [0.3, 0, 0]])), [0.19, 0.09], atol=2e-3)


def test_moments_of_tetrahedra_are_those_of_the_box_they_fill():
    box = Box((0.1, 0.2, 0.3), (0.5, 0.4, 0.6))
    for shape, mesh in (
        (box, tetrahedra(box, 0.1)),
        (Posed(box, (1, 2, 3), TURN), tetrahedra(Posed(box, (1, 2, 3), TURN), 0.07)),
    ):
        for found, expected in zip(solid_moments(mesh), solid_moments(shape), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_tetrahedra_may_be_rigid():
    mesh = tetrahedra(Box((0, 0, 0), (0.1, 0.1, 0.1)), 0.05)
    assert surface_mesh(mesh).area == pytest.approx(0.06)
    scene = wb.Scene((wb.RigidBody("b", mesh),))
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    assert float(sim.center_of_mass(sim.state())[0, 2]) == pytest.approx(0.05)


# solvers


def scene(shape):
    return wb.Scene((wb.SoftBody("b", shape, wb.Material(1e5)),), gravity=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("solver", [wb.MPM(0.05), wb.MassSpring(0.05)])
def test_solvers_of_solids_fill_tetrahedra(solver):
    """The body has exactly its volume, as one of a closed triangle mesh has."""
    mesh = TetMesh.oriented(0.3 * CORNERS, TETS)
    particles = solver.build(scene(mesh), 1, "cpu").matter
    assert particles.volume.sum() == pytest.approx(mesh.volume)
    assert (signed_distance(mesh, particles.position) <= 0.05).all()


@pytest.mark.parametrize("solver", [wb.MPM(0.05), wb.MassSpring(0.05)])
@pytest.mark.parametrize("pack", [lambda s: s, lambda s: Posed(s, (0, 0, 0), TURN), lambda s: Union((s,))])
def test_solvers_of_solids_refuse_sheets(solver, pack):
    sheet = Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1))
    name = type(solver).__name__
    with pytest.raises(SceneError, match=f"{name} simulates solids; SoftBody 'b' is a Sheet: use ProjectiveDynamics"):
        solver.build(scene(pack(sheet)), 1, "cpu")


def test_sheets_and_tetrahedra_can_be_replaced_in_part():
    sheet = Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1))
    assert dataclasses.replace(sheet, thickness=0.2).areas.sum() == sheet.area
    assert dataclasses.replace(TetMesh(CORNERS, TETS), vertices=2.0 * CORNERS).volume == pytest.approx(4.0)
