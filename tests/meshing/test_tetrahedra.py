"""Solids become tetrahedra: positive ones that fit, of the right size, the same ones every time."""

import importlib.util
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import trimesh

from warpbots.contact import sampled_surface, signed_distance
from warpbots.meshing import ftetwild, quality, tetrahedra
from warpbots.meshing.self_intersection import crossings
from warpbots.output_files import cache_folder
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    SceneError,
    Sheet,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)

TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def mesh_of(shape):
    return TriangleMesh(np.array(shape.vertices), np.array(shape.faces))


def ball_grid():
    grid = np.stack(np.meshgrid(*3 * [np.linspace(-0.3, 0.3, 31)], indexing="ij"), axis=-1)
    return DistanceGrid(np.linalg.norm(grid, axis=-1) - 0.2, (-0.3, -0.3, -0.3), 0.02)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache that is empty, on disk and in the process."""
    monkeypatch.setenv("WARPBOTS_CACHE", str(tmp_path))
    monkeypatch.setattr(ftetwild, "_known", type(ftetwild._known)())
    return tmp_path / "meshes"


# boxes


def test_a_box_is_cut_on_a_grid():
    """Its cells are as near to the wanted size as whole numbers allow, and at least one."""
    mesh = tetrahedra(Box((0.1, 0.2, 0.3), (0.5, 0.4, 0.32)), 0.1)
    assert len(mesh.tets) == 6 * 4 * 2 * 1
    assert mesh.volume == pytest.approx(0.4 * 0.2 * 0.02)
    np.testing.assert_allclose(mesh.volumes, mesh.volume / 48)
    np.testing.assert_allclose(np.unique(mesh.vertices[:, 0]), [0.1, 0.2, 0.3, 0.4, 0.5])
    assert len(mesh.surface) == 2 * 2 * (4 * 2 + 4 * 1 + 2 * 1)


@pytest.mark.parametrize("counts", [(2, 4, 6), (2, 2, 2), (3, 1, 2)])
def test_a_mesh_of_a_box_is_its_own_mirror_image(counts):
    """About the middle of every axis with an even number of cells."""
    mesh = tetrahedra(Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)), 1.0)
    mesh = TetMesh(mesh.vertices, mesh.tets) if counts == (2, 2, 2) else box_of(counts)
    cells = {tuple(sorted(map(tuple, c))) for c in mesh.vertices[mesh.tets].round(9).tolist()}
    for axis, count in enumerate(counts):
        mirror = np.where(np.arange(3) == axis, -1.0, 1.0)
        mirrored = (mesh.vertices[mesh.tets] * mirror).round(9) + 0.0
        assert (cells == {tuple(sorted(map(tuple, c))) for c in mirrored.tolist()}) == (count % 2 == 0)


def box_of(counts):
    half = np.array(counts) / 2.0
    return tetrahedra(Box(tuple(-half), tuple(half)), 1.0)


# everything else

SOLIDS = {
    "sphere": (Sphere((0.1, 0.2, 0.3), 0.2), 0.08, 4.0 / 3.0 * math.pi * 0.2**3),
    "cylinder": (Cylinder((0.1, 0.2, 0.3), (0.5, 0.2, 0.1), 0.08), 0.06, math.pi * 0.08**2 * math.hypot(0.4, 0.2)),
    "capsule": (Capsule((0, 0, 0), (0, 0, -0.3), 0.08), 0.05, math.pi * 0.08**2 * (0.3 + 4.0 / 3.0 * 0.08)),
    "mesh": (mesh_of(trimesh.creation.torus(0.3, 0.1)), 0.05, trimesh.creation.torus(0.3, 0.1).volume),
    "union": (Union((Box((0, 0, 0), (0.2, 0.2, 0.2)), Box((0.1, 0.1, 0.1), (0.3, 0.3, 0.3)))), 0.05, 0.015),
    "distance grid": (ball_grid(), 0.07, 4.0 / 3.0 * math.pi * 0.2**3),
    "posed": (Posed(Sphere((0, 0, 0), 0.2), (1, 2, 3), TURN), 0.08, 4.0 / 3.0 * math.pi * 0.2**3),
    "tetrahedra in a union": (Union((tetrahedra(Box((0, 0, 0), (0.2, 0.2, 0.2)), 0.1),)), 0.06, 0.008),
    "truss": (Truss([[0, 0, 0], [0.3, 0, 0]], [[0, 1]], 0.05), 0.05, math.pi * 0.05**2 * (0.3 + 4.0 / 3.0 * 0.05)),
}
"""A shape, the size of its cells [m], and its volume [m^3]."""


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_filled(name):
    """Edges have about the size of a cell, another one each time; the volume is right but for the envelope of the surface."""
    shape, cell, volume = SOLIDS[name]
    mesh = tetrahedra(shape, cell)
    assert (mesh.volumes > 0.0).all()
    assert quality(mesh).mean_edge == pytest.approx(cell, rel=0.35)
    assert mesh.volume == pytest.approx(volume, rel=0.06 if name in ("distance grid", "mesh") else 0.01)
    assert (signed_distance(shape, mesh.vertices) < 0.2 * cell).all()
    np.testing.assert_allclose(mesh.bounds, shape.bounds if name != "distance grid" else [[-0.2] * 3, [0.2] * 3], atol=0.2 * cell)  # fmt: skip


def test_a_mesh_of_tetrahedra_is_taken_as_it_is():
    mesh = tetrahedra(Box((0, 0, 0), (1, 1, 1)), 0.5)
    assert tetrahedra(mesh, 0.01) is mesh
    moved = tetrahedra(Posed(mesh, (1, 2, 3), TURN), 0.01)
    np.testing.assert_allclose(moved.vertices, mesh.vertices @ np.array(TURN).T + [1, 2, 3])
    assert np.array_equal(moved.tets, mesh.tets)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (HalfSpace((0, 0, 0), (0, 0, 1)), "a HalfSpace is unbounded .* use a Box of the part you need"),
        (Heightfield((0, 0), 0.1, np.zeros((3, 3))), "a Heightfield is unbounded"),
        (Posed(HalfSpace((0, 0, 0), (0, 0, 1)), (0, 0, 0), TURN), "a Posed is unbounded"),
        (Sphere((0, 0), 0.1), "a Sphere in 2D has no tetrahedra; .* use MPM or MassSpring"),
        (Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1)), "a Sheet has no inside"),
        (Posed(Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1)), (0, 0, 0), TURN), "a Sheet has no inside"),
        (Union((Sheet.rectangle((0, 0), (1, 1), 0.1, (1, 1)),)), "a Sheet has no surface to fill"),
        (Points(np.zeros((1, 3)), [1.0]), "a Points has no surface to fill with tetrahedra; use a closed TriangleMesh"),
        (DistanceGrid(np.ones((4, 4, 4)), (0, 0, 0), 0.1), r"DistanceGrid: no cell of 0.1 m lies inside its surface"),
    ],
)
def test_what_cannot_be_filled(shape, message):
    with pytest.raises(SceneError, match=message):
        tetrahedra(shape, 0.1)


@pytest.mark.parametrize("size", [0.0, -0.1, math.nan, math.inf])
def test_a_cell_has_a_size(size):
    with pytest.raises(ValueError, match="cell_size must be a (positive length|finite number)"):
        tetrahedra(Box((0, 0, 0), (1, 1, 1)), size)


def test_a_sampled_surface_is_where_the_distance_is_zero():
    """Each vertex is the mean of crossings of edges, of which a curved surface makes an error of second order."""
    ball = Sphere((0.1, 0.2, 0.3), 0.2)
    vertices, faces = sampled_surface(ball, *ball.bounds, 0.02)
    assert np.abs(signed_distance(ball, vertices)).max() < 0.02**2 / 0.2
    assert TriangleMesh(vertices, faces).volume == pytest.approx(4.0 / 3.0 * math.pi * 0.2**3, rel=0.02)


# surfaces that intersect themselves


def doubled(move):
    """A ball, and another one that is moved by `move`, as one mesh."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.1)
    return trimesh.util.concatenate([ball, ball.copy().apply_translation((move, 0.0, 0.0))])


def test_a_mesh_that_crosses_itself_is_refused():
    with pytest.raises(SceneError, match=r"TriangleMesh intersects itself in \d+ pairs of faces; the first are \d+ and \d+ near .* m; give its parts as a Union of meshes, or repair it"):  # fmt: skip
        tetrahedra(mesh_of(doubled(0.1)), 0.05)


def test_the_parts_of_a_mesh_that_crosses_itself_are_filled():
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.1)
    parts = [mesh_of(ball), mesh_of(ball.copy().apply_translation((0.1, 0.0, 0.0)))]
    mesh = tetrahedra(Union(tuple(parts)), 0.04)
    lens = math.pi * 0.05**2 * (3 * 0.1 - 0.05) * 2 / 3  # two caps of half the height of a radius
    assert mesh.volume == pytest.approx(2 * 4 / 3 * math.pi * 1e-3 - lens, rel=0.06)  # of balls of 320 faces


def crossing_pairs(mesh):
    return len(crossings(np.array(mesh.vertices, dtype=float), np.array(mesh.faces)))


@pytest.mark.parametrize(("move", "crosses"), [(0.1, True), (0.19, True), (0.21, False), (0.5, False)])
def test_balls_cross_where_they_overlap(move, crosses):
    assert (crossing_pairs(doubled(move)) > 0) == crosses


def test_neighbours_do_not_cross():
    """Not even where one is folded onto the other."""
    folded = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.5, 0]], dtype=float)
    assert not len(crossings(folded, np.array([[0, 1, 2], [1, 0, 3]])))


def test_boxes_with_faces_in_one_plane():
    """They cross where they overlap, faces that lie on each other count, corners that touch do not."""
    cube = trimesh.creation.box((1.0, 1.0, 1.0))
    moved = {m: crossing_pairs(trimesh.util.concatenate([cube, cube.copy().apply_translation(m)])) for m in (
        (0.5, 0.0, 0.0), (1.0, 0.1, 0.0), (1.0, 1.0, 1.0), (1.0, 1.0, 0.1), (1.5, 0.0, 0.0))}  # fmt: skip
    assert [n > 0 for n in moved.values()] == [True, True, False, False, False]
    inside = trimesh.util.concatenate([cube, cube.copy().apply_scale(0.3)])
    assert crossing_pairs(inside) == 0


def test_crossings_are_those_that_edges_make(rng):
    """Random triangles cross where an edge of one runs through the other; and pairs are in order, each once."""
    corners = rng.uniform(-1.0, 1.0, (60, 3, 3))
    found = crossings(corners.reshape(-1, 3), np.arange(180).reshape(-1, 3))

    def pierces(p, q):
        for k in range(3):
            a, b = p[k], p[(k + 1) % 3]
            det = lambda *rows: np.linalg.det(np.stack(rows))
            ends = [det(*(q - x)) for x in (a, b)]
            sides = [det(b - a, q[i] - a, q[(i + 1) % 3] - a) for i in range(3)]
            if ends[0] * ends[1] < 0.0 and (min(sides) > 0.0 or max(sides) < 0.0):
                return True
        return False

    pairs = [(i, j) for i in range(60) for j in range(i + 1, 60)]
    expected = [[i, j] for i, j in pairs if pierces(corners[i], corners[j]) or pierces(corners[j], corners[i])]
    assert len(expected) > 100
    assert found.tolist() == expected


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_sound_meshes_do_not_cross_themselves(size):
    for mesh in (
        trimesh.creation.torus(1.0, 0.3),
        trimesh.creation.cylinder(0.3, 2.0, sections=64),
        trimesh.creation.annulus(0.2, 0.5, 1.0),
    ):
        assert crossing_pairs(mesh.apply_scale(size).apply_translation((size, 0.0, 0.0))) == 0


# the cache

CODE = """
import numpy as np
from warpbots.meshing import tetrahedra
from warpbots.scene import Sphere
mesh = tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
np.savez({path!r}, vertices=mesh.vertices, tets=mesh.tets)
"""


def test_one_scene_has_one_mesh(folder, tmp_path):
    """In another process, too, although the mesher finds another one each time."""
    ball = Sphere((0, 0, 0), 0.1)
    mesh = tetrahedra(ball, 0.06)
    assert tetrahedra(ball, 0.06) is mesh
    (file,) = folder.iterdir()
    subprocess.run([sys.executable, "-c", CODE.format(path=str(tmp_path / "other.npz"))], check=True)
    with np.load(tmp_path / "other.npz") as other:
        assert np.array_equal(other["vertices"], mesh.vertices)
        assert np.array_equal(other["tets"], mesh.tets)
    assert list(folder.iterdir()) == [file]
    ftetwild._known.clear()
    assert tetrahedra(ball, 0.06) == mesh
    tetrahedra(ball, 0.07)
    tetrahedra(Sphere((0, 0, 0), 0.11), 0.06)
    assert len(list(folder.iterdir())) == 3


def test_a_damaged_file_of_the_cache_is_made_anew(folder):
    tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
    (file,) = folder.iterdir()
    for damage in (b"", b"PK\x03\x04 nonsense", file.read_bytes()[:200]):
        file.write_bytes(damage)
        ftetwild._known.clear()
        mesh = tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
        ftetwild._known.clear()
        assert tetrahedra(Sphere((0, 0, 0), 0.1), 0.06) == mesh  # and written again


def test_no_cache_and_one_that_cannot_be_written_to(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("0", str(tmp_path / "file")):
        monkeypatch.setenv("WARPBOTS_CACHE", place)
        ftetwild._known.clear()
        assert tetrahedra(Sphere((0, 0, 0), 0.1), 0.06).volume > 0.0
    assert not folder.exists()


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("WARPBOTS_CACHE", "0")
    assert cache_folder("meshes") is None
    monkeypatch.delenv("WARPBOTS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder("meshes") == tmp_path / "warpbots" / "meshes"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder("meshes") == tmp_path / "local" / "warpbots" / "meshes"


def test_no_files_are_left_where_one_works(folder, monkeypatch, tmp_path):
    """fTetWild writes some into the folder in which it runs."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
    assert not list(work.iterdir())


def test_a_mesher_that_fails_says_so(folder, monkeypatch):
    for program, said in (("import os; os.abort()", "-6: no message"), ("raise RuntimeError('tired')", "1: RuntimeError: tired")):  # fmt: skip
        monkeypatch.setattr(ftetwild, "_PROGRAM", program)
        with pytest.raises(SceneError, match=rf"fTetWild failed on a surface of \d+ faces and 0.3\d* m in cells of 0.06 m \(exit status {said}\); use another"):  # fmt: skip
            tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
    empty = "import numpy as np; np.savez('mesh.npz', vertices=np.zeros((0, 3)), tets=np.zeros((0, 4), int))"
    monkeypatch.setattr(ftetwild, "_PROGRAM", empty)
    with pytest.raises(SceneError, match=r"nothing is left of a surface of 0.3\d* m in cells of 0.06 m"):
        tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)


def test_only_so_many_meshes_stay_in_the_process(folder, monkeypatch):
    monkeypatch.setattr(ftetwild, "_KEPT", 2)
    balls = [Sphere((0, 0, 0), r) for r in (0.1, 0.11, 0.12)]
    meshes = [tetrahedra(ball, 0.1) for ball in balls]
    assert [any(m is known for known in ftetwild._known.values()) for m in meshes] == [False, True, True]


def test_without_the_package_its_name_is_said(folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'meshing this shape needs pytetwild: pip install "warpbots\[tet\]"'):
        tetrahedra(Sphere((0, 0, 0), 0.1), 0.06)
    assert len(tetrahedra(Box((0, 0, 0), (1, 1, 1)), 1.0).tets) == 6


# quality


def test_quality_of_a_regular_tetrahedron():
    """All angles between its faces are acos(1/3), its volume is a^3 / (6 sqrt 2)."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    q = quality(TetMesh.oriented(corners, [[0, 1, 2, 3]]))
    assert (q.tets, q.min_volume, q.mean_volume) == (1, pytest.approx(8 / 3), pytest.approx(8 / 3))
    assert (q.min_angle, q.max_angle) == (pytest.approx(math.degrees(math.acos(1 / 3))),) * 2
    assert (q.min_edge, q.mean_edge, q.max_edge) == (pytest.approx(math.sqrt(8)),) * 3


def test_quality_of_a_box():
    """Kuhn's tetrahedra have angles of 45 to 90 degrees, and edges up to the diagonal of a cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = quality(tetrahedra(Box((0, 0, 0), (1, 1, 1)), 0.5))
    assert (q.tets, q.min_angle, q.max_angle) == (48, pytest.approx(45.0), pytest.approx(90.0))
    assert (q.min_edge, q.max_edge) == (pytest.approx(0.5), pytest.approx(0.5 * math.sqrt(3)))
    assert q.min_volume == pytest.approx(1 / 48)
    # of 27 nodes 54 edges along the axes, 36 diagonals of faces and 8 of cells
    assert q.mean_edge == pytest.approx(0.5 * (54 + 36 * math.sqrt(2) + 8 * math.sqrt(3)) / 98)
