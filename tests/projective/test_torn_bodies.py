"""Skeletons through several soft bodies: what touches and is not joined is refused, and nothing else."""

import pytest

import warpbots as wb

Box = wb.shapes.Box
JOINT = wb.Joint("hip", "revolute", "thigh", "shank", (0.2, 0.05, 0.05))
WELD = wb.Attachment("weld", "upper", "lower", [(0.2, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)])


def leg(start: float = 0.2, joints=(JOINT,), attachments=()) -> wb.Scene:
    """Two soft bars in line with a bone in each; the second one begins at `start`."""
    upper = wb.SoftBody("upper", Box((0.0, 0.0, 0.0), (0.2, 0.1, 0.1)), wb.Material(1e5))
    lower = wb.SoftBody("lower", Box((start, 0.0, 0.0), (start + 0.2, 0.1, 0.1)), wb.Material(1e5))
    thigh = wb.RigidBody("thigh", Box((0.05, 0.025, 0.025), (0.15, 0.075, 0.075)), 1000.0)
    shank = wb.RigidBody("shank", Box((start + 0.05, 0.025, 0.025), (start + 0.15, 0.075, 0.075)), 1000.0)
    return wb.Scene([upper, lower, thigh, shank], joints=joints, attachments=attachments)


def built(scene: wb.Scene) -> wb.Simulation:
    return wb.Simulation(scene, wb.ProjectiveDynamics(0.025, collisions=False), 0.01)


def test_bodies_that_touch_and_are_not_joined_are_refused():
    """In one sentence, with the bones, both bodies, and the 25 nodes of their common face."""
    with pytest.raises(wb.SceneError) as fault:
        built(leg())
    assert str(fault.value) == (
        "RigidBody 'thigh', 'shank': one skeleton runs through SoftBody 'upper' and 'lower', which touch at 25 nodes "
        "and would come apart there, since nothing joins them; make them one SoftBody with the Union of their shapes, "
        "connect them with an Attachment, or leave a gap"
    )


def test_one_bone_through_both_is_refused():
    scene = leg()
    spine = wb.RigidBody("spine", Box((0.05, 0.025, 0.025), (0.35, 0.075, 0.075)), 1000.0)
    with pytest.raises(
        wb.SceneError, match="RigidBody 'spine': one skeleton runs through SoftBody 'upper' and 'lower'"
    ):
        built(wb.Scene([*scene.soft, spine]))


@pytest.mark.parametrize("scene", [leg(0.23), leg(attachments=(WELD,)), leg(joints=())], ids=["gap", "weld", "two"])
def test_what_is_apart_or_joined_is_built(scene):
    """A gap, an attachment, and two skeletons, each in its own body."""
    assert len(built(scene).model.scene.rigid) == 2


@pytest.mark.parametrize("actuator", [wb.actuators.Fibre("pull", "speck", (1, 0, 0), 1e5, 0.3), wb.actuators.Muscle("pull", "speck", (1, 0, 0), 1e4)])  # fmt: skip
def test_a_muscle_without_an_element_is_refused(actuator):
    """A region with a node and no centre of an element."""
    speck = {"speck": Box((-1e-3, -1e-3, -1e-3), (1e-3, 1e-3, 1e-3))}
    body = wb.SoftBody("bar", Box((0.0, 0.0, 0.0), (0.2, 0.1, 0.1)), wb.Material(1e5), speck)
    kind = type(actuator).__name__
    with pytest.raises(wb.SceneError, match=f"{kind} 'pull': region 'speck' contains the centre of no element of a solid, nor of any element"):  # fmt: skip
        built(wb.Scene([body], [actuator]))
