"""Tetrahedra and cloth from files."""

import builtins

import meshio
import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.scene import Box, SceneError

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [7, 7, 7]], dtype=float)
TETS = np.array([[0, 1, 2, 3], [3, 2, 1, 4]])  # the second one is inverted


def write(path, cells, points=CORNERS, **options):
    meshio.write(path, meshio.Mesh(points, cells), **options)
    return path


@pytest.mark.parametrize("name", ["m.vtk", "m.vtu", "m.msh", "m.inp", "m.mesh"])
def test_tetrahedra_of_a_file(name, tmp_path):
    """In millimetres; inverted ones are turned, nodes and cells that are no part of them are passed over."""
    path = write(tmp_path / name, [("triangle", [[0, 1, 2]]), ("tetra", TETS[:1]), ("tetra", TETS[1:])])
    mesh = wb.load_tetrahedra(path, 1e-3)
    np.testing.assert_allclose(mesh.vertices, 1e-3 * CORNERS[:5])
    assert mesh.tets.tolist() == [[0, 1, 2, 3], [2, 3, 1, 4]]
    assert mesh.volume == pytest.approx(0.5e-9)


def test_a_mesh_of_ours_there_and_back(tmp_path):
    mesh = wb.meshing.tetrahedra(Box((0, 0, 0), (0.1, 0.2, 0.3)), 0.1)
    assert wb.load_tetrahedra(write(tmp_path / "box.vtu", [("tetra", mesh.tets)], mesh.vertices)) == mesh


def test_what_holds_no_tetrahedra(tmp_path):
    path = write(tmp_path / "a.vtk", [("triangle", [[0, 1, 2]]), ("tetra10", [np.arange(10) % 6])])
    with pytest.raises(SceneError, match=r"a.vtk holds no tetrahedra of four nodes but 1 of type triangle, 1 of type tetra10; export"):  # fmt: skip
        wb.load_tetrahedra(path)
    for name in ("noise.vtk", "noise.msh", "noise.txt"):
        (tmp_path / name).write_bytes(b"noise\n" * 9)
        with pytest.raises(SceneError, match=f"{name} cannot be read as a mesh"):
            wb.load_tetrahedra(tmp_path / name)
    flat = write(tmp_path / "flat.vtk", [("tetra", [[0, 1, 2, 3]])], CORNERS[:4] * [1, 1, 0])
    with pytest.raises(SceneError, match=r"flat.vtk: TetMesh: of 1 tetrahedra 0 are inverted and 1 are flat"):
        wb.load_tetrahedra(flat)


def test_without_meshio_its_name_is_said(tmp_path, monkeypatch):
    path, real = write(tmp_path / "a.vtk", [("tetra", TETS)]), builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "meshio":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r'load_tetrahedra needs meshio: pip install "warpbots\[tet\]"'):
        wb.load_tetrahedra(path)


def plate():
    """Two squares along x as four triangles; their corners stand in the file for each triangle."""
    x = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0]], dtype=float)
    faces = np.array([[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]])
    return trimesh.Trimesh(x, faces, process=False)


@pytest.mark.parametrize("name", ["plate.stl", "plate.obj", "plate.ply"])
def test_cloth_of_a_file(name, tmp_path):
    plate().export(tmp_path / name)
    sheet = wb.load_sheet(tmp_path / name, 1e-3, scale=0.1, bending=0.2)
    assert (len(sheet.vertices), len(sheet.faces)) == (6, 4)
    assert sheet.area == pytest.approx(0.02)
    assert (sheet.thickness, sheet.bending) == (1e-3, 0.2)
    a, b, c = (sheet.vertices[sheet.faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()


def test_cloth_has_no_seam_where_its_texture_has_one(tmp_path):
    """Vertices that differ in their place in an image alone are one."""
    lines = ["v 0 0 0", "v 1 0 0", "v 1 1 0", "v 0 1 0", *(f"vt {k} 0" for k in range(6))]
    (tmp_path / "flag.obj").write_text("\n".join([*lines, "f 1/1 2/2 3/3", "f 1/4 3/5 4/6", ""]))
    sheet = wb.load_sheet(tmp_path / "flag.obj", 1e-3)
    assert (len(sheet.vertices), len(sheet.faces)) == (4, 2)


def test_what_is_no_cloth(tmp_path):
    mesh = plate()
    mesh.faces = np.vstack([mesh.faces, [0, 1, 2]])
    mesh.export(tmp_path / "bad.ply")
    with pytest.raises(SceneError, match=r"bad.ply: Sheet: 1 of 5 triangles have no area"):
        wb.load_sheet(tmp_path / "bad.ply", 1e-3)
    plate().export(tmp_path / "bad.ply")
    with pytest.raises(SceneError, match=r"bad.ply: Sheet.thickness must be a positive number"):
        wb.load_sheet(tmp_path / "bad.ply", 0.0)
