"""Every error states fault, place and remedy in one sentence; no partly written file stays behind."""

import dataclasses
import errno
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from pxr import Usd
from usd_cases import ROUND, Trajectory, names, octahedron, simple_scene, write_text

from warpbots import usd
from warpbots.scene import SceneError, SoftBody
from warpbots.usd import trajectory_writer as trajectory_module
from warpbots.usd import writer

HEADER = '(\n upAxis = "Z"\n metersPerUnit = 1\n)\n'
TET = """
    point3f[] points = [(0,0,0),(1,0,0),(0,1,0),(0,0,1)]
    int[] faceVertexCounts = [3,3,3,3]
    int[] faceVertexIndices = [0,2,1,0,1,3,1,2,3,0,3,2]
"""
SOFT = 'prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]'
RUBBER = 'def Material "Rubber" {\n float newton:mpm:youngsModulus = 1000\n}\n'
BLOCK = RUBBER + f'def Cube "Block" (\n {SOFT}\n) {{\n rel material:binding:physics = </Rubber>\n}}\n'


def write(tmp_path, content, header=HEADER):
    return write_text(tmp_path / "bad.usda", header + content)


# reading


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing.usda"):
        usd.read(tmp_path / "nothing.usda")


def test_a_folder(tmp_path):
    with pytest.raises(SceneError, match=r"is a folder; give the path of a .usd"):
        usd.read(tmp_path)


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.usda").touch()
    with pytest.raises(SceneError, match=r"empty.usda: the file is empty"):
        usd.read(tmp_path / "empty.usda")


@pytest.mark.parametrize("name", ["noise.usda", "noise.usdc", "noise.usd", "noise.usdz", "noise.obj"])
def test_what_is_no_usd(name, tmp_path):
    (tmp_path / name).write_bytes(b"v 0 0 0\n" * 100)
    with pytest.raises(SceneError, match=rf"{name}: this is not a readable USD file \([^\n]{{10,200}}\)$") as caught:
        usd.read(tmp_path / name)
    assert "pxrInternal" not in str(caught.value)


def test_a_syntax_error_says_the_line(tmp_path):
    path = write(tmp_path, 'def Cube "A" { double size = }\n')
    with pytest.raises(SceneError, match=r"bad.usda:6:\d+"):
        usd.read(path)


def test_no_unit_of_length(tmp_path):
    path = write(tmp_path, BLOCK, header="")
    with pytest.raises(
        SceneError, match=r"does not define its unit of length \(metersPerUnit\).*pass meters_per_unit=1.0"
    ):
        usd.read(path)
    assert usd.read(path, meters_per_unit=1.0).bodies[0].name == "Block"
    with pytest.raises(SceneError, match="does not define its unit of length"):
        usd.read_meshes(path)


@pytest.mark.parametrize("unit", ["0", "-1"])
def test_an_impossible_unit(unit, tmp_path):
    with pytest.raises(SceneError, match=f"metersPerUnit must be a positive number, got {unit}"):
        usd.read(write(tmp_path, BLOCK, header=f"(\n metersPerUnit = {unit}\n)\n"))


def test_a_missing_reference(tmp_path, heard):
    """Missing files are named, and all others are read; if there are no others, the refusal names the missing ones."""
    table = 'def "Table" (\n prepend references = @./table.usda@\n) {\n}\n'
    assert usd.read(write(tmp_path, BLOCK + table)).bodies[0].name == "Block"
    assert re.search(r"/Table: it refers to a file that cannot be found or read .*table.usda", heard.text)
    with pytest.raises(
        SceneError, match=r"(?s)has no body .*/Table: it refers to a file that cannot be found .*table.usda"
    ):
        usd.read(write(tmp_path, table), material=ROUND)


def test_a_look_in_another_format(tmp_path, heard):
    """USD opens a file with visual materials that it cannot open, and so does the reader."""
    (tmp_path / "gold.mtlx").write_text('<?xml version="1.0"?>\n<materialx version="1.38"/>\n')
    look = 'def "Look" (\n prepend references = @./gold.mtlx@</MaterialX>\n) {\n}\n'
    assert usd.read(write(tmp_path, BLOCK + look)).bodies[0].name == "Block"
    assert "/Look: it refers to a file that cannot be found or read" in heard.text


def test_a_file_of_the_future(tmp_path):
    usd.write(tmp_path / "new.usda", simple_scene())
    text = (tmp_path / "new.usda").read_text().replace("int schema = 1", "int schema = 7")
    (tmp_path / "new.usda").write_text(text)
    with pytest.raises(
        SceneError, match=r"written by warpbots .* with version 7 .* supports version 1; update warpbots"
    ):
        usd.read(tmp_path / "new.usda")


def test_nothing_to_simulate(tmp_path):
    path = write(tmp_path, 'def Camera "Eye" {\n}\n')
    with pytest.raises(SceneError, match="the file has no body and no solid that could become one"):
        usd.read(path)
    with pytest.raises(SceneError, match="the file has no Mesh and no TetMesh"):
        usd.read_meshes(path)
    group = 'def PhysicsCollisionGroup "Group" {\n}\n'
    with pytest.raises(SceneError, match=r"no body .*\n  /Group: a collision group"):
        usd.read(write(tmp_path, group), material=ROUND)


def test_meshes_without_material(tmp_path):
    path = write(tmp_path, f'def Mesh "Duck" {{{TET}}}\n')
    with pytest.raises(SceneError, match=r"pass material=Material\(youngs_modulus=...\) to make bodies of /Duck"):
        usd.read(path)


def test_a_body_without_material(tmp_path):
    path = write(tmp_path, f'def Mesh "Duck" (\n {SOFT}\n) {{{TET}}}\n')
    with pytest.raises(SceneError, match=r"bad.usda: /Duck: the file gives it no material .*pass material="):
        usd.read(path)
    assert usd.read(path, material=ROUND).bodies[0].material == ROUND


@pytest.mark.parametrize("reader", [lambda p: usd.read(p, material=ROUND), usd.read_meshes])
def test_a_mesh_with_a_hole(reader, tmp_path):
    hole = TET.replace("[3,3,3,3]", "[3,3,3]").replace(",0,3,2]", "]")
    with pytest.raises(SceneError, match=r"/Duck: TriangleMesh is not watertight: 3 open edges \(first 0-2\)"):
        reader(write(tmp_path, f'def Mesh "Duck" {{{hole}}}\n'))


def test_all_faults_at_once(tmp_path):
    content = (
        'def Material "Stone" {\n float newton:mpm:youngsModulus = 1000\n float newton:mpm:poissonsRatio = 0.5\n}\n'
        f'def Cube "A" (\n {SOFT}\n) {{\n rel material:binding:physics = </Stone>\n}}\n'
        f'def Cube "B" (\n {SOFT}\n) {{\n}}\n'
        f'def NurbsPatch "C" (\n {SOFT}\n) {{\n}}\n'
        f'def Xform "D" (\n {SOFT}\n) {{\n}}\n'
        'def Scope "E" (\n prepend apiSchemas = ["WarpbotsMuscleAPI"]\n) {\n string warpbots:region = "leg"\n}\n'
        'def Scope "F" (\n prepend apiSchemas = ["WarpbotsPressureAPI"]\n) {\n string warpbots:region = "leg"\n'
        " double warpbots:maxPressure = -1\n}\n"
    )
    with pytest.raises(SceneError) as caught:
        usd.read(write(tmp_path, content))
    lines = str(caught.value).split("\n")
    assert len(lines) == 6
    for line, words in zip(
        lines,
        [
            r"bad.usda: /Stone: Material: poissons_ratio must be in (-1, 0.5), got 0.5",
            "/B: the file gives it no material",
            "/C: a NurbsPatch is not a supported solid",
            "/D: there is no supported solid at or below it",
            "/E: a prim with WarpbotsMuscleAPI needs the attributes warpbots:direction, warpbots:maxStress",
            "/F: Pressure 'F': max_pressure must be positive",
        ],
        strict=True,
    ):
        assert words in line


def test_an_actuator_of_no_region(tmp_path):
    content = BLOCK + (
        'def Scope "E" (\n prepend apiSchemas = ["WarpbotsPressureAPI"]\n) {\n string warpbots:region = "leg"\n'
        " double warpbots:maxPressure = 1\n}\n"
    )
    with pytest.raises(SceneError, match=r"bad.usda: Pressure 'E': there is no region 'leg'"):
        usd.read(write(tmp_path, content))


def test_an_incomplete_task(tmp_path):
    content = BLOCK + 'def PhysicsScene "P" {\n double warpbots:task:controlInterval = 0.1\n}\n'
    with pytest.raises(SceneError, match="/P: a task needs the attributes warpbots:task:substeps"):
        usd.read(write(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('token warpbots:shape = "Torus"', "warpbots:shape must be one of Box, .*, got 'Torus'"),
        (
            'token warpbots:shape = "Heightfield"\n double warpbots:exact:spacing = 1\n'
            " double[] warpbots:exact:origin = [0]\n double[] warpbots:exact:heights = [1, 2, 3]\n"
            " int[] warpbots:exact:heights:size = [2]",
            r"heights must fill a grid of warpbots:exact:heights:size = \(2,\), got 3 values",
        ),
        (
            'token warpbots:shape = "Silhouette"\n string[] warpbots:exact:mask = ["##", "#"]',
            r"mask must have rows of equal length, got \[1, 2\]",
        ),
        ('token warpbots:shape = "Heightfield"', "a Heightfield is kept in the attributes warpbots:exact:origin"),
    ],
)
def test_a_shape_that_cannot_be_read(text, words, tmp_path):
    with pytest.raises(SceneError, match=f"/Block: .*{words}"):
        usd.read(write(tmp_path, BLOCK.replace("rel material", f"{text}\nrel material")))


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        ("", "a mesh without points or faces"),
        (TET.replace("[3,3,3,3]", "[3,3,3]"), "have 9 corners by their counts and 12 by their indices"),
        (TET.replace(",0,3,2]", ",0,3,9]"), "must index vertices 0 to 3, got 0 to 9"),
    ],
)
def test_a_broken_mesh(mesh, words, tmp_path):
    with pytest.raises(SceneError, match=f"/Duck: .*{words}"):
        usd.read_meshes(write(tmp_path, f'def Mesh "Duck" {{{mesh}}}\n'))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            "float[] weights = [{}]",
            r"bad.usda:15: an array of type float\[\] has elements such as \(0.1, 0.2, 0.3\)",
        ),
        ("double2[] weights = [{}]", r"an array of type double2\[\] has elements"),
        ("float[] weights.timeSamples = {{0: [{}]}}", r"an array of type float\[\] has elements"),
    ],
)
def test_an_array_of_another_size(values, words, tmp_path):
    """A hundred thousand elements of the wrong size take USD's parser hours, because each is an error of its own."""
    text = values.format(", ".join(["(0.1, 0.2, 0.3)"] * 100_000))
    with pytest.raises(SceneError, match=words):
        usd.read(write(tmp_path, BLOCK + f'def Scope "A" {{\n {text}\n}}\n'))


def test_arrays_of_the_right_size_and_of_types_that_nobody_knows(tmp_path):
    """They are not faults."""
    arrays = (
        "float3[] a = [(1, 2, 3)]\n float[] b = [1]\n foo[] c = [(1, 2)]\n quatf[] d = [(1, 0, 0, 0)]\n"
        " matrix2d[] e = [((1, 0), (0, 1))]\n int[] f = []\n texCoord2f[] g = [(1, 2)]\n"
    )
    assert usd.read(write(tmp_path, BLOCK + f'def Scope "A" {{\n {arrays}}}\n')).bodies[0].name == "Block"


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ('token size = "large"', r"/Block: .*\(/Block.size is of type token, it should be double\); correct the file"),
        ("foo size = 3", r"/Block: .*\(/Block.size is of type foo, which USD does not know\)"),
        (
            'double3 xformOp:scale.timeSamples = {0: (1, 1, 1)}\n string xformOp:translate = "up"\n'
            ' uniform token[] xformOpOrder = ["xformOp:translate"]',
            "/Block: it has invalid content",
        ),
    ],
)
def test_an_attribute_of_another_type(attribute, words, tmp_path):
    with pytest.raises(SceneError, match=words):
        usd.read(write(tmp_path, BLOCK.replace("rel ", f"{attribute}\n rel ")))


def test_an_axis_that_is_none(tmp_path):
    content = BLOCK.replace("Cube", "Capsule").replace("rel ", 'token axis = "up"\n rel ')
    with pytest.raises(SceneError, match="/Block: its axis must be X, Y or Z, got 'up'"):
        usd.read(write(tmp_path, content))


def test_a_text_that_is_not_utf_8(tmp_path):
    (tmp_path / "bad.usda").write_bytes(f'#usda 1.0\n{HEADER}def Cube "A'.encode() + b'\xff\xfe" {\n}\n')
    with pytest.raises(SceneError, match=r"bad.usda: this is not a readable USD file \(.+\)"):
        usd.read(tmp_path / "bad.usda")


def test_a_sheared_solid(tmp_path):
    """A sheared cube becomes a mesh; in a 2D scene it is refused."""
    content = (
        'def Xform "A" {\n double3 xformOp:scale = (1, 2, 1)\n uniform token[] xformOpOrder = ["xformOp:scale"]\n'
        'def Cube "B" {\n float xformOp:rotateX = 30\n uniform token[] xformOpOrder = ["xformOp:rotateX"]\n}\n}\n'
    )
    shape = usd.read(write(tmp_path, content), material=ROUND).bodies[0].shape
    assert shape.volume == pytest.approx(16.0)
    flat = 'def PhysicsScene "P" {\n int warpbots:dimension = 2\n}\n'
    with pytest.raises(SceneError, match="/A/B: its transform shears it"):
        usd.read(write(tmp_path, flat + content), material=ROUND)


# writing


def test_an_extension_that_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match=r"robot.obj: .*must end in .usd, .usda, .usdc, .usdz, got '.obj'"):
        usd.write(tmp_path / "robot.obj", simple_scene())


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; create it"):
        usd.write(tmp_path / "nowhere" / "robot.usda", simple_scene())
    assert names(tmp_path) == []


@pytest.mark.parametrize("what", [simple_scene(), Trajectory(simple_scene())], ids=["scene", "trajectory"])
def test_a_folder_that_is_a_file(what, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"there is no folder .*file; create it or choose another one"):
        usd.write(tmp_path / "file" / "robot.usda", what)
    assert names(tmp_path) == ["file"]


def test_a_path_that_is_a_folder(tmp_path):
    (tmp_path / "robot.usda").mkdir()
    with pytest.raises(IsADirectoryError, match=r"robot.usda: this is a folder"):
        usd.write(tmp_path / "robot.usda", simple_scene())


def full_disk(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", [simple_scene(), Trajectory(simple_scene())], ids=["scene", "trajectory"])
@pytest.mark.parametrize("before", [None, b"what was there before"])
def test_a_full_disk(what, before, tmp_path, monkeypatch):
    path = tmp_path / "robot.usda"
    if before:
        path.write_bytes(before)
    monkeypatch.setattr(writer, "export", full_disk)
    monkeypatch.setattr(trajectory_module, "export", full_disk)
    with pytest.raises(
        OSError, match=r"cannot write .*robot.usda: No space left on device; nothing was changed"
    ) as caught:
        usd.write(path, what)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == (["robot.usda"] if before else [])
    assert not before or path.read_bytes() == before


LIMITED = """
import resource, signal, sys
sys.path.insert(0, {folder!r})
from usd_cases import Trajectory, simple_scene, octahedron
from warpbots import usd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
for name, count in (("a.usda", 20000), ("b.usda", 1)):
    scene = simple_scene(name="x" * 30000 if count == 1 else "robot")
    try:
        usd.write({path!r} + name, Trajectory(scene, count=count) if count > 1 else scene)
    except OSError as error:
        print(error)
"""


def test_a_disk_that_is_really_full(tmp_path, request):
    """The system refuses to let a file grow: USD's own errors become an `OSError`, and its files are gone."""
    code = LIMITED.format(folder=str(request.path.parent), path=str(tmp_path) + "/")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("cannot write")]
    assert len(lines) == 2, run.stdout
    assert all("File too large" in line and "nothing was changed" in line for line in lines), lines
    assert names(tmp_path) == []


def test_a_trajectory_does_not_overwrite_its_scene(tmp_path):
    usd.write(tmp_path / "robot.usda", simple_scene())
    trajectory = Trajectory(usd.read(tmp_path / "robot.usda"))
    with pytest.raises(
        ValueError, match=r"would overwrite .*robot.usda, the file of the scene; give the trajectory another"
    ):
        usd.write(tmp_path / "robot.usda", trajectory)
    usd.write(tmp_path / "walk_scene.usda", simple_scene())
    scene = dataclasses.replace(usd.read(tmp_path / "walk_scene.usda"), name="other")
    usd.write(tmp_path / "walk.usda", Trajectory(scene))  # whose scene goes beside it under this very name
    assert usd.read(tmp_path / "walk_scene.usda").name == "robot"
    assert usd.read(tmp_path / "walk.usda") == scene


@pytest.mark.parametrize("fps", [0, -1, float("nan")])
def test_impossible_fps(fps, tmp_path):
    with pytest.raises(ValueError, match="fps must be a (positive|finite) number"):
        usd.write(tmp_path / "walk.usda", Trajectory(simple_scene()), fps=fps)


class Broken(Trajectory):
    """The third frame has wrong positions."""

    def __init__(self, break_it):
        super().__init__(simple_scene())
        self.break_it = break_it

    def frames(self, every=1):
        for k, (time, position, velocity) in enumerate(super().frames(every)):
            yield time, self.break_it(position) if k == 2 else position, velocity


def exploded(position):
    position[7, 1] = np.nan
    return position


def interrupted(position):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("break_it", "error", "words"),
    [
        (exploded, ValueError, r"position of particle 7 at time code 2 is \[.*nan.*reduce its time step"),
        (lambda p: p[1:], ValueError, r"must have shape \(50, 3\), got \(49, 3\)"),
        (interrupted, KeyboardInterrupt, None),
    ],
)
def test_a_trajectory_that_fails_on_the_way_leaves_nothing(break_it, error, words, tmp_path):
    with pytest.raises(error, match=words):
        usd.write(tmp_path / "walk.usda", Broken(break_it))
    assert names(tmp_path) == []


def test_a_trajectory_without_frames(tmp_path):
    with pytest.raises(ValueError, match="the trajectory has no frames"):
        usd.write(tmp_path / "walk.usda", Trajectory(simple_scene(), steps=-1))
    assert names(tmp_path) == []


def test_a_size_that_makes_no_sense_is_mentioned(tmp_path, heard):
    usd.read(write(tmp_path, BLOCK.replace("rel ", "double size = 500\n rel ")))
    assert "the robot is 500 m long; if that is wrong, pass meters_per_unit" in heard.text


def test_an_error_does_not_leave_the_stage_open(tmp_path):
    path = write(tmp_path, "def Cube {")
    with pytest.raises(SceneError):
        usd.read(path)
    usd.write(path, simple_scene(bodies=[SoftBody("b", octahedron(0.25), ROUND)], actuators=()))
    assert Usd.Stage.Open(str(path))
    assert usd.read(path).bodies[0].name == "b"


def test_an_open_mesh_is_known_by_its_edges_and_not_by_a_word_in_a_message(tmp_path):
    """A prim may have any name; its own fault is not taken for holes that a thickness would mend."""
    crossed = TET.replace("1,2,3,0,3,2", "1,2,3,0,3,9")
    path = write(tmp_path, RUBBER + f'def Mesh "watertight" (\n {SOFT}\n) {{{crossed}}}\n')
    with pytest.raises(SceneError) as caught:
        usd.read(path)
    assert "must index vertices 0 to 3" in str(caught.value) and "thickness" not in str(caught.value)
