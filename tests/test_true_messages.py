"""Messages about a scene are true: reasons belong to the field, and existing things are not reported as missing."""

import math

import numpy as np
import pytest

import warpbots as wb
from warpbots.scene import Box, Posed, Silhouette

SOFT = wb.SoftBody("pad", Box((0, 0, 0), (1, 1, 1)), wb.Material(1e4), {"r": Box((0, 0, 0), (1, 1, 1))})
BONE = wb.RigidBody("bone", Box((0, 0, 0), (1, 1, 1)), points=4)
FRAME = wb.RigidBody("frame", None)
SIGN = "the sign of the control gives the direction"
NOTHING = "without stiffness it does nothing: leave it out"


def of_numbers(value):
    """Each actuator with one number out of range, and the reason why this is not allowed."""
    A, R = (1.0, 0.0, 0.0), "r"
    return {
        "pressure": (lambda: wb.actuators.Pressure("a", R, value), "max_pressure", SIGN),
        "cavity": (lambda: wb.actuators.Cavity("a", R, value), "max_pressure", SIGN),
        "muscle": (lambda: wb.actuators.Muscle("a", R, A, value), "max_stress", SIGN),
        "torque": (lambda: wb.actuators.Motor("a", "at", R, R, value, 1.0), "max_torque", SIGN),
        "speed": (lambda: wb.actuators.Motor("a", "at", R, R, 1.0, value), "max_speed", SIGN),
        "fibre": (lambda: wb.actuators.Fibre("a", R, A, value, 0.5), "stiffness", NOTHING),
        "cell": (lambda: wb.actuators.PneumaticCell("a", R, value, 0.5), "stiffness", NOTHING),
        "cable": (lambda: wb.actuators.Cable("a", [(0, 0, 0), A], value), "stiffness", NOTHING),
        "length": (
            lambda: wb.actuators.Cable("a", [(0, 0, 0), A], 1.0, value),
            "rest_length",
            "None is the length of the undef",
        ),
        "frequency": (
            lambda: wb.actuators.Oscillation("a", R, 0.1, value),
            "frequency",
            "the opposite wave vector turns a wave",
        ),
        "contraction": (lambda: wb.actuators.Fibre("a", R, A, 1.0, value), "max_contraction", SIGN),
        "expansion": (lambda: wb.actuators.PneumaticCell("a", R, 1.0, value), "max_expansion", SIGN),
        "strain": (lambda: wb.actuators.Expansion("a", R, value), "max_strain", SIGN),
        "amplitude": (
            lambda: wb.actuators.Oscillation("a", R, value, 1.0),
            "amplitude",
            "a phase that is greater by pi turns it",
        ),
    }


@pytest.mark.parametrize("value", [0.0, -0.3])
@pytest.mark.parametrize("case", of_numbers(0.0))
def test_reasons_belong_to_their_numbers(case, value):
    make, field, why = of_numbers(value)[case]
    with pytest.raises(wb.SceneError, match=rf"'a': {field} must be .*, got {value:g}; {why}"):
        make()


@pytest.mark.parametrize("case", ["contraction", "expansion", "strain", "amplitude"])
def test_strains_of_one_leave_no_length(case):
    make, field, _ = of_numbers(1.5)[case]
    with pytest.raises(wb.SceneError, match=rf"{field} must be in \(0, 1\), got 1.5; a rest (length|volume) must stay"):
        make()


def scene(bodies, **parts):
    return wb.Scene(bodies, **parts)


@pytest.mark.parametrize(("make", "said"), [
    (
        lambda: scene([SOFT, BONE], attachments=[wb.Attachment("a", "pad", "bone", [(0, 0, 0)])]),
        "Attachment 'a': body 'bone' is rigid, and attachments join soft bodies",
    ),
    (
        lambda: scene([SOFT], attachments=[wb.Attachment("a", "pad", "paw", [(0, 0, 0)])]),
        "there is no soft body 'paw'; the scene has pad",
    ),
    (
        lambda: scene([FRAME], attachments=[wb.Attachment("a", "x", "frame", [(0, 0, 0)])]),
        "there is no soft body 'x'; the scene has none",
    ),
    (
        lambda: scene([BONE, FRAME], contacts=[wb.Contact("bone", "frame", 1e6)]),
        "Contact 'bone on frame': 'frame' has no shape, which would be its solid",
    ),
    (
        lambda: scene([SOFT, BONE], joints=[wb.Joint("j", "revolute", "bone", "pad")]),
        "there is no rigid body 'pad' to be its child; the soft body of that name takes an Attachment; the scene has bone",
    ),
    (
        lambda: scene([BONE], actuators=[wb.actuators.Torque("t", "bone", 1.0)]),
        "Torque 't': body 'bone' floats without a Joint; a motor needs one",
    ),
    (lambda: wb.Inertia(1.0, (0.0,), (1.0, 1.0, 1.0)), r"Inertia.center must be three finite numbers, got \(0.0,\)"),
    (lambda: wb.RigidBody("b", None, position=(0.0,)), r"position must be three finite numbers, got \(0.0,\)"),
    (lambda: wb.Joint("j", "revolute", None, "b", axis=(0, 1, 0, 0)), r"axis must be three finite numbers, got \(0.0, 1.0, 0.0, 0.0\)"),
    (lambda: Silhouette(np.ones((2, 2)), (0, 0, 0), 0.1), "Silhouette.lower must be two finite numbers"),
    (
        lambda: wb.Cloud(np.zeros((3, 3)), np.ones((2, 2))),
        r"Cloud: 3 positions need as many areas, or one for all, got \(2, 2\)",
    ),
    (
        lambda: Posed(Box((0, 0), (1, 1)), (0, 0, 0), np.eye(3)),
        r"a 2D shape needs a translation of 2 components and a rotation of shape \(2, 2\), got .* of shape \(3, 3\)",
    ),
    (
        lambda: wb.Joint("j", "revolute", None, "b", lower=[-math.inf, 0.0], upper=1.0),
        "lower of a revolute joint must be one number or 1 of them",
    ),
    (
        lambda: wb.Fluid(1e3, drag=[(-1.0, 0.0), (1.0, 1.0)]),
        r"from -pi/2 to pi/2 \[rad\], got \[-1.0, 1.0\]; begin with -math.pi / 2 and end with math.pi / 2",
    ),
])  # fmt: skip
def test_what_is_said_of_a_scene_is_so(make, said):
    with pytest.raises(wb.SceneError, match=said) as fault:
        make()
    assert "there is no body 'bone'" not in str(fault.value)
