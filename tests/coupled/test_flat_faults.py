"""Rigid bodies that leave the plane of a 2D scene, and all else that such a scene cannot have: a sentence for each."""

import dataclasses

import numpy as np
import pytest
import torch
from flat_scenes import disc_and_jelly, flat_flail, flat_hammer

import warpbots as wb

S = wb.shapes
JELLY = wb.SoftBody("jelly", S.Box((0, 0), (0.06, 0.04)), wb.Material(2e4, 0.3, 1000.0))
INERTIA = wb.Inertia(1.0, (0, 0), (1.0, 1.0, 1.0))


def disc(**options) -> wb.RigidBody:
    return wb.RigidBody("disc", S.Sphere((0, 0), 0.02), **{"position": (0.03, 0.08), **options})


def joint(kind: str, **options) -> wb.Joint:
    return wb.Joint("axle", kind, None, "disc", **options)


TILTED = ((1, 0, 0), (0, 0, -1), (0, 1, 0))
FAULTS = {
    "ball in space": ([wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.02))], (), r"RigidBody 'ball' is 3D in a 2D scene"),
    "above the plane": ([disc(position=(0, 0.1, 0.1))], (), r"RigidBody 'disc': position must have z = 0 .* give \(x, y\)"),
    "tilted": ([disc(rotation=TILTED)], (), r"RigidBody 'disc': rotation must be about z in a 2D scene"),
    "inertia": ([disc(inertia=wb.Inertia(1.0, (0, 0, 0.1), (1, 1, 1)))], (), r"inertia must have its center at z = 0"),
    "points": ([disc(points=wb.Cloud([[0, 0, 0.1]], 1e-4))], (), r"points must have z = 0"),
    "free": ([disc()], [joint("free")], r"Joint 'axle': a free joint moves its child out of the plane.*kind='free_2d'"),
    "ball": ([disc()], [joint("ball")], r"a ball joint moves its child out of the plane"),
    "translational": ([disc()], [joint("translational")], r"a translational joint moves its child out of the plane"),
    "axis": ([disc()], [joint("revolute", axis=(1, 0, 1))], r"turns about z in a 2D scene, got the axis .*use \(0, 0, 1\)"),
    "slide": ([disc()], [joint("prismatic")], r"moves along an axis in the plane of a 2D scene, .*axis=\(x, y\)"),
    "screw": ([disc()], [joint("cylindrical")], r"a cylindrical joint moves along an axis in the plane"),
    "place": ([disc()], [joint("revolute", position=(0, 0, 1))], r"Joint 'axle': position must have z = 0"),
    "frame": ([disc()], [joint("planar", rotation=TILTED)], r"Joint 'axle': rotation must be about z"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_leaves_the_plane_is_refused(fault):
    bodies, joints, said = FAULTS[fault]
    with pytest.raises(wb.SceneError, match=said):
        wb.Scene([JELLY, *bodies], joints=joints)


def test_gravity_and_flat_bodies_in_3d_have_the_dimension_of_the_scene():
    with pytest.raises(wb.SceneError, match="gravity is 3D in a 2D scene"):
        wb.Scene([JELLY, disc()], gravity=(0, 0, -9.81))
    cube = dataclasses.replace(JELLY, shape=S.Box((0, 0, 0), (0.1, 0.1, 0.1)))
    with pytest.raises(wb.SceneError, match="RigidBody 'disc' is 2D in a 3D scene"):
        wb.Scene([cube, disc()])
    assert wb.Scene([wb.RigidBody("hub", None, inertia=INERTIA), JELLY]).dim == 2


def test_bodies_of_a_plane_alone_name_the_solver_that_takes_them():
    with pytest.raises(wb.SceneError, match="Articulated cannot simulate this scene:\nScene: it is 2D"):
        wb.Articulated().build(wb.Scene([disc()]))
    with pytest.raises(
        wb.SceneError, match=r"this scene is 2D: use Coupled\(MPM\(\), Articulated\(\)\) or Coupled\(Mass"
    ):
        wb.ProjectiveDynamics(0.02).build(wb.Scene([JELLY, disc()]))


def test_a_disc_above_a_floor_without_a_law_gets_a_warning():
    scene = wb.Scene(
        [JELLY, disc(position=(0.15, 0.08))], obstacles=[wb.floor(dim=2)], domain=((-0.1, -0.1), (0.3, 0.3))
    )
    with pytest.warns(
        UserWarning, match="RigidBody 'disc' falls through Obstacle 'floor', because no Contact names both"
    ):
        wb.Simulation(scene, wb.Coupled(wb.MPM(0.01)), 1e-3)


@pytest.mark.parametrize("matter", [wb.MPM, wb.MassSpring])
@pytest.mark.filterwarnings("ignore:MassSpring. springs make matter")
def test_motions_that_matter_cannot_follow_stop_in_a_plane(matter):
    fall = joint("prismatic", axis=(0, -1), start_velocity=(100.0,))
    scene = wb.Scene([JELLY, disc()], joints=[fall], domain=((-0.1, -0.1), (0.2, 0.2)))
    with pytest.raises(
        wb.SimulationError, match=r"RigidBody 'disc' in world 0 moves up to .* more than a (cell|spacing)"
    ):
        wb.Simulation(scene, wb.Coupled(matter(0.01)), 1e-3).rollout(None, 2)
    plates = [wb.RigidBody(n, S.Box((-0.05, -0.02), (0.05, 0.02)), 1e6, position=(0.03, y)) for n, y in
              (("lower", -0.02), ("upper", 0.06))]  # fmt: skip
    joints = [wb.Joint("fix", "fixed", None, "lower"),
              wb.Joint("press", "prismatic", None, "upper", axis=(0, -1), start_velocity=(2.0,))]  # fmt: skip
    scene = wb.Scene([JELLY, *plates], joints=joints, domain=((-0.1, -0.1), (0.2, 0.2)))
    with pytest.raises(
        wb.SimulationError, match=r"squeezed between RigidBody '(lower|upper)' and RigidBody '(lower|upper)'"
    ):
        wb.Simulation(scene, wb.Coupled(matter(0.01)), 1e-3).rollout(None, 40)


@pytest.mark.filterwarnings("ignore:MassSpring. springs make matter")
def test_a_body_in_matter_is_refused_under_mpm_and_binds_two_masses_under_springs():
    inside = disc(position=(0.03, 0.035))
    with pytest.raises(wb.SceneError, match="RigidBody 'disc': it reaches into SoftBody 'jelly' at the start"):
        wb.Coupled(wb.MPM(0.01)).build(wb.Scene([JELLY, inside]))
    assert len(wb.Coupled(wb.MassSpring(0.01)).build(flat_flail()).bound) > 4
    needle = wb.RigidBody("needle", S.Box((-0.003, -0.01), (0.003, 0.01)), position=(0.03, 0.042))
    with pytest.raises(wb.SceneError, match="1 masses of this body are inside or on it, and to bind it takes two"):
        wb.Coupled(wb.MassSpring(0.01)).build(wb.Scene([JELLY, needle]))


def test_a_scene_in_a_plane_comes_back_from_a_file_and_from_its_parameters(tmp_path):
    for scene in (flat_hammer(), flat_flail()):
        wb.usd.write(tmp_path / "scene.usda", scene)
        assert wb.usd.read(tmp_path / "scene.usda") == scene
    sim = wb.Simulation(flat_hammer(), wb.Coupled(wb.MPM(0.0125)), 1e-3, 1)
    g, mu = torch.tensor([[0.5, -5.0]]), sim.parameter("body_friction") + 0.1
    changed = sim.scene_with(gravity=g, body_friction=mu, mass=2.0 * sim.parameter("mass"))
    assert changed.gravity == (0.5, -5.0)
    assert [b.friction for b in changed.bodies] == pytest.approx([0.4, 0.6, 0.3, 0.5])
    assert changed.rigid[0].inertia.mass == pytest.approx(2.0 * 2000.0 * np.pi * 9e-4)


def test_a_file_shows_bodies_where_they_are_in_the_plane(tmp_path):
    """The plane of a 2D scene is the plane y = 0 of the stage, in which the bodies are thin plates."""
    from pxr import Usd, UsdGeom

    sim = wb.Simulation(disc_and_jelly(), wb.Coupled(wb.MPM(0.02)), 5e-3)
    wb.usd.write(tmp_path / "motion.usda", sim.rollout(None, 2))
    stage = Usd.Stage.Open(str(tmp_path / "motion.usda"))
    box = UsdGeom.BBoxCache(0.0, ["default", "render"]).ComputeWorldBound(stage.GetPrimAtPath("/World/Bodies/disc"))
    low, high = (np.array(x) for x in (box.ComputeAlignedRange().GetMin(), box.ComputeAlignedRange().GetMax()))
    assert low[[0, 2]] == pytest.approx((0.03, 0.106), abs=1e-3)
    assert high[[0, 2]] == pytest.approx((0.11, 0.186), abs=1e-3)
    assert max(-low[1], high[1]) < 0.02
