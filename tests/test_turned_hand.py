"""The hand of an arm turns about the vertical and stays in its place."""

import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import warpbots as wb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks" / "tasks"))
from grasping import Arm, small_arm


def arm_with_a_seventh_axis() -> Arm:
    """The small arm with another hinge, about the length of the hand, between its wrist and its hand."""
    robot, hand = small_arm()
    cuff = wb.RigidBody("cuff", wb.shapes.Cylinder((0, 0, 0.5), (0, 0, 0.508), 0.015), 600.0)
    joints = [dataclasses.replace(j, child="cuff") if j.child == hand.link else j for j in robot.joints]
    joints.append(wb.Joint("yaw", "revolute", "cuff", hand.link, (0, 0, 0.5), axis=(0.0, 0.0, 1.0), armature=0.01))
    servos = [*robot.actuators, wb.actuators.Servo("yaw", "yaw", 500.0, 25.0)]
    return Arm(dataclasses.replace(robot, bodies=[*robot.bodies, cuff], joints=joints, actuators=servos), hand)


@pytest.mark.parametrize("angle", [math.pi / 2.0, -math.pi / 2.0])
def test_a_hand_turns_about_the_vertical_in_its_place(angle):
    arm = arm_with_a_seventh_axis()
    q = arm.turned(arm.start, angle)
    np.testing.assert_allclose(arm.middle(q), arm.middle(), atol=1e-6)
    about_z = np.array([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0], [0, 0, 1.0]])
    np.testing.assert_allclose(arm.pose("hand", q)[1], about_z @ arm.pose("hand")[1], atol=1e-5)
    assert abs(float(q[-1]) - float(arm.start[-1])) == pytest.approx(math.pi / 2.0, abs=1e-4)
