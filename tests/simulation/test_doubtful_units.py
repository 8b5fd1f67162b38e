"""Moduli, stresses, lengths, times and angles in other units than Pa, m, s and degrees are named, and so is gravity up."""

import dataclasses
import math

import pytest
import torch

import warpbots as wb

RUBBER = wb.Material(5e4, 0.3, 1000.0)


def bar(material=RUBBER, scale=1.0):
    box, left = wb.shapes.Box((0.2 * scale, 0.1 * scale), (0.5 * scale, 0.2 * scale)), (0.35 * scale, 0.2 * scale)
    return wb.SoftBody("bar", box, material, {"left": wb.shapes.Box((0.2 * scale, 0.1 * scale), left)})


def built(body, *actuators, solver=None, **scene):
    wb.Simulation(wb.Scene([body], actuators, **scene), solver or wb.MPM(0.025), 1e-4)


def test_matter_that_does_not_bear_its_weight_is_named(recwarn):
    """In kPa, in mm, and what may be so soft: without gravity, in water, as sand or as a fluid."""
    with pytest.warns(
        UserWarning, match=r"^SoftBody 'bar': a Young's modulus of 50 Pa does not bear .* = 981 Pa: give"
    ):
        built(bar(wb.Material(50.0, 0.3, 1000.0)))
    with pytest.warns(UserWarning, match=r"height = 9\.81e\+05 Pa: give Pa"):
        built(bar(scale=1000.0), solver=wb.MPM(25.0))
    soft = wb.Material(50.0, 0.3, 1000.0)
    built(bar(wb.Material(120.0, 0.3, 1000.0)))
    built(bar(soft), gravity=(0.0, 0.0))
    built(bar(dataclasses.replace(soft, law="weakly_compressible")))
    built(bar(dataclasses.replace(soft, law="hencky", plasticity=wb.materials.VonMises(10.0))))
    assert [str(w.message) for w in recwarn] == []


def test_actuators_far_stronger_than_their_matter_are_named(recwarn):
    muscle, pressure = wb.actuators.Muscle, wb.actuators.Pressure
    with pytest.warns(
        UserWarning, match=r"^Muscle 'pull': max_stress of 5e\+06 Pa is 100 times the Young's modulus of"
    ):
        built(bar(), muscle("pull", "left", (1, 0), 5e6))
    with pytest.warns(UserWarning, match=r"^Pressure 'swell': max_pressure of 1e\+07 Pa is 240 times the bulk modulus"):
        built(bar(), pressure("swell", "left", 1e7))
    built(bar(), muscle("pull", "left", (1, 0), 4e5), pressure("swell", "left", 4e5))
    assert [str(w.message) for w in recwarn] == []


def test_sand_with_a_friction_angle_in_radians_is_named(recwarn):
    def sand(angle):
        return bar(wb.Material(5e4, 0.3, 1000.0, "hencky", plasticity=wb.materials.DruckerPrager(angle)))

    with pytest.warns(
        UserWarning, match=r"^SoftBody 'bar': DruckerPrager\(friction_angle=0\.524\) is in degrees, .* such as 30 for"
    ):
        built(sand(math.pi / 6.0))
    built(sand(30.0))
    built(sand(2.0))
    assert [str(w.message) for w in recwarn] == []


def test_a_rigid_body_in_millimetres_is_named(recwarn):
    for radius in (60.0, 40.0):
        ball = wb.RigidBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.0), radius))
        build = lambda ball=ball: wb.Simulation(wb.Scene([ball]), wb.Articulated(), 1e-3)
        if radius > 50.0:
            with pytest.warns(
                UserWarning, match=r"^RigidBody 'ball' is 120 m long: give lengths in m \(1 mm is 1e-3\)"
            ):
                build()
        else:
            build()
    assert [str(w.message) for w in recwarn] == []


def test_a_ground_may_be_long(recwarn):
    slab = wb.RigidBody("ground", wb.shapes.Box((-100.0, -100.0, -1.0), (100.0, 100.0, 0.0)))
    held = wb.Joint("held", "fixed", None, "ground")
    wb.Simulation(wb.Scene([slab], joints=[held]), wb.Articulated(), 1e-3)
    assert [str(w.message) for w in recwarn] == []


def test_gravity_that_lifts_bodies_off_the_ground_is_named(recwarn):
    def lifted(gravity, *normals):
        walls = [
            wb.Obstacle(wb.shapes.HalfSpace((0, 0.5 - 0.5 * n[1]), n), name=f"wall {k}") for k, n in enumerate(normals)
        ]
        built(bar(), gravity=gravity, obstacles=walls, name="drop")

    up = (0.0, 1.0)
    with pytest.warns(UserWarning, match=r"^Scene 'drop': gravity \(0\.0, 9\.81\) points away from Obstacle 'wall 0'"):
        lifted((0, 9.81), up)
    lifted((0, 9.81), up, (0, -1))  # there is a ceiling
    lifted((3, 9), up)  # a tilted table
    lifted((0, -9.81), up)
    lifted((0, 9.81))
    lifted((0, 0), up)
    assert [str(w.message) for w in recwarn] == []


def ball(*step):
    """A simulation of a ball without gravity."""
    alone = wb.Scene([wb.RigidBody("ball", wb.shapes.Sphere((0.2, 0.2, 0.2), 0.1))], gravity=(0, 0, 0))
    return wb.Simulation(alone, wb.Articulated(), *step)


def test_a_long_control_interval_is_named(recwarn):
    with pytest.warns(
        UserWarning, match=r"^Simulation: a control interval of dt = 5 s is long: give seconds .* 1 would"
    ):
        ball(5.0)
    ball(5.0, 1)
    ball(1.0)
    assert [str(w.message) for w in recwarn] == []


def test_a_quaternion_whose_real_part_comes_first_is_named(recwarn):
    sim = ball(1e-3)
    with pytest.warns(
        UserWarning, match=r"^state field 'q': the quaternion \(1, 0, 0, 0\) of Joint 'ball' is half a turn"
    ):
        sim.state(q=torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    sim.state(q=torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    assert [str(w.message) for w in recwarn] == []
