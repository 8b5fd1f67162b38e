"""Values that would be read otherwise than they are meant are refused: booleans, one number for a vector, crossed limits.

Quaternions that begin with w are named by a warning.
"""

import warnings

import numpy as np
import pytest
import torch

import warpbots as wb

CUBE = wb.SoftBody("cube", wb.shapes.Box((0.0, 0.0, 0.1), (0.1, 0.1, 0.2)), wb.Material(1e4))


@pytest.fixture(scope="module")
def soft():
    return wb.Simulation(wb.Scene([CUBE]), wb.MassSpring(0.1), 1e-3, 1, worlds=2)


@pytest.fixture(scope="module")
def hinged():
    bob = wb.RigidBody("bob", wb.shapes.Sphere((0.0, 0.0, -0.3), 0.1))
    hinge = wb.Joint("hinge", "revolute", None, "bob", axis=(0, 1, 0), lower=-1.0, upper=1.0)
    return wb.Simulation(wb.Scene([bob], joints=[hinge]), wb.Articulated(), 1e-3)


@pytest.mark.parametrize("value", [True, torch.tensor([True, False])[:, None]])
def test_booleans_are_no_numbers(soft, value):
    """True was a Young's modulus of 1 Pa; the marks of lost worlds may be booleans."""
    for call, what in (
        (lambda: soft.rollout(None, 1, youngs_modulus=value), "parameter 'youngs_modulus'"),
        (lambda: soft.state(velocity=value), "state field 'velocity'"),
        (lambda: soft.per_region({"cube": True}, "youngs_modulus"), "per_region: the value of 'cube'"),
    ):
        with pytest.raises(ValueError, match=rf"^{what} must be numbers, got booleans, which would be 0 and 1"):
            call()
    assert soft.state(lost=torch.tensor([True, False])).lost.tolist() == [1.0, 0.0]


def test_one_number_is_not_each_component_of_a_vector(soft, hinged):
    """Gravity of -9.81 pulled along x and y as well, 1.7 times too strong."""
    for call, said in (
        (lambda: soft.rollout(None, 1, gravity=-9.81), r"parameter 'gravity' has a vector as each entry, .* -9\.81, "),
        (lambda: soft.state(velocity=torch.tensor([0.5])), r"state field 'velocity' has a vector .*; give each comp"),
        (lambda: hinged.rollout(None, 1, inertia=0.1), "parameter 'inertia' has a matrix as each entry"),
        (lambda: hinged.per_region({"bob": 2.0}, "body_force"), "per_region: the value of 'bob' has a vector as each"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    assert not soft.state(velocity=0.0).velocity.any()
    soft.rollout(None, 1, gravity=0.0)


def test_limits_of_parameters_do_not_cross(hinged):
    """Between them, both springs pushed; limits of the scene were refused."""
    said = r"^parameter 'joint_lower' must be at most 'joint_upper', got 0\.5 and 0\.25 at index \[0, 0\]"
    with pytest.raises(ValueError, match=said):
        hinged.rollout(None, 1, joint_lower=0.5, joint_upper=0.25)
    with pytest.raises(ValueError, match="got 2 and 1 at index"):
        hinged.rollout(None, 1, joint_lower=2.0)
    hinged.rollout(None, 1, joint_lower=0.25, joint_upper=0.25)


@pytest.mark.parametrize("name", ["joint_rotation", "body_rotation"])
def test_a_quaternion_of_a_parameter_that_begins_with_w_is_named(name):
    """A state with such a quaternion is named, too. The body was turned by half a turn without a word."""
    bob = wb.RigidBody("bob", wb.shapes.Sphere((0.0, 0.0, -0.3), 0.1))
    sim = wb.Simulation(wb.Scene([bob], joints=[wb.Joint("b", "ball", None, "bob")]), wb.Articulated(), 1e-3)
    said = rf"parameter '{name}': the quaternion \(1, 0, 0, 0\) at index \[0, 0\] is half a turn about x"
    value = torch.tensor([1.0, 0.0, 0.0, 0.0])
    with pytest.warns(UserWarning, match=said):
        sim.rollout(None, 1, **{name: value})
    with pytest.warns(UserWarning, match=r"'q': the quaternion \(1, 0, 0, 0\) of Joint 'b' is half a turn about x"):
        sim.state(q=value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for same in (value, [0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]):
            sim.rollout(None, 1, **{name: same})
    with pytest.raises(ValueError, match=f"parameter '{name}' must be a quaternion of a length above 0"):
        sim.rollout(None, 1, **{name: [0.0, 0.0, 0.0, 0.0]})


def test_half_a_turn_about_x_of_the_scene_is_no_mistake():
    """Its own values may be given back."""
    half_turn = np.diag([1.0, -1.0, -1.0])
    bob = wb.RigidBody("bob", wb.shapes.Sphere((0.0, 0.0, -0.3), 0.1), rotation=half_turn)
    joint = wb.Joint("b", "ball", None, "bob", start=(1.0, 0.0, 0.0, 0.0))
    sim = wb.Simulation(wb.Scene([bob], joints=[joint]), wb.Articulated(), 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.rollout(None, 1, sim.state(q=sim.state().q), body_rotation=torch.tensor([1.0, 0.0, 0.0, 0.0]))


def test_a_target_without_stiffness_is_said_to_have_no_effect():
    """A motor that gives a torque has none; one number for all motors reaches the servo, too."""
    arms = [wb.RigidBody(name, wb.shapes.Sphere((x, 0.0, -0.3), 0.1)) for name, x in (("a", 0.0), ("b", 1.0))]
    hinges = [wb.Joint(f"{b.name} hinge", "revolute", None, b.name, axis=(0, 1, 0)) for b in arms]
    motors = [wb.actuators.Torque("torque", "a hinge", 1.0), wb.actuators.Servo("servo", "b hinge", 1.0)]
    sim = wb.Simulation(wb.Scene(arms, motors, joints=hinges), wb.Articulated(), 1e-3)
    said = r"^parameter '{}' is changed only where 'motor_stiffness' is 0, first at index \[0, 0\], and has no effect"
    with pytest.warns(UserWarning, match=said.format("motor_target")):
        sim.rollout(None, 1, motor_target=[[0.3, 0.0]])
    with pytest.warns(UserWarning, match=said.format("motor_reach") + ".* take a Servo in place of a Torque"):
        sim.rollout(None, 1, motor_reach=[[0.3, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in ({"motor_target": 0.3}, {"motor_target": [[0.3, 0.0]], "motor_stiffness": [[1.0, 1.0]]}):
            sim.rollout(None, 1, **given)
        sim.rollout(None, 1, motor_target=sim.parameter("motor_target"))
