"""Writes robots as prims of UsdPhysics: an Xform at the initial pose for each body, and a prim for each joint.

Robots written by other programs are not changed: a scene whose rigid bodies, joints, drives or contacts differ from the
source file can only be written without that file (`source=None`).
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from pxr import Sdf, Usd, UsdPhysics

from warpbots.scene import Joint, RigidBody, Scene
from warpbots.solvers.articulated.robot import placed
from warpbots.usd.rigid.body_writer import write_body_prim
from warpbots.usd.rigid.exact_values import store_exact
from warpbots.usd.rigid.joint_kinematics import carried, start_coordinates
from warpbots.usd.rigid.joint_writer import write_joint
from warpbots.usd.rigid.robot_reader import Robots, read_robots
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.attributes import same, schemas
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Inventory, take_inventory
from warpbots.usd.stage.prim_editing import Target, remove
from warpbots.usd.stage.transforms import matrix_of

__all__ = ["RigidPrims", "start_poses", "write_robots"]

_ROUNDS = 4
"""Largest number of passes that add exact values; several may be needed, as exact poses of bodies change joints."""


class RigidPrims(NamedTuple):
    """Prims of the rigid part of a scene.

    Attributes:
        bodies: Name of each rigid body, by the path of its prim.
        motors: Names of the actuators that the file holds as drives only, without a separate prim.
        contacts: Names of the laws of contact that need no prim, because the reader derives them from the rest of the
            file.
    """

    bodies: dict[Sdf.Path, str]
    motors: frozenset[str]
    contacts: frozenset[str]


def write_robots(target: Target, scene: Scene, found: Inventory, read: Robots | None) -> RigidPrims:
    """Author all rigid bodies and joints of `scene`, with the drives of its motors.

    Args:
        target: The stage to write to.
        scene: The scene.
        found: The prims that the stage already has.
        read: The robots that the reader obtains from the prims in `found`; None if there are none.

    Raises:
        SceneError: The stage has rigid bodies that another program wrote and that differ from the scene.
    """
    old = found.rigid
    if old and read is not None and _unchanged(scene, found, read):
        motors = frozenset(m.name for m in read.motors)
        paths = {prim.GetPath(): name for name, prim in old.items()}
        return RigidPrims(paths, motors, frozenset(c.name for c in read.contacts or ()))
    foreign = [prim for prim in old.values() if RIGID_API not in schemas(prim)]
    if foreign:
        raise LocatedError(
            foreign[0].GetPath(),
            "rigid bodies, joints, drives and contacts of another program's file are written "
            "as they were read, and those of the scene differ; write dataclasses.replace(scene, source=None), "
            "which leaves that file out",
        )
    for prim in (*old.values(), *found.joints.values()):
        remove(prim, own=True)
    if not scene.rigid:
        return RigidPrims({}, frozenset(), frozenset())
    children = {b.name: b for b in scene.rigid}
    given = dataclasses.replace(scene, joints=[placed(j, children[j.child]) for j in scene.joints])
    poses = start_poses(given)
    bodies = {b.name: write_body_prim(target, b, poses[b.name], given) for b in scene.rigid}
    joints = {j.name: write_joint(target, given, j, bodies) for j in given.joints}
    _mark_roots(scene, bodies, joints)
    _complete(target, scene, bodies, joints)
    return RigidPrims({prim.GetPath(): name for name, prim in bodies.items()}, frozenset(), frozenset())


def _unchanged(scene: Scene, found: Inventory, read: Robots) -> bool:
    bodies = [b for name in found.bodies for b in read.bodies.get(name, ())]
    motors = {m.name: m for m in read.motors}
    contacts = {c.name: c for c in read.contacts or ()}
    return (
        bodies == list(scene.rigid)
        and read.joints == scene.joints
        and motors == {a.name: a for a in scene.actuators if a.name in motors}
        and contacts == {c.name: c for c in scene.laws if c.name in contacts}
    )


def start_poses(scene: Scene) -> dict[str, np.ndarray]:
    """Pose of each rigid body at time 0, shape (4, 4)."""
    bodies, joint_to = {b.name: b for b in scene.rigid}, {j.child: j for j in scene.joints}
    moved: dict[str | None, np.ndarray] = {None: np.eye(4)}  # pose with all joints at zero to the initial pose

    def motion(name: str | None) -> np.ndarray:
        if name not in moved:
            joint = joint_to.get(name)
            moved[name] = (
                np.eye(4)
                if joint is None
                else motion(joint.parent) @ carried(joint, np.eye(4), start_coordinates(joint))
            )
        return moved[name]

    return {name: motion(name) @ matrix_of(b.rotation, b.position) for name, b in bodies.items()}


def _mark_roots(scene: Scene, bodies: dict[str, Usd.Prim], joints: dict[str, Usd.Prim]) -> None:
    """Mark the root of each articulation: the joint to the world, or the floating base."""
    joint_to, parents = {j.child: j for j in scene.joints}, {j.parent for j in scene.joints}
    for body in scene.rigid:
        joint = joint_to.get(body.name)
        if joint is not None and joint.parent is not None:
            continue
        if joint is not None and joint.kind != "free":
            UsdPhysics.ArticulationRootAPI.Apply(joints[joint.name])
        elif body.name in parents:
            UsdPhysics.ArticulationRootAPI.Apply(bodies[body.name])


def _complete(target: Target, scene: Scene, bodies: dict[str, Usd.Prim], joints: dict[str, Usd.Prim]) -> None:
    """Add exact values for fields that the prims do not reproduce to the last bit."""
    for _ in range(_ROUNDS):
        read = read_robots(take_inventory(target.stage), target.frame, list(scene.actuators), [], 0)
        found = {b.name: b for several in read.bodies.values() for b in several}
        missing = 0
        for body in scene.rigid:
            missing += _complete_body(bodies[body.name], body, found[body.name])
        for joint, now in zip(scene.joints, read.joints, strict=False):
            if joint.name == now.name:
                missing += _complete_joint(joints[joint.name], joint, now)
        if not missing:
            return


def _complete_body(prim: Usd.Prim, body: RigidBody, now: RigidBody) -> int:
    missing = 0
    for field in ("position", "rotation"):
        if getattr(body, field) != getattr(now, field):
            store_exact(prim, field, getattr(body, field))
            missing += 1
    if body.inertia is not None and body.inertia != now.inertia:
        store_exact(prim, "center", body.inertia.center)
        store_exact(prim, "moments", body.inertia.moments)
        missing += 1
    return missing


def _complete_joint(prim: Usd.Prim, joint: Joint, now: Joint) -> int:
    missing = 0
    for field in (f.name for f in dataclasses.fields(Joint)):
        if field in ("name", "kind", "parent", "child") or same(getattr(joint, field), getattr(now, field)):
            continue
        store_exact(prim, field, getattr(joint, field))
        missing += 1
    return missing
