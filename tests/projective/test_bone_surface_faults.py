"""What bare bones may not start inside of, and what may: each fault is refused with a reason."""

import numpy as np
import pytest
from bare_bones import CELL, NOWHERE, SOFT, sled

from warpbots.scene import Box, Joint, Obstacle, RigidBody, Scene, SceneError, Sheet, SoftBody, Sphere, floor
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact.bone_surface import distance_to_body


def refused(*more, obstacles: tuple = (), joints: tuple = ()) -> Scene:
    return Scene((*sled(), *more), obstacles=obstacles, joints=joints)


REFUSED = {
    "under the floor": (
        lambda: refused(obstacles=(floor(0.01),)),
        "'floor': .* surface points of RigidBody 'bone' start",
    ),
    "obstacle inside": (
        lambda: refused(obstacles=(Obstacle(Sphere((0.05, 0.0, 0.02), 0.008), name="ball"),)),
        "'ball': it starts inside RigidBody 'bone'",
    ),
    "body around it": (
        lambda: refused(
            SoftBody("grip", Box((-0.2, -0.02, -0.02), (-0.16, 0.02, 0.02)), SOFT),
            RigidBody("blade", Box((-0.19, -0.021, -0.003), (-0.1, 0.021, 0.003))),
            SoftBody("block", Box((-0.13, -0.03, -0.01), (-0.07, 0.03, 0.05)), SOFT),
        ),
        "'blade' and SoftBody 'block': it starts up to 0.013 m inside it",
    ),
    "cloth through it": (
        lambda: refused(SoftBody("cloth", Sheet.rectangle((-0.2, -0.2), (0.2, 0.2), 1e-3, (3, 3), height=0.02), SOFT)),
        "'bone' and SoftBody 'cloth': their surfaces intersect",
    ),
    "bone in bone": (
        lambda: refused(*sled((0.1, 0.0, -0.04), names=("second soft", "second"))),
        "'bone' and RigidBody 'second': .*connect them by a Joint",
    ),
    "crossed bones": (
        lambda: refused(
            SoftBody("far", Box((-0.1, 0.1, 0.0), (0.1, 0.16, 0.06)), SOFT),
            RigidBody("bar", Box((-0.058, -0.2, 0.005), (0.058, 0.15, 0.03))),
        ),
        "RigidBody 'bar'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_starts_inside_something_is_refused_with_a_reason(case):
    scene, words = REFUSED[case]
    with pytest.raises(SceneError, match=words):
        ProjectiveDynamics(CELL).build(scene())


def test_bones_that_a_joint_connects_may_overlap():
    """Also by way of a body without a shape."""
    more = sled((0.1, 0.0, -0.04), names=("second soft", "second"))
    for joints, between in (
        ((Joint("j", "revolute", "bone", "second"),), ()),
        (
            (Joint("i", "revolute", "bone", "axle"), Joint("j", "revolute", "axle", "second")),
            (RigidBody("axle", None),),
        ),
    ):
        model = ProjectiveDynamics(CELL).build(refused(*between, *more, joints=joints))
        assert model.topology.bone_surfaces.bones.tolist() in ([0, 1], [0, 2])


def test_friction_of_a_rigid_body_is_a_coefficient():
    with pytest.raises(SceneError, match="RigidBody 'b': friction must be a coefficient >= 0"):
        RigidBody("b", Sphere(NOWHERE, 0.1), friction=-0.1)


def test_distance_to_what_has_no_inside_is_infinite():
    cloth = SoftBody("cloth", Sheet.rectangle((0.0, 0.0), (1.0, 1.0), 1e-3, (2, 2)), SOFT)
    assert np.isinf(distance_to_body(cloth, np.zeros((2, 3)))).all()
