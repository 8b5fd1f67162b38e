"""Writes a scene as MJCF: numbers with all digits, and meshes as separate Wavefront OBJ files.

MuJoCo's own writer (`MjSpec.to_xml`) keeps six digits, which changes the motion of a robot.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from warpbots.robots.contact_pairs import (
    IMPEDANCE,
    IMPRATIO,
    QUIET,
    ContactPair,
    Solid,
    bits_of,
    excluded,
    point_pairs,
    solid_pairs,
    with_points,
)
from warpbots.robots.kinematic_tree import UNBOUNDED
from warpbots.robots.masses import LEAST
from warpbots.robots.mujoco_source import import_mujoco
from warpbots.robots.names import unique
from warpbots.robots.quaternions import quaternion
from warpbots.robots.shape_parts import PlacedShape, mesh_text, parts_of
from warpbots.robots.written_joints import FileJoint, JointFrame, WrittenJoint, numbers, written_joints
from warpbots.scene import Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.solvers.articulated.contact_groups import points_of
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.joint_limits import limit_laws

__all__ = ["START", "mjcf"]

START = "start"
"""Name of the keyframe that has the initial state of a scene."""

_POINT = 1e-6
"""Radius of the ball that represents a contact point [m]."""

_SOLIMP = (IMPEDANCE, IMPEDANCE, 1e-3, 0.5, 2.0)


@dataclasses.dataclass(frozen=True, eq=False)
class _Robot:
    """The content of an MJCF file: the scene, its joints, and its geoms by body or obstacle.

    Attributes:
        scene: The scene.
        joints: The joints of the scene in the form of the file.
        pairs: The pairs of solids, or of a contact point and a solid, that touch.
        bits: The contype and conaffinity of each solid; empty if contact points touch instead of solids.
        geoms: Geoms of each body or obstacle, each as its name and its shape.
        files: Names of the mesh files, by the name of the geom that has the mesh.
        rounding: Relative radius of the edges of solids, as in `Articulated`.
        model: A `mujoco.MjModel` of the scene, whose inverse masses scale the contact laws; None in the first pass.
    """

    scene: Scene
    joints: list[WrittenJoint]
    pairs: list[ContactPair]
    bits: dict[Solid, tuple[int, int]]
    geoms: dict[Solid, list[tuple[str, PlacedShape]]]
    files: dict[str, str]
    rounding: float
    model: Any = None

    def weight(self, solid: Solid) -> float:
        """Inverse mass of a body in translation at MuJoCo's reference pose [1/kg]; 0 for an obstacle."""
        name, obstacle = solid
        return 0.0 if obstacle or self.model is None else float(self.model.body(name).invweight0[0])

    def contact_geoms(self, pair: ContactPair) -> list[tuple[str, PlacedShape, float]]:
        """Names and shapes of the geoms of the second solid of a pair, with the distance at which contact begins [m].

        If the pair has a contact point, the shapes are the cores of the solid (see `PlacedShape.core`).
        """
        own = self.geoms[pair.second, pair.obstacle]
        if pair.point is None:
            return [(name, part, 0.0) for name, part in own]
        cores = [(name, part, *part.core(self.rounding)) for name, part in own]
        return [(f"{name}/core" if radius else name, core, radius) for name, _, core, radius in cores]

    def joint_weight(self, name: str) -> float:
        """Inverse inertia of a joint at MuJoCo's reference pose [1/(kg m^2) or 1/kg]."""
        return 1.0 if self.model is None else float(self.model.dof_invweight0[self.model.joint(name).dofadr[0]])


def mjcf(scene: Scene, stem: str, timestep: float, rounding: float | None) -> tuple[Element, dict[str, bytes]]:
    """The element ``<mujoco>`` of a scene, and the contents of its mesh files by name.

    Args:
        scene: A scene of rigid bodies.
        stem: Prefix of the names of mesh files.
        timestep: MuJoCo's time step [s].
        rounding: Relative radius of the edges of solids, as in `Articulated`; contact points are then written as small
            balls. None for contact between solids with sharp edges.

    Raises:
        SceneError: MJCF cannot express a part of the scene, or MuJoCo rejects it.
    """
    mujoco = import_mujoco()

    geoms = _geoms_of(scene)
    meshes = {name: part.mesh for parts in geoms.values() for name, part in parts if part.mesh is not None}
    files = {name: f"{stem}_{_plain(name)}.obj" for name in meshes}
    if len(set(files.values())) < len(files):
        files = {name: f"{stem}_{k}.obj" for k, name in enumerate(files)}
    contents = {files[name]: mesh_text(mesh) for name, mesh in meshes.items()}
    by_solids = rounding is None
    pairs, bits = (solid_pairs(scene), bits_of(scene)) if by_solids else (point_pairs(scene), {})
    robot = _Robot(scene, written_joints(scene), pairs, bits, geoms, files, rounding or 0.0)
    for _ in range(2):  # the second pass uses the inverse masses of the first
        root = _root(robot, timestep)
        robot = dataclasses.replace(robot, model=_compiled(mujoco, root, contents))
    return root, contents


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _compiled(mujoco: Any, root: Element, contents: dict[str, bytes]) -> Any:
    from xml.etree import ElementTree

    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"), contents)
    except ValueError as fault:
        raise SceneError(
            f"the scene cannot be written as MJCF; MuJoCo says: {' '.join(str(fault).split())}; change the body, the "
            f"joint or the mesh that it names"
        ) from fault


def _geoms_of(scene: Scene) -> dict[Solid, list[tuple[str, PlacedShape]]]:
    taken: set[str] = set()
    found: dict[Solid, list[tuple[str, PlacedShape]]] = {}
    for kind, obstacle, solids in (("RigidBody", False, scene.rigid), ("Obstacle", True, scene.obstacles)):
        for solid in solids:
            parts = [] if solid.shape is None else parts_of(solid.shape, f"{kind} {solid.name!r}")
            found[solid.name, obstacle] = [(unique(solid.name, taken), part) for part in parts]
    return found


def _root(robot: _Robot, timestep: float) -> Element:
    scene = robot.scene
    root = Element("mujoco", model=scene.name)
    compiler = {"angle": "radian", "autolimits": "true"}
    if any(body_inertia(b) is None for b in scene.rigid):
        compiler |= dict.fromkeys(("boundmass", "boundinertia"), numbers(LEAST))
    SubElement(root, "compiler", compiler)
    options = {"gravity": numbers(scene.gravity), "timestep": numbers(timestep)}
    if robot.pairs:
        options |= {"cone": "elliptic", "impratio": numbers(IMPRATIO)}
    SubElement(root, "option", options)
    if robot.files:
        assets = SubElement(root, "asset")
        for name, file in robot.files.items():
            SubElement(assets, "mesh", name=name, file=file)
    world = SubElement(root, "worldbody")
    for obstacle in scene.obstacles:
        _add_geoms(world, robot, (obstacle.name, True), (0.6, 0.6, 0.6), obstacle.friction)
        _add_points(world, robot, (obstacle.name, True), None)
    _add_bodies(world, robot)
    _add_contacts(root, robot)
    _add_actuators(root, robot)
    _add_start(root, robot)
    return root


def _add_bodies(world: Element, robot: _Robot) -> None:
    """Add all bodies, with parents before children."""
    at, colors = {None: world}, dict(zip((b.name for b in robot.scene.bodies), robot.scene.colors, strict=True))
    for written in robot.joints:
        body, parent = written.child, written.parent
        free = any(piece.kind == "free" for piece in written.pieces)
        pose = written.free_pose if free else JointFrame.of(body).seen_from(JointFrame.of(parent))
        element = SubElement(at[None if parent is None else parent.name], "body", name=body.name, **_pose(pose))
        at[body.name] = element
        for piece in written.pieces:
            _add_joint(element, robot, written, piece)
        _add_inertia(element, body)
        _add_geoms(element, robot, (body.name, False), colors[body.name], body.friction)
        _add_points(element, robot, (body.name, False), body)


def _pose(frame: JointFrame) -> dict[str, str]:
    pose = {"pos": numbers(frame.position)}
    if not np.array_equal(frame.rotation, np.eye(3)):
        pose["quat"] = numbers(quaternion(frame.rotation))
    return pose


def _add_inertia(element: Element, body: RigidBody) -> None:
    """Add mass, centre of mass and principal moments of inertia.

    MuJoCo accepts this form even if the moments are tiny.
    """
    inertia = body_inertia(body)
    if inertia is None:
        return
    moments, axes = np.diag(inertia.moments), np.eye(3)
    if np.count_nonzero(inertia.moments - np.diag(moments)):
        moments, axes = np.linalg.eigh(inertia.moments)
        axes *= np.linalg.det(axes)
    place = _pose(JointFrame(np.array(inertia.center), axes))
    SubElement(element, "inertial", **place, mass=numbers(inertia.mass), diaginertia=numbers(moments))


def _add_joint(element: Element, robot: _Robot, written: WrittenJoint, piece: FileJoint) -> None:
    joint, i = written.joint, piece.first
    values = {"name": piece.name, "type": piece.kind}
    if piece.kind != "free":
        values["pos"] = numbers(written.anchor)
    if piece.kind in ("slide", "hinge"):
        values["axis"] = numbers(written.turn @ piece.axis)
        if joint.stiffness[i]:
            values["springref"] = numbers(joint.neutral[i])
        values |= _limits(robot, joint, piece)
    for field in ("stiffness", "damping", "armature"):
        if getattr(joint, field)[i]:
            values[field] = numbers(getattr(joint, field)[i])
    SubElement(element, "joint", values)


def _limits(robot: _Robot, joint: Joint, piece: FileJoint) -> dict[str, str]:
    """The range of a slide or hinge, with the stiffness and damping of its limits.

    MuJoCo's force at depth r is (k r + b r') / (weight (1 - d)) for an impedance d of nearly 0; solref is (-k, -b).
    """
    i = piece.first
    if joint.lower is None or not np.isfinite([joint.lower[i], joint.upper[i]]).any():
        return {}
    ends = np.clip([joint.lower[i], joint.upper[i]], -UNBOUNDED, UNBOUNDED)
    scale = robot.joint_weight(piece.name) * (1.0 - IMPEDANCE)
    law = (-float(c[i]) * scale for c in limit_laws(robot.scene, joint))
    return {"range": numbers(ends), "solreflimit": numbers(*law), "solimplimit": numbers(_SOLIMP)}


def _add_geoms(element: Element, robot: _Robot, solid: Solid, color: Sequence[float], friction: float) -> None:
    contype, conaffinity = robot.bits.get(solid, (QUIET, 0))
    mus = [p.friction for p in robot.pairs if solid in ((p.first, False), (p.second, p.obstacle))]
    for name, part in robot.geoms[solid]:
        values = {
            "name": name, "type": part.kind, **_pose(JointFrame(part.position, part.rotation)), "contype": str(contype),
            "conaffinity": str(conaffinity), "friction": numbers(min(mus, default=friction), 0.005, 1e-4),
            "rgba": numbers(color, 1.0),
        }  # fmt: skip
        if part.mesh is not None:
            values["mesh"] = name
        else:
            values["size"] = numbers(part.size or (0.0, 0.0, 1.0))
        SubElement(element, "geom", values)


def _add_points(element: Element, robot: _Robot, solid: Solid, body: RigidBody | None) -> None:
    """Add the contact points of a body as small balls, and the cores of its solid; both touch only by a ``<pair>``.

    Args:
        element: The element of the body, or of the world.
        robot: The content of the file.
        solid: The body or obstacle.
        body: The body; None for an obstacle.
    """
    quiet = {"contype": "0", "conaffinity": "0", "group": "3"}
    used = sorted({p.point for p in robot.pairs if p.first == solid[0] and p.point is not None}) if body else []
    groups = points_of(with_points(body)) if used else []
    balls = [(x, max(r, _POINT)) for g in groups for x, r in zip(g.positions, g.radii, strict=True)]
    for i in used:
        place = {"name": _point(solid[0], i), "pos": numbers(balls[i][0])}
        SubElement(element, "geom", type="sphere", size=numbers(balls[i][1]), **place, **quiet)
    touched = next((p for p in robot.pairs if (p.second, p.obstacle) == solid and p.point is not None), None)
    for name, core, radius in robot.contact_geoms(touched) if touched else []:
        if radius:
            pose = _pose(JointFrame(core.position, core.rotation))
            SubElement(element, "geom", name=name, type=core.kind, size=numbers(core.size), **pose, **quiet)


def _point(body: str, index: int) -> str:
    return f"{body}/point {index}"


def _add_contacts(root: Element, robot: _Robot) -> None:
    """Add the contact laws of the pairs that touch, and exclude the pairs whose bits match but that do not touch."""
    apart = excluded(robot.scene, robot.pairs, robot.bits)
    if not (robot.pairs or apart):
        return
    contact = SubElement(root, "contact")
    for first, second in apart:
        SubElement(contact, "exclude", body1=first, body2=second)
    for pair in robot.pairs:
        ends = (pair.first, False), (pair.second, pair.obstacle)
        weight = sum(map(robot.weight, ends)) or 1.0
        values = {
            "condim": "3" if pair.friction else "1",
            "friction": numbers(pair.friction, pair.friction, 0.005, 1e-4, 1e-4),
            "solref": numbers(pair.solref(weight)), "solimp": numbers(_SOLIMP),
        }  # fmt: skip
        if pair.friction:
            values["solreffriction"] = numbers(pair.solreffriction(weight))
        own = [_point(pair.first, pair.point)] if pair.point is not None else [a for a, _ in robot.geoms[ends[0]]]
        for a, (b, _, radius) in itertools.product(own, robot.contact_geoms(pair)):
            margin = {"margin": numbers(max(radius - _POINT, 0.0))} if radius else {}
            SubElement(contact, "pair", geom1=a, geom2=b, **values, **margin)


def _add_actuators(root: Element, robot: _Robot) -> None:
    scene, written = robot.scene, {w.joint.name: w for w in robot.joints}
    if not scene.actuators:
        return
    actuator = SubElement(root, "actuator")
    for motor in scene.actuators:
        joint = written[motor.joint]
        piece = next(p for p in joint.pieces if p.first <= motor.axis < p.first + p.freedom)
        if isinstance(motor, Torque):
            gear = motor.max_torque * _gear(joint, piece, motor.axis - piece.first)
            SubElement(
                actuator, "motor", name=motor.name, joint=piece.name, gear=numbers(gear), ctrlrange=numbers(-1.0, 1.0)
            )
            continue
        if motor.reach == 0.0:
            raise SceneError(
                f"Servo {motor.name!r}: a position actuator of MJCF needs a range of control, got a reach of 0; give "
                f"it a reach above 0, or give joint {motor.joint!r} a spring (stiffness and neutral)"
            )
        SubElement(
            actuator, "position", name=motor.name, joint=piece.name, kp=numbers(motor.stiffness),
            kv=numbers(motor.damping), ctrlrange=numbers(motor.target - motor.reach, motor.target + motor.reach),
        )  # fmt: skip


def _gear(joint: WrittenJoint, piece: FileJoint, axis: int) -> np.ndarray:
    """The gear of a motor of a joint, as MuJoCo defines it.

    On free bodies, MuJoCo takes forces in axes of the world, and torques in axes of the body.
    """
    if piece.kind == "ball":
        return joint.turn[:, axis]
    if piece.kind == "free":
        force = np.array(joint.joint.rotation)[:, axis] if axis < 3 else np.zeros(3)
        return np.concatenate([force, joint.turn[:, axis - 3] if axis >= 3 else np.zeros(3)])
    return np.ones(1)


def _add_start(root: Element, robot: _Robot) -> None:
    """Add a keyframe with the initial state, and with the MuJoCo controls that correspond to u = 0."""
    pieces = [(w, p) for w in robot.joints for p in w.pieces]
    controls = [m.target if isinstance(m, Servo) else 0.0 for m in robot.scene.actuators]
    values = {
        "qpos": np.concatenate([np.zeros(0), *(w.to_file(p, w.start) for w, p in pieces)]),
        "qvel": np.concatenate([np.zeros(0), *(w.velocity_to_file(p) for w, p in pieces)]),
        "ctrl": np.array(controls),
    }
    said = {name: numbers(value) for name, value in values.items() if len(value)}
    if said:
        SubElement(SubElement(root, "keyframe"), "key", name=START, **said)
