"""Reads the rigid bodies of a file as kinematic trees, with joints, motors and laws of contact."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pxr import Sdf

from warpbots.scene import (
    Contact,
    Inertia,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    Servo,
    Torque,
)
from warpbots.solvers.articulated.robot import placed
from warpbots.usd.rigid.body_contacts import add_contact
from warpbots.usd.rigid.body_reader import BodyPrim, read_body_prim, read_velocity
from warpbots.usd.rigid.body_tree import Branch, branches
from warpbots.usd.rigid.exact_values import agree, exact_pose, load_exact
from warpbots.usd.rigid.joint_chains import ChainJoint, joint_chain
from warpbots.usd.rigid.joint_drives import claim, read_drives
from warpbots.usd.rigid.joint_reader import read_joint_prim
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.faults import Faults, attempt, refuse
from warpbots.usd.stage.inventory import Inventory, Note
from warpbots.usd.stage.units import StageUnits

__all__ = ["Robots", "points_of", "read_robots"]


class Robots(NamedTuple):
    """Rigid bodies with their joints, motors and laws of contact.

    Attributes:
        bodies: For each rigid body of the file, by its name, the bodies of the scene: massless bodies between the
            joints to the parent, then the body itself.
        joints: The joints.
        motors: Motors for the drives of the file that do not belong to one of `actuators`.
        actuators: Actuators that have a prim in the file, updated with the values of their drives.
        contacts: Laws of contact that follow from the colliders of the file, without a prim for the law; None if no
            colliders imply contact, or its absence.
    """

    bodies: dict[str, tuple[RigidBody, ...]]
    joints: tuple[Joint, ...]
    motors: tuple[Torque | Servo, ...]
    actuators: tuple
    contacts: tuple[Contact, ...] | None


def read_robots(
    found: Inventory, frame: StageUnits, actuators: list, obstacles: list[Obstacle], contact_points: int,
    ignore_loops: bool = True,
) -> Robots:  # fmt: skip
    """The rigid bodies of a stage with their joints, motors and laws of contact.

    Args:
        found: The prims of the stage; receives a note on anything left out.
        frame: Units and axes of the stage.
        actuators: Actuators that have a prim in the file.
        obstacles: The obstacles.
        contact_points: Number of contact points of bodies whose prims do not set it; 0 for no contact.
        ignore_loops: Whether joints that close loops are left out.

    Raises:
        SceneError: Bodies or joints cannot be read; the message has one line for each, with the path of the prim.
    """
    faults: Faults = []
    tried = functools.partial(attempt, faults)
    rigid, note = found.rigid, found.note
    bodies = {prim.GetPath(): tried(read_body_prim, prim, n, frame, note) for n, prim in rigid.items()}
    prims = [tried(read_joint_prim, prim, n, frame, note) for n, prim in found.joints.items()]
    joints = [joint for joint in prims if joint is not None]
    roots, cut = list(found.roots.values()), note if ignore_loops else None
    grown = tried(branches, list(rigid.values()), joints, roots, cut) if not faults else None
    refuse(faults)
    order = {joint.prim.GetPath(): k for k, joint in enumerate(joints)}
    steps, posed = _place(bodies, grown, frame, note, tried)
    refuse(faults)
    steps.sort(key=lambda step: order[step.prim.GetPath()])
    scene_joints = [_centred(step, posed) for step in steps]
    scene_joints += _floating(bodies, posed, scene_joints, frame, note)
    posed = _weigh(bodies, posed, scene_joints, note)
    claimed, motors = claim(actuators, steps, note), []
    for step in steps:
        motors += read_drives(step, claimed.taken, note)
    posed, contacts = add_contact(
        list(bodies.values()), posed, scene_joints, grown, found, obstacles, contact_points, frame
    )
    return Robots(posed, tuple(scene_joints), tuple(motors), tuple(claimed.actuators), contacts)


def points_of(scene: Scene) -> int:
    """The argument `contact_points` with which `scene` was read: the largest number of contact points of a body."""
    return max((b.points for b in scene.rigid if isinstance(b.points, int)), default=0)


def _place(
    bodies: dict[Sdf.Path, BodyPrim], grown: list[Branch], frame: StageUnits, note: Note, attempt: Callable
) -> tuple[list[ChainJoint], dict[str, tuple[RigidBody, ...]]]:
    """The joints of the scene, and all bodies in the poses that they have with all joints at zero."""
    zero = {path: exact_pose(b.prim, b.now) for path, b in bodies.items()}
    between: dict[Sdf.Path, list[RigidBody]] = {}
    steps: list[ChainJoint] = []
    for branch in grown:
        up, child = branch.parent, bodies[branch.child]
        names = (bodies[up].name if up else None, child.name)
        now = (bodies[up].now if up else np.eye(4), child.now)
        hung = attempt(joint_chain, branch, names, zero[up] if up else np.eye(4), now, child.prim, frame, note)
        if hung is not None:
            steps += hung.steps
            between[branch.child], zero[branch.child] = hung.between, hung.zero
    posed = {
        b.name: (
            *between.get(path, ()),
            dataclasses.replace(b.body, position=tuple(zero[path][:3, 3].tolist()), rotation=zero[path][:3, :3]),
        )
        for path, b in bodies.items()
    }
    return steps, posed


def _floating(
    bodies: dict[Sdf.Path, BodyPrim],
    posed: dict[str, tuple[RigidBody, ...]],
    joints: list[Joint],
    frame: StageUnits,
    note: Note,
) -> list[Joint]:
    """Free joints for floating bodies that start with a velocity, or whose name is also the name of a joint."""
    hanging, names = {j.child: j for j in joints}, {j.name for j in joints}
    found = []
    for b in bodies.values():
        body, v, w = posed[b.name][-1], *read_velocity(b.prim, frame)
        moves = v.any() or w.any()
        if b.name in hanging:
            if moves and hanging[b.name].start_velocity is None:
                note(b.prim, "a velocity of a body with a joint; the state of the joint is used instead")
            continue
        if not moves and b.name not in names:
            continue
        R = np.array(body.rotation)
        rate = (*(R.T @ v), *(R.T @ w))  # of the centre of mass, as in a file
        found.append(
            Joint(f"{b.name}/free", "free", None, b.name, rotation=body.rotation,
                  start_velocity=tuple(map(float, rate)) if moves else None)
        )  # fmt: skip
    return found


def _centred(step: ChainJoint, posed: dict[str, tuple[RigidBody, ...]]) -> Joint:
    """The joint of `step`.

    A free joint that was written without a position gets no position if it is still at the centre of mass.
    """
    joint, written = step.joint, load_exact(step.prim, "position")
    if joint.kind != "free" or written is None or written.size:
        return joint
    child = next(b for several in posed.values() for b in several if b.name == joint.child)
    free = dataclasses.replace(joint, position=None)
    return free if agree(joint.position, placed(free, child).position) else joint


def _weigh(
    bodies: dict[Sdf.Path, BodyPrim], posed: dict[str, tuple[RigidBody, ...]], joints: list[Joint], note: Note
) -> dict[str, tuple[RigidBody, ...]]:
    """Give bodies without mass, collider and children the default of UsdPhysics: a ball of 1 kg with radius 10 cm."""
    carriers = {j.parent for j in joints}
    for b in bodies.values():
        body = posed[b.name][-1]
        if body.shape is None and body.inertia is None and b.name not in carriers and RIGID_API not in schemas(b.prim):
            note(
                b.prim, "neither mass nor collider; it is taken as a ball of 1 kg and 0.1 m, the default of UsdPhysics"
            )
            body = dataclasses.replace(body, inertia=Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.004, 0.004)))
            posed[b.name] = (*posed[b.name][:-1], body)
    return posed
