"""Solids, tetrahedra and cloth from files."""

import base64
import builtins
import importlib.util
import itertools
import json

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
    mesh = wb.shapes.load_tetrahedra(path, 1e-3)
    np.testing.assert_allclose(mesh.vertices, 1e-3 * CORNERS[:5])
    assert mesh.tets.tolist() == [[0, 1, 2, 3], [2, 3, 1, 4]]
    assert mesh.volume == pytest.approx(0.5e-9)


def test_a_mesh_of_ours_there_and_back(tmp_path):
    mesh = wb.meshing.tetrahedra(Box((0, 0, 0), (0.1, 0.2, 0.3)), 0.1)
    assert wb.shapes.load_tetrahedra(write(tmp_path / "box.vtu", [("tetra", mesh.tets)], mesh.vertices)) == mesh


def test_what_holds_no_tetrahedra(tmp_path):
    path = write(tmp_path / "a.vtk", [("triangle", [[0, 1, 2]]), ("hexahedron", [np.arange(8) % 6])])
    with pytest.raises(SceneError, match=r"a.vtk has no tetrahedra but 1 of type triangle, 1 of type hexahedron; export"):  # fmt: skip
        wb.shapes.load_tetrahedra(path)
    for name in ("noise.vtk", "noise.msh", "noise.txt"):
        (tmp_path / name).write_bytes(b"noise\n" * 9)
        with pytest.raises(SceneError, match=f"{name} cannot be read as a mesh"):
            wb.shapes.load_tetrahedra(tmp_path / name)
    flat = write(tmp_path / "flat.vtk", [("tetra", [[0, 1, 2, 3]])], CORNERS[:4] * [1, 1, 0])
    with pytest.raises(SceneError, match=r"flat.vtk: TetMesh: of 1 tetrahedra 0 are inverted and 1 are flat"):
        wb.shapes.load_tetrahedra(flat)


def quadratic(path, shift):
    """A tetrahedron with midside nodes, the last of which is moved along its edge of length sqrt(2) by a vector."""
    corners = np.vstack([np.zeros(3), np.eye(3)])
    middles = [(corners[a] + corners[b]) / 2 for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))]
    points = np.vstack([corners, middles])
    points[-1] += shift
    return write(path, [("tetra10", [np.arange(10)])], points)


def test_quadratic_tetrahedra_become_straight(tmp_path):
    """Silently where they are; with a warning where they are curved, and not at all where a node is off its edge."""
    mesh = wb.shapes.load_tetrahedra(quadratic(tmp_path / "a.vtu", [0, 0, 0]))
    assert (len(mesh.vertices), mesh.tets.tolist()) == (4, [[0, 1, 2, 3]])
    with pytest.warns(
        UserWarning, match=r"(?s)b.vtu: .*node 9 of the quadratic tetrahedron 0 is 0.141 lengths .* straight"
    ):
        wb.shapes.load_tetrahedra(quadratic(tmp_path / "b.vtu", [0.2, 0, 0]))
    with pytest.raises(
        SceneError, match=r"c.vtu: node 9 of the quadratic tetrahedron 0 is 0.566 lengths of its edge off"
    ):
        wb.shapes.load_tetrahedra(quadratic(tmp_path / "c.vtu", [0.8, 0, 0]))


def test_without_meshio_its_name_is_said(tmp_path, monkeypatch):
    path, real = write(tmp_path / "a.vtk", [("tetra", TETS)]), builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "meshio":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r'load_tetrahedra needs meshio: pip install "warpbots\[tet\]"'):
        wb.shapes.load_tetrahedra(path)


def plate():
    """Two squares along x as four triangles; their corners stand in the file for each triangle."""
    x = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0]], dtype=float)
    faces = np.array([[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]])
    return trimesh.Trimesh(x, faces, process=False)


@pytest.mark.parametrize("scale", [0.0, -1e-3])
def test_a_scale_that_mirrors_or_flattens_is_refused(scale, tmp_path):
    """A mirrored solid had its faces turned outwards again, and no sign of the mistake was left."""
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / "box.stl")
    write(tmp_path / "tets.vtk", [("tetra", TETS)])
    for load, name, options in (
        (wb.shapes.load_mesh, "box.stl", {}),
        (wb.shapes.load_sheet, "box.stl", {"thickness": 1e-3}),
        (wb.shapes.load_tetrahedra, "tets.vtk", {}),
    ):
        said = rf"^{load.__name__}: scale must be positive \[metres per unit of the file\], got {scale:g}$"
        with pytest.raises(ValueError, match=said):
            load(tmp_path / name, scale=scale, **options)


@pytest.mark.parametrize("name", ["plate.stl", "plate.obj", "plate.ply"])
def test_cloth_of_a_file(name, tmp_path):
    plate().export(tmp_path / name)
    sheet = wb.shapes.load_sheet(tmp_path / name, 1e-3, scale=0.1, bending=0.2)
    assert (len(sheet.vertices), len(sheet.faces)) == (6, 4)
    assert sheet.area == pytest.approx(0.02)
    assert (sheet.thickness, sheet.bending) == (1e-3, 0.2)
    a, b, c = (sheet.vertices[sheet.faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()


def test_cloth_has_no_seam_where_its_texture_has_one(tmp_path):
    """Vertices that differ in their place in an image alone are one."""
    lines = ["v 0 0 0", "v 1 0 0", "v 1 1 0", "v 0 1 0", *(f"vt {k} 0" for k in range(6))]
    (tmp_path / "flag.obj").write_text("\n".join([*lines, "f 1/1 2/2 3/3", "f 1/4 3/5 4/6", ""]))
    sheet = wb.shapes.load_sheet(tmp_path / "flag.obj", 1e-3)
    assert (len(sheet.vertices), len(sheet.faces)) == (4, 2)


def test_what_is_no_cloth(tmp_path):
    mesh = plate()
    mesh.faces = np.vstack([mesh.faces, [0, 1, 2]])
    mesh.export(tmp_path / "bad.ply")
    with pytest.raises(SceneError, match=r"bad.ply: Sheet: 1 of 5 triangles have no area"):
        wb.shapes.load_sheet(tmp_path / "bad.ply", 1e-3)
    plate().export(tmp_path / "bad.ply")
    with pytest.raises(SceneError, match=r"bad.ply: Sheet.thickness must be a positive number"):
        wb.shapes.load_sheet(tmp_path / "bad.ply", 0.0)


# --- solids ---------------------------------------------------------------------------------------------------------------

TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
LOWER_Z_UP, UPPER_Z_UP = (0, -3, 0), (1, 0, 2)  # of the tetrahedron, where y is up in the file


def obj(path, vertices=TETRAHEDRON, faces=FACES, rest=""):
    lines = [f"v {x!r} {y!r} {z!r}\n" for x, y, z in np.asarray(vertices).tolist()]
    lines += ["f " + " ".join(str(k + 1) for k in face) + "\n" for face in faces]
    path.write_text("".join(lines) + rest)
    return path


def gltf(path, nodes, uri=None):
    content = TETRAHEDRON.astype("<f4").tobytes() + FACES.astype("<u2").tobytes()
    uri = uri or "data:application/octet-stream;base64," + base64.b64encode(content).decode()
    views = [{"buffer": 0, "byteOffset": 0, "byteLength": 48}, {"buffer": 0, "byteOffset": 48, "byteLength": 24}]
    accessors = [
        {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3", "min": [0, 0, 0], "max": [1, 2, 3]},
        {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
    ]
    mesh = {"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}
    path.write_text(json.dumps({
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": list(range(len(nodes)))}], "nodes": nodes,
        "meshes": [mesh], "accessors": accessors, "bufferViews": views, "buffers": [{"byteLength": 72, "uri": uri}],
    }))  # fmt: skip
    return path


def collada(path, asset):
    numbers, corners = (" ".join(f"{x:g}" for x in a.ravel()) for a in (TETRAHEDRON, FACES))
    path.write_text(f"""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
      <asset>{asset}</asset>
      <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="a" count="12">{numbers}</float_array><technique_common>
          <accessor source="#a" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
            <param name="Z" type="float"/></accessor></technique_common></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
        <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>{corners}</p></triangles>
      </mesh></geometry></library_geometries>
      <library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene>
      </library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""")
    return path


def test_gltf_has_y_up_and_is_in_metres(tmp_path):
    """With all nodes of its scene in their places, mirrored ones among them."""
    mesh = wb.shapes.load_mesh(gltf(tmp_path / "one.gltf", [{"mesh": 0}]))
    np.testing.assert_allclose(mesh.bounds, (LOWER_Z_UP, UPPER_Z_UP))
    assert mesh.volume == pytest.approx(1.0)
    two = [{"mesh": 0}, {"mesh": 0, "translation": [0, 4, 0], "scale": [-1, 1, 1]}]
    mesh = wb.shapes.load_mesh(gltf(tmp_path / "two.gltf", two), scale=0.1)
    np.testing.assert_allclose(mesh.bounds, ((-0.1, -0.3, 0), (0.1, 0, 0.6)), atol=1e-9)
    assert mesh.volume == pytest.approx(2e-3)


@pytest.mark.skipif(importlib.util.find_spec("collada") is None, reason="pycollada is not installed")
@pytest.mark.parametrize(
    ("asset", "lower", "upper"),
    [
        ('<unit meter="1"/><up_axis>Z_UP</up_axis>', (0, 0, 0), (1, 2, 3)),
        ('<unit meter="0.01"/><up_axis>Y_UP</up_axis>', (0, -0.03, 0), (0.01, 0, 0.02)),
        ("<up_axis>X_UP</up_axis>", (-2, -3, 0), (0, 0, 1)),
        ("", LOWER_Z_UP, UPPER_Z_UP),
    ],
)
def test_collada_says_its_unit_and_what_is_up(tmp_path, asset, lower, upper):
    """Metres and y where it does not; what a user says of the unit counts more."""
    path = collada(tmp_path / "a.dae", asset)
    np.testing.assert_allclose(wb.shapes.load_mesh(path).bounds, (lower, upper), atol=1e-9)
    assert wb.shapes.load_mesh(path, scale=1e-3).volume == pytest.approx(1e-9)


def test_what_is_turned_wrongly_is_turned(tmp_path):
    """One face, a whole solid, one body of two; a cavity stays one."""
    one, cube = FACES.copy(), trimesh.creation.box((4, 4, 4))
    one[2] = one[2, ::-1]
    assert wb.shapes.load_mesh(obj(tmp_path / "one.obj", faces=one)).volume == pytest.approx(1.0)
    assert wb.shapes.load_mesh(obj(tmp_path / "all.obj", faces=FACES[:, ::-1])).volume == pytest.approx(1.0)
    apart, hollow = (np.concatenate([cube.vertices, TETRAHEDRON + shift]) for shift in ([9, 0, 0], [-0.5, -0.5, -1]))
    for around in (cube.faces, cube.faces[:, ::-1]):
        for within in (FACES, FACES[:, ::-1]):
            both = np.concatenate([around, within + len(cube.vertices)])
            alike = (around is cube.faces) == (within is FACES)
            assert wb.shapes.load_mesh(obj(tmp_path / "apart.obj", apart, both), 0.1).volume == pytest.approx(65e-3)
            hollow_file = obj(tmp_path / "hollow.obj", hollow, both)
            if alike:
                with pytest.warns(
                    UserWarning, match="inside another one is a closed surface that faces outwards; taken as solid"
                ):
                    assert wb.shapes.load_mesh(hollow_file).volume == pytest.approx(64.0)
            for inner, volume in (("solid", 64.0 if alike else 63.0), ("void", 63.0)):
                assert wb.shapes.load_mesh(hollow_file, inner=inner).volume == pytest.approx(volume)


def test_what_an_inner_surface_is_is_one_of_two(tmp_path):
    with pytest.raises(ValueError, match="inner must be 'solid', 'void' or None, got 'air'"):
        wb.shapes.load_mesh(obj(tmp_path / "a.obj"), inner="air")


def test_a_solid_in_a_void_in_a_solid(tmp_path):
    """Is one, however the three surfaces are turned, and so is one beside a void whose bounds are around it."""
    boxes = [trimesh.creation.box((size,) * 3) for size in (4.0, 3.0, 1.0)]
    for turns in itertools.product((1, -1), repeat=3):
        faces = [b.faces[:, ::t] + 8 * k for k, (b, t) in enumerate(zip(boxes, turns, strict=True))]
        path = obj(tmp_path / "matryoshka.obj", np.concatenate([b.vertices for b in boxes]), np.concatenate(faces))
        assert wb.shapes.load_mesh(path, inner="void").volume == pytest.approx(64.0 - 27.0 + 1.0)
    ring = trimesh.creation.annulus(1.0, 2.0, 1.0)
    pair = trimesh.util.concatenate([ring, trimesh.creation.box((0.5,) * 3)])
    path = obj(tmp_path / "ring.obj", pair.vertices, pair.faces)
    assert wb.shapes.load_mesh(path).volume == pytest.approx(ring.volume + 0.125)


def test_faces_with_more_corners_and_lost_textures(tmp_path):
    """Quads are split, triangles without area and a material that is not there change nothing."""
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3], [0, 0, 1]]
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), axis=-1).reshape(-1, 3)
    path = obj(tmp_path / "cube.obj", corners, quads)
    path.write_text("mtllib nowhere.mtl\nusemtl red\n" + path.read_text())
    assert wb.shapes.load_mesh(path).volume == pytest.approx(1.0)


def test_meshes_of_no_use(tmp_path):
    """Each with its file and what to do."""
    wild = obj(tmp_path / "wild.obj", np.where(TETRAHEDRON == 3, np.nan, TETRAHEDRON))
    (tmp_path / "pointer.stl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    (tmp_path / "empty.stl").touch()
    (tmp_path / "noise.glb").write_bytes(b"glTF" + bytes(60))
    for path, sentence in (
        (wild, r"3 of its 4 triangles have corners that are not finite"),
        (tmp_path / "pointer.stl", r"is a Git LFS pointer, not the file; run: git lfs pull"),
        (tmp_path / "empty.stl", r"the file is empty"),
        (tmp_path / "noise.glb", r"cannot be read as a triangle mesh: .*; export it again"),
        (
            obj(tmp_path / "open.obj", faces=FACES[:3]),
            r".*3 open edges .*; close it in a mesh editor, or read it as cloth",
        ),
        (obj(tmp_path / "points.obj", faces=[]), r"has no triangles"),
        (gltf(tmp_path / "lost.gltf", [{"mesh": 0}], "no.bin"), r".*it refers to .*no.bin.*, which does not exist"),
    ):
        with pytest.raises(SceneError, match=rf"{path.name}:? {sentence}"):
            wb.shapes.load_mesh(path)


def test_a_size_that_is_unlikely_is_doubted(tmp_path, heard):
    """A part of 150 mm, said in millimetres."""
    path = obj(tmp_path / "part.obj", 50.0 * TETRAHEDRON)
    tets = write(tmp_path / "part.vtk", [("tetra", TETS[:1])], 150.0 * CORNERS)
    for load in (wb.shapes.load_mesh, lambda p, s=None: wb.shapes.load_sheet(p, 1e-3, s), wb.shapes.load_tetrahedra):
        heard.clear()
        file = tets if load is wb.shapes.load_tetrahedra else path
        load(file)
        load(file, 1e-3)
        (message,) = heard.messages
        assert "it is 150 m long; if that is wrong, pass scale, such as scale=1e-3" in message
