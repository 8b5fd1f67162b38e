"""No command writes over a file that it reads."""

import pytest
import trimesh

import warpbots as wb
from warpbots import cli

URDF = """<robot name="r"><link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial><collision><geometry><mesh filename="{}"/></geometry></collision></link></robot>"""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(folder, capsys, *words):
    """A command ends with a sentence and changes nothing."""
    before = contents(folder)
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 2
    assert "from which it would be made; choose another name or folder" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize("ending", ["urdf", "xml", "usda"])
def test_nothing_is_converted_onto_itself(tmp_path, capsys, monkeypatch, ending):
    """By the same path, a relative one, and both kinds of links; another file is replaced as before."""
    source = tmp_path / f"robot.{ending}"
    floor = wb.Obstacle(wb.shapes.Box((-1.0, -1.0, -0.1), (1.0, 1.0, 0.0)), name="floor")
    scene = wb.Scene([wb.RigidBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.0), 0.1))], obstacles=[floor])
    wb.usd.write(source, scene) if ending == "usda" else wb.robots.save(source, scene)
    (tmp_path / f"soft.{ending}").symlink_to(source)
    (tmp_path / f"hard.{ending}").hardlink_to(source)
    monkeypatch.chdir(tmp_path)
    for name in (source, source.name, f"../{tmp_path.name}/{source.name}", f"soft.{ending}", f"hard.{ending}"):
        refused(tmp_path, capsys, "convert", source, name)
        refused(tmp_path, capsys, "convert", name, source)
    for _ in range(2):
        assert cli.main(["convert", str(source), str(tmp_path / f"other.{ending}")]) == 0


def test_meshes_and_includes_are_sources_too(tmp_path, capsys):
    """The mesh beside the new robot would have the name of the mesh of the old one."""
    for mesh, made in (("new_0.obj", "new.urdf"), ("new_arm.obj", "new.xml")):
        trimesh.creation.box([0.1] * 3).export(tmp_path / mesh)
        (tmp_path / "robot.urdf").write_text(URDF.format(mesh))
        refused(tmp_path, capsys, "convert", tmp_path / "robot.urdf", tmp_path / made)
    (tmp_path / "part.xml").write_text('<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>')
    (tmp_path / "whole.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    refused(tmp_path, capsys, "convert", tmp_path / "whole.xml", tmp_path / "part.xml")


def test_a_motion_is_not_written_over_its_scene(tmp_path, capsys):
    """Also if the scene has the name of the results, or is reached through a link."""
    scene = wb.Scene([wb.RigidBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.0), 0.1))])
    wb.usd.write(tmp_path / "motion.usda", scene)
    before = (tmp_path / "motion.usda").read_bytes()
    assert cli.main(["simulate", str(tmp_path / "motion.usda"), "--steps", "2", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "motion.usda").read_bytes() == before
    (tmp_path / "hard.usda").hardlink_to(tmp_path / "motion.usda")
    sim = wb.Simulation(wb.usd.read(tmp_path / "motion.usda"), wb.Articulated(), dt=0.01)
    with pytest.raises(ValueError, match="this would overwrite"):
        wb.usd.write(tmp_path / "hard.usda", sim.rollout(None, 2))
