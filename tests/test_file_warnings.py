"""Omissions of a reader are one Python warning per file, which points at the user's line and can be silenced."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import trimesh

import warpbots as wb
from warpbots.file_warnings import FileWarning, lines_of

SPHERES = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "W" {{ {} }}
"""
SPHERE = """def Sphere "Ball{}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysxRigidBodyAPI"])
{{
    double radius = 0.1
    float physxRigidBody:linearDamping = 0.{}
    {}
}}
"""


def usd_file(folder):
    balls = [SPHERE.format(k, 3, f"double3 xformOp:translate = ({k}, 0, 0)\n uniform token[] xformOpOrder = "
                                 '["xformOp:translate"]') for k in range(5)]  # fmt: skip
    (folder / "balls.usda").write_text(SPHERES.format("\n".join(balls)))
    return folder / "balls.usda", wb.usd.read, "/W/Ball0 and 4 others: physxRigidBody:linearDamping = 0.3"


def mjcf_file(folder):
    (folder / "arm.xml").write_text(
        '<mujoco><worldbody><body><joint name="hinge" frictionloss="1"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    return folder / "arm.xml", wb.robots.load, "(frictionloss): 'hinge'"


def urdf_file(folder):
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    joint = '<joint name="{}" type="continuous"><parent link="a"/><child link="{}"/>{}</joint>'
    (folder / "arm.urdf").write_text(
        f'<robot name="r">{"".join(map(link.format, "abc"))}{joint.format("j", "b", "")}'
        f'{joint.format("k", "c", """<mimic joint="j"/>""")}</robot>'
    )
    return folder / "arm.urdf", lambda path: wb.robots.load(path, ignore_loops=True), "mimic"


def mesh_file(folder):
    trimesh.creation.box((20.0, 1.0, 1.0)).export(folder / "beam.stl")
    return folder / "beam.stl", wb.shapes.load_mesh, "it is 20 m long"


def written_file(folder):
    scene = wb.Scene([wb.RigidBody("body", wb.shapes.Box((0, 0, 0), (1, 1, 1)))], obstacles=[wb.floor()])
    return folder / "body.urdf", lambda path: wb.robots.save(path, scene), "obstacle 'floor'"


@pytest.mark.parametrize("make", [usd_file, mjcf_file, urdf_file, mesh_file, written_file])
def test_a_file_is_one_warning_at_the_users_line(make, tmp_path):
    path, read, said = make(tmp_path)
    for _ in range(2):  # a cell that runs again says it again
        with pytest.warns(wb.FileWarning) as caught:
            read(path)
        (warning,) = caught
        assert warning.category is wb.FileWarning is FileWarning
        assert Path(warning.filename) == Path(__file__)
        assert str(warning.message).startswith(f"{path}: ") and said in str(warning.message)
        assert warning.message.path == str(path)
        assert any(said.rpartition(": ")[2] in what for _, what in warning.message.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=wb.FileWarning)
        read(path)


def test_a_long_list_is_short_in_the_message_and_whole_in_the_warning():
    notes = [(f"/W/Part{k % 50}", f"reason {k // 5} " + "x" * 1000 * (k == 3)) for k in range(1000)]
    warning = FileWarning("a.usda", notes)
    lines = str(warning).splitlines()
    assert len(lines) == 25 and max(map(len, lines)) < 500
    assert lines[0] == "a.usda: left out, read differently or doubtful:"
    assert lines[-1].strip() == f"and {len(list(lines_of(notes))) - 23} more, which are in `notes` of this warning"
    assert warning.notes == tuple(notes)
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)


def test_the_second_run_of_a_line_warns_again(tmp_path):
    """Also with Python's own filters, under which a line gives the same warning only once."""
    path, _, _ = usd_file(tmp_path)
    program = f"import warpbots as wb\nfor _ in range(2): wb.usd.read({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stderr.count("FileWarning") == 2 and "<string>:2: FileWarning" in done.stderr


def test_the_command_line_says_it_in_plain_lines(tmp_path):
    path, _, said = usd_file(tmp_path)
    words = [sys.executable, "-m", "warpbots", "convert", str(path), str(tmp_path / "copy.usda")]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stderr == (
        f"warpbots: {path}: left out, read differently or doubtful:\n  {said}, which is not read\n"
    )  # fmt: skip


def test_a_file_without_anything_to_say_is_read_in_silence(tmp_path):
    scene = wb.Scene([wb.RigidBody("body", wb.shapes.Box((0, 0, 0), (1, 1, 1)))])
    wb.usd.write(tmp_path / "body.usda", scene)
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "box.stl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wb.usd.read(tmp_path / "body.usda")
        assert np.isclose(wb.shapes.load_mesh(tmp_path / "box.stl").volume, 1.0)
