"""Drives and passive properties of joints in files."""

import math

import numpy as np
import pytest
from rigid_prims import PLACES, joint, notes, pair

from warpbots.scene import (
    Servo,
    Torque,
)

DRIVE = "float drive:angular:physics:"


def driven(folder, text, kind="PhysicsRevoluteJoint", token="angular"):
    return pair(folder, joint(kind, text=PLACES + text, apis=(f"PhysicsDriveAPI:{token}",)))


def test_a_drive_with_stiffness_is_a_servo(tmp_path):
    text = f"{DRIVE}stiffness = 2\n {DRIVE}damping = 0.5\n {DRIVE}targetPosition = 30\n"
    (motor,) = driven(tmp_path, text + "float physics:lowerLimit = -45\n float physics:upperLimit = 90\n").actuators
    per = 180 / math.pi
    assert isinstance(motor, Servo)
    assert (motor.name, motor.joint) == ("Hinge", "Hinge")
    values = (motor.stiffness, motor.damping, motor.target, motor.reach)
    np.testing.assert_allclose(values, (2 * per, 0.5 * per, math.pi / 6, math.radians(67.5)))


def test_other_drives(tmp_path, heard):
    (motor,) = driven(tmp_path, f"{DRIVE}maxForce = 7\n").actuators
    assert motor == Torque("Hinge", "Hinge", 7.0)
    scene = driven(tmp_path, f"{DRIVE}damping = 2\n {DRIVE}targetVelocity = 3\n")
    assert scene.actuators == ()
    np.testing.assert_allclose(scene.joints[0].damping, 2 * 180 / math.pi)
    assert "targetVelocity" in notes(heard)["/Hinge"]
    heard.clear()
    scene = driven(tmp_path, f'{DRIVE}stiffness = 2\n uniform token drive:angular:physics:type = "acceleration"\n')
    assert scene.actuators == ()
    assert "of type acceleration" in notes(heard)["/Hinge"]


def test_a_drive_that_is_not_applied_is_named(tmp_path, heard):
    assert pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + f"{DRIVE}stiffness = 2\n")).actuators == ()
    assert "PhysicsDriveAPI:angular is not applied" in notes(heard)["/Hinge"]


def test_passive_joints(tmp_path, heard):
    text = "float physxJoint:armature = 0.01\n double mjc:damping = 0.5\n double mjc:stiffness = 3\n float newton:friction = 2\n"
    (found,) = pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + text)).joints
    assert (found.armature, found.damping, found.stiffness) == ((0.01,), (0.5,), (3.0,))
    assert "dry friction" in notes(heard)["/Hinge"]
    (found,) = pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + "float newton:damping = 1\n")).joints
    assert found.damping == pytest.approx((180 / math.pi,))
