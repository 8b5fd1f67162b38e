"""Files that are small on the disk and large in memory are refused before they are read, in little memory."""

import gzip
import json
import resource
import struct
import sys
import zipfile

import pytest
import torch
import trimesh

import warpbots as wb

HUGE = 10**9

PLY = "ply\nformat {} 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n"
MSH2 = "$MeshFormat\n2.2 {} 8\n$EndMeshFormat\n$Nodes\n{}\n1 0 0 0\n$EndNodes\n$Elements\n{}\n1 4 0 1 1 1 1\n$EndElements\n"
MSH4 = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 {0} 1 {0}\n3 1 0 {0}\n1\n0 0 0\n$EndNodes\n$Elements\n1 1 1 1\n3 1 4 1\n1 1 1 1 1\n$EndElements\n"
VTK = "# vtk DataFile Version 3.0\nt\n{}\nDATASET UNSTRUCTURED_GRID\nPOINTS {} double\n0 0 0\nCELLS {} 5\n4 0 0 0 0\nCELL_TYPES 1\n10\n"
VTU = '<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian"><UnstructuredGrid><Piece NumberOfPoints="{}" NumberOfCells="1"/></UnstructuredGrid></VTKFile>'
XDMF = '<Xdmf Version="3.0"><Domain><Grid><Geometry GeometryType="XYZ"><DataItem DataType="Float" Dimensions="{} 3" Format="XML" Precision="8">0 0 0</DataItem></Geometry></Grid></Domain></Xdmf>'


def gltf(count):
    accessors = [
        {"componentType": 5126, "count": count, "type": "VEC3"},
        {"componentType": 5125, "count": 3, "type": "SCALAR"},
    ]
    meshes = [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}]
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "accessors": accessors,
            "meshes": meshes,
            "nodes": [{"mesh": 0}],
            "scenes": [{"nodes": [0]}],
            "scene": 0,
        }
    )


def glb(count):
    text = gltf(count).encode()
    text += b" " * (-len(text) % 4)
    return b"glTF" + struct.pack("<II", 2, 20 + len(text)) + struct.pack("<I", len(text)) + b"JSON" + text


CLAIMS = {
    "a.ply": PLY.format("ascii", HUGE, 1), "b.ply": PLY.format("binary_little_endian", HUGE, 1), "c.ply": PLY.format("ascii", 1, HUGE),
    "a.off": f"OFF\n# made by hand\n{HUGE} 12 0\n0 0 0\n", "b.off": f"OFF {3} {HUGE} 0\n0 0 0\n", "a.gltf": gltf(HUGE), "a.glb": glb(HUGE),
    "b.glb": b"glTF" + struct.pack("<III", 2, HUGE, HUGE) + b"JSON{}",
    "a.stl": b"\0" * 80 + struct.pack("<I", HUGE) + b"\0" * 50, "a.msh": MSH2.format(0, HUGE, 1), "b.msh": MSH2.format(0, 1, HUGE),
    "c.msh": MSH2.format(1, HUGE, 1), "d.msh": MSH4.format(HUGE), "a.vtk": VTK.format("ASCII", HUGE, 1), "b.vtk": VTK.format("BINARY", HUGE, 1),
    "c.vtk": VTK.format("ASCII", 1, HUGE), "a.vtu": VTU.format(HUGE), "a.xdmf": XDMF.format(HUGE), "a.node": f"{HUGE} 3 0 0\n1 0 0 0\n",
    "a.mesh": f"MeshVersionFormatted 1\nDimension 3\nVertices\n{HUGE}\n0 0 0 0\n",
}  # fmt: skip

TETRAHEDRA = (".msh", ".vtk", ".vtu", ".xdmf", ".node", ".mesh")


def peak():
    """Largest memory of this process so far [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


@pytest.mark.parametrize("name", CLAIMS)
def test_headers_claim_no_more_than_there_is(tmp_path, name):
    content = CLAIMS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = wb.shapes.load_tetrahedra if path.suffix in TETRAHEDRA else wb.shapes.load_mesh
    before = peak()
    said = "it claims to have [13]e[+]09 " if path.suffix != ".stl" else "has no triangles"
    with pytest.raises(wb.SceneError, match=said):
        read(path)
    assert peak() < before + 50.0


@pytest.mark.parametrize("name", ["a.ply", "a.off", "a.glb"])
def test_meshes_of_robots_claim_no_more_than_there_is(tmp_path, name):
    content = CLAIMS[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "robot.urdf").write_text(
        f'<robot name="r"><link name="a"><collision><geometry><mesh filename="{name}"/></geometry></collision></link></robot>'
    )
    with pytest.raises(wb.SceneError, match=rf"{name}: it claims to have 1e\+09"):
        wb.robots.load(tmp_path / "robot.urdf")


def packed(path, filler, count):
    """A 3MF of a box with something in its model that packs well, `count` times a million bytes."""
    trimesh.creation.box().export(path.with_name("box.3mf"))
    with zipfile.ZipFile(path.with_name("box.3mf")) as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in plain.namelist():
            with made.open(name, "w") as file:
                file.write(plain.read(name))
                for _ in range(count if name.endswith(".model") else 0):
                    file.write(filler * (10**6 // len(filler)))


@pytest.mark.parametrize("filler", [b" ", b'<vertex x="0" y="0" z="0"/>'])
def test_an_archive_that_unpacks_to_much_more_is_not_read(tmp_path, filler):
    packed(tmp_path / "bomb.3mf", filler, 60)
    before = peak()
    with pytest.raises(
        wb.SceneError, match=r"would unpack to 60[.\d]* MB, \d+ times as much; at most 60 times are read"
    ):
        wb.shapes.load_mesh(tmp_path / "bomb.3mf")
    assert peak() < before + 50.0
    packed(tmp_path / "fine.3mf", b" ", 1)
    assert wb.shapes.load_mesh(tmp_path / "fine.3mf").volume == pytest.approx(1e-9)


def test_meshes_that_are_packed_as_a_whole_are_not_read(tmp_path):
    (tmp_path / "a.stl.gz").write_bytes(gzip.compress(trimesh.creation.box().export(file_type="stl")))
    with pytest.raises(wb.SceneError, match="the file is packed by gzip; unpack it first"):
        wb.shapes.load_mesh(tmp_path / "a.stl.gz")


def test_pixels_are_counted_before_they_are_unpacked(tmp_path):
    from PIL import Image

    Image.new("1", (12000, 5000)).save(tmp_path / "a.png")
    before = peak()
    with pytest.raises(wb.SceneError, match="its 12000 x 5000 pixels are more than 4e[+]07; make it smaller"):
        wb.shapes.load_silhouette(tmp_path / "a.png", 1.0)
    assert peak() < before + 50.0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")
def test_what_no_header_says_is_bounded_too(tmp_path):
    """Abaqus: a node of number 2e9 in a text without counts; meshio makes an array up to it."""
    lines = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n" + "".join(
        f"{n} {x} {y} {z}\n" for n, x, y, z in ((1, 0, 0, 0), (2, 1, 0, 0), (3, 0, 1, 0), (HUGE, 0, 0, 1))
    )
    lines += f"$EndNodes\n$Elements\n1\n1 4 0 1 2 3 {HUGE}\n$EndElements\n"
    (tmp_path / "a.msh").write_text(lines)
    before, limit = peak(), resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(wb.SceneError, match=r"claim to need more than 1\.07 GB of memory"):
        wb.shapes.load_tetrahedra(tmp_path / "a.msh")
    assert peak() < before + 50.0 and resource.getrlimit(resource.RLIMIT_AS) == limit


def test_states_and_controllers_that_unpack_to_much_more_are_not_read(tmp_path, capsys):
    """Torch's files are archives, too."""
    from warpbots import cli

    scene = wb.Scene([wb.RigidBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.0), 0.1))])
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    sim.save_state(tmp_path / "state.pt", sim.state())
    sim.load_state(tmp_path / "state.pt")
    with zipfile.ZipFile(tmp_path / "state.pt", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more", b"\0" * 6 * 10**7)
    with pytest.raises(wb.SceneError, match=r"would unpack to 60 MB"):
        sim.load_state(tmp_path / "state.pt")
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(wb.SceneError, match=r"would unpack to 60 MB"):
        wb.fit([x], lambda: x.square().sum(), checkpoint=tmp_path / "state.pt", resume=True, progress=False)
    wb.usd.write(tmp_path / "ball.usda", scene)
    assert cli.main(["simulate", str(tmp_path / "ball.usda"), "--controller", str(tmp_path / "state.pt")]) == 2
    assert "would unpack to 60 MB" in capsys.readouterr().err


def test_packages_of_usd_that_unpack_to_much_more_are_not_read(tmp_path):
    wb.usd.write(tmp_path / "ball.usdz", wb.Scene([wb.RigidBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.0), 0.1))]))
    assert wb.usd.read(tmp_path / "ball.usdz").rigid
    with zipfile.ZipFile(tmp_path / "ball.usdz", "a", zipfile.ZIP_DEFLATED) as package:
        package.writestr("more.usda", b"#" * 6 * 10**7)
    with pytest.raises(wb.SceneError, match=r"would unpack to 60 MB"):
        wb.usd.read(tmp_path / "ball.usdz")
