"""Rigid bodies and joints as prims of UsdPhysics: an Xform for each body, where it starts, and a prim for each joint.

Robots of other programs are left as they are: a scene that has other rigid bodies, joints, drives or contacts than the
file it came from is written without that file (`source=None`).
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import JOINTS, Cloud, Joint, RigidBody, Scene, SceneError
from warpbots.usd.geometry.obstacle_prims import collide
from warpbots.usd.geometry.physics_materials import bind, write_surface
from warpbots.usd.geometry.shape_prims import write_shape
from warpbots.usd.rigid.colliders import is_rigid
from warpbots.usd.rigid.exact_values import store
from warpbots.usd.rigid.joint_writer import author_row, quaternion, write_joint
from warpbots.usd.rigid.poses import carried, displacement, matrix_of
from warpbots.usd.rigid.robot_reader import Robots, read_robots
from warpbots.usd.stage.inventory import Survey, survey
from warpbots.usd.stage.schema import RIGID_API, rows
from warpbots.usd.stage.target import Target, remove, rename
from warpbots.usd.stage.units import Frame
from warpbots.usd.stage.values import apply, put, same, schemas

__all__ = ["Kept", "rigid_prims", "start_poses", "write_robots"]

_ROUNDS = 4
"""How often twins are added: one of a body changes what the joints on it read as."""


class Kept(NamedTuple):
    """What stands for the rigid part of a scene.

    Attributes:
        bodies: Paths of bodies, with their names.
        motors: Names of actuators that are drives alone.
        contacts: Names of contacts that need no prim.
    """

    bodies: dict[Sdf.Path, str]
    motors: frozenset[str]
    contacts: frozenset[str]


def rigid_prims(found: Survey) -> dict[str, Usd.Prim]:
    """The rigid bodies among the bodies of a stage."""
    return {name: prim for name, prim in found.bodies.items() if is_rigid(prim)}


def write_robots(target: Target, scene: Scene, found: Survey, read: Robots | None) -> Kept:
    """Author all rigid bodies and joints of `scene`, with the drives of its motors.

    Args:
        target: Where.
        scene: The scene.
        found: What is there already.
        read: What that reads as, or None where there is nothing.

    Raises:
        SceneError: What is there is of another program, and no longer what the scene has.
    """
    old = rigid_prims(found)
    if old and read is not None and _unchanged(scene, found, read):
        motors = frozenset(m.name for m in read.motors)
        paths = {prim.GetPath(): name for name, prim in old.items()}
        return Kept(paths, motors, frozenset(c.name for c in read.contacts))
    foreign = [prim for prim in old.values() if RIGID_API not in schemas(prim)]
    if foreign:
        raise SceneError(
            f"{foreign[0].GetPath()}: rigid bodies, joints, drives and contacts of another program's file are written "
            f"as they were read, and those of the scene differ; write dataclasses.replace(scene, source=None) to do "
            f"without that file"
        )
    for prim in (*old.values(), *found.joints.values()):
        remove(prim, own=True)
    if not scene.rigid:
        return Kept({}, frozenset(), frozenset())
    poses = start_poses(scene)
    bodies = {b.name: _write_body(target, b, poses[b.name], scene) for b in scene.rigid}
    joints = {j.name: write_joint(target, scene, j, bodies) for j in scene.joints}
    _mark_roots(scene, bodies, joints)
    _complete(target, scene, bodies, joints)
    return Kept({prim.GetPath(): name for name, prim in bodies.items()}, frozenset(), frozenset())


def _unchanged(scene: Scene, found: Survey, read: Robots) -> bool:
    bodies = [b for name in found.bodies for b in read.bodies.get(name, ())]
    motors = {m.name: m for m in read.motors}
    contacts = {c.name: c for c in read.contacts}
    return (
        bodies == list(scene.rigid)
        and read.joints == scene.joints
        and motors == {a.name: a for a in scene.actuators if a.name in motors}
        and contacts == {c.name: c for c in scene.contacts if c.name in contacts}
    )


def start_poses(scene: Scene) -> dict[str, np.ndarray]:
    """Pose of each rigid body at time 0, shape (4, 4)."""
    bodies, hanging = {b.name: b for b in scene.rigid}, {j.child: j for j in scene.joints}
    moved: dict[str | None, np.ndarray] = {None: np.eye(4)}  # what was at rest at zero to where it starts

    def motion(name: str | None) -> np.ndarray:
        if name not in moved:
            joint = hanging.get(name)
            moved[name] = (
                np.eye(4) if joint is None else motion(joint.parent) @ carried(joint, np.eye(4), _start(joint))
            )
        return moved[name]

    return {name: motion(name) @ matrix_of(b.rotation, b.position) for name, b in bodies.items()}


def _start(joint: Joint) -> np.ndarray:
    result = np.zeros(JOINTS[joint.kind][1])
    if joint.kind in ("ball", "free"):
        result[-1] = 1.0
    return result if joint.start is None else np.array(joint.start)


def _write_body(target: Target, body: RigidBody, pose: np.ndarray, scene: Scene) -> Usd.Prim:
    stage, frame = target.stage, target.frame
    prim = stage.DefinePrim(target.path("Bodies", body.name), "Xform")
    rename(prim, body.name)
    _place(prim, np.linalg.inv(frame.matrix(prim)) @ pose)
    UsdPhysics.RigidBodyAPI.Apply(prim)
    UsdPhysics.MassAPI.Apply(prim)
    apply(prim, RIGID_API)
    put(prim, "RigidBody.density", body.density, frame)
    _write_inertia(prim, body, frame)
    if body.shape is not None:
        write_shape(stage, f"{prim.GetPath()}/Shape", body.shape, frame, target.extent, np.eye(4))
        collide(prim)
    put(prim, "RigidBody.color", body.color, frame)
    put(prim, "RigidBody.friction", body.friction, frame)
    put(prim, "RigidBody.surface", body.surface, frame)
    put(prim, "RigidBody.points", 0 if isinstance(body.points, Cloud) else int(body.points), frame)
    if isinstance(body.points, Cloud):
        store(prim, "cloud:positions", body.points.positions)
        store(prim, "cloud:areas", body.points.areas)
    laws = [c for c in scene.contacts if {c.points, c.solid} & {body.name, body.surface}]
    if laws:
        path, bounces = f"{prim.GetPath()}/PhysicsMaterial", [c.restitution for c in laws if c.restitution is not None]
        material = write_surface(stage, path, laws[0].friction, None, next(iter(bounces), None), frame)
        bind(prim, material, over_descendants=True)
    _write_velocity(prim, body, next((j for j in scene.joints if j.child == body.name), None), frame)
    return prim


def _place(prim: Usd.Prim, local: np.ndarray) -> None:
    """Give `prim` the transform `local`: a translation and a rotation, where it is no more than that."""
    from scipy.spatial.transform import Rotation

    xformable, double = UsdGeom.Xformable(prim), UsdGeom.XformOp.PrecisionDouble
    if not np.allclose(local[:3, :3] @ local[:3, :3].T, np.eye(3), atol=1e-9):
        xformable.AddTransformOp().Set(Gf.Matrix4d(local.T.tolist()))
        return
    x, y, z, w = Rotation.from_matrix(local[:3, :3]).as_quat(canonical=True).tolist()
    xformable.AddTranslateOp(double).Set(Gf.Vec3d(*local[:3, 3].tolist()))
    xformable.AddOrientOp(double).Set(Gf.Quatd(w, x, y, z))


def _write_inertia(prim: Usd.Prim, body: RigidBody, frame: Frame) -> None:
    if body.inertia is None:
        return
    put(prim, "Inertia.mass", body.inertia.mass, frame)
    principal, axes = np.linalg.eigh(body.inertia.moments)
    if np.count_nonzero(body.inertia.moments - np.diag(np.diag(body.inertia.moments))) == 0:
        principal, axes = np.diag(body.inertia.moments), np.eye(3)
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    author_row(prim, rows("Inertia.center")[0], Gf.Vec3f(*body.inertia.center))
    author_row(prim, rows("Inertia.diagonal")[0], Gf.Vec3f(*(principal / frame.factor("kg m^2")).tolist()))
    author_row(prim, rows("Inertia.axes")[0], quaternion(axes))


def _write_velocity(prim: Usd.Prim, body: RigidBody, joint: Joint | None, frame: Frame) -> None:
    """For other programs, the velocity of a body that floats, at its centre of mass and in the axes of its parent."""
    if joint is None or joint.kind != "free" or joint.parent is not None or joint.start_velocity is None:
        return
    turned = matrix_of(joint.rotation, joint.position) @ displacement("free", np.array(joint.axis), _start(joint))
    rates = np.array(joint.start_velocity)
    w = turned[:3, :3] @ rates[3:]
    pose = carried(joint, matrix_of(body.rotation, body.position), _start(joint))
    center = pose[:3, :3] @ (np.array(body.inertia.center) if body.inertia else np.zeros(3)) + pose[:3, 3]
    v = np.array(joint.rotation) @ rates[:3] + np.cross(w, center - turned[:3, 3])
    R = frame.to_scene[:3, :3].T / frame.meters
    author_row(prim, rows("velocity of a body")[0], Gf.Vec3f(*(R @ v / frame.meters).tolist()))
    author_row(prim, rows("angular velocity of a body")[0], Gf.Vec3f(*np.degrees(R @ w).tolist()))


def _mark_roots(scene: Scene, bodies: dict[str, Usd.Prim], joints: dict[str, Usd.Prim]) -> None:
    """Say where articulations begin: at the joint that holds a robot to the world, or at the body that floats."""
    hanging, carrying = {j.child: j for j in scene.joints}, {j.parent for j in scene.joints}
    for body in scene.rigid:
        joint = hanging.get(body.name)
        if joint is not None and joint.parent is not None:
            continue
        if joint is not None and joint.kind != "free":
            UsdPhysics.ArticulationRootAPI.Apply(joints[joint.name])
        elif body.name in carrying:
            UsdPhysics.ArticulationRootAPI.Apply(bodies[body.name])


def _complete(target: Target, scene: Scene, bodies: dict[str, Usd.Prim], joints: dict[str, Usd.Prim]) -> None:
    """Add the exact twins of what the prims do not give back to the last bit."""
    for _ in range(_ROUNDS):
        read = read_robots(survey(target.stage), target.frame, list(scene.actuators), [], 0)
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
            store(prim, field, getattr(body, field))
            missing += 1
    if body.inertia is not None and body.inertia != now.inertia:
        store(prim, "center", body.inertia.center)
        store(prim, "moments", body.inertia.moments)
        missing += 1
    return missing


def _complete_joint(prim: Usd.Prim, joint: Joint, now: Joint) -> int:
    missing = 0
    for field in (f.name for f in dataclasses.fields(Joint)):
        if field in ("name", "kind", "parent", "child") or same(getattr(joint, field), getattr(now, field)):
            continue
        store(prim, field, getattr(joint, field))
        missing += 1
    return missing
