"""Writes a scene as URDF: numbers with all digits, and meshes as separate Wavefront OBJ files."""

import warnings
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from warpbots.robots.kinematic_tree import UNBOUNDED
from warpbots.robots.shape_parts import PlacedShape, mesh_text, parts_of
from warpbots.robots.written_joints import FileJoint, JointFrame, WrittenJoint, numbers, written_joints
from warpbots.scene import JOINTS, RigidBody, Scene, SceneError, Torque
from warpbots.solvers.articulated.inertia import body_inertia

__all__ = ["urdf"]

_KINDS = {"slide": "prismatic", "hinge": "revolute", "free": "floating"}
_WORLD = "world"
_FAST = 1e6
"""Velocity limit of all joints, because URDF requires one [rad/s or m/s]."""
_DOWN = (0.0, 0.0, -9.81)


def urdf(scene: Scene, stem: str) -> tuple[Element, dict[str, bytes], list[str]]:
    """The element ``<robot>`` of a scene, the contents of its mesh files by name, and a line for everything left out.

    Args:
        scene: A scene of rigid bodies.
        stem: Prefix of the names of mesh files.

    Raises:
        SceneError: URDF cannot express a joint, or a body is called ``"world"``.
    """
    joints, meshes = written_joints(scene), {}
    _refuse(scene, joints)
    robot = Element("robot", name=scene.name)
    SubElement(robot, "link", name=_WORLD)
    frames = {None: JointFrame.of(None)} | {w.child.name: _frame(w) for w in joints}
    efforts = {(m.joint, m.axis): m for m in scene.actuators if isinstance(m, Torque)}
    colors = dict(zip((b.name for b in scene.bodies), scene.colors, strict=True))
    for written in joints:
        _add_link(robot, written.child, colors[written.child.name], frames[written.child.name], stem, meshes)
        _add_joints(robot, written, frames, efforts)
    return robot, meshes, _left_out(scene, joints)


def _frame(written: WrittenJoint) -> JointFrame:
    """The frame of a link, which has the axes of the body.

    Its origin is the origin of the joint, or the origin of the body if the joint is fixed.
    """
    place = written.child if written.joint.kind == "fixed" else written.joint
    return JointFrame(np.array(place.position), np.array(written.child.rotation))


def _refuse(scene: Scene, joints: list[WrittenJoint]) -> None:
    remedy = "write MJCF (.xml)"
    for written in joints:
        joint = written.joint
        what = f"Joint {joint.name!r}: URDF has no"
        if any(piece.kind == "ball" for piece in written.pieces):
            raise SceneError(f"{what} {joint.kind} joints like it; {remedy}, or make it revolute joints")
        for field, word in (("stiffness", "springs"), ("armature", "armature")):
            if any(getattr(joint, field)):
                raise SceneError(f"{what} {word}, got {field} {getattr(joint, field)}; {remedy}, or set it to 0")
        if any(piece.kind == "free" for piece in written.pieces) and any(joint.damping):
            raise SceneError(f"{what} damping of floating bodies, got {joint.damping}; {remedy}, or set it to 0")
    if any(body.name == _WORLD for body in scene.rigid):
        raise SceneError(f"RigidBody {_WORLD!r}: in URDF this is the name of the world; rename it")


def _left_out(scene: Scene, joints: list[WrittenJoint]) -> list[str]:
    """A line for everything in a scene that URDF cannot express."""
    lines, pieces = [], {(w.joint.name, p.first): p for w in joints for p in w.pieces if p.kind != "free"}
    for motor in scene.actuators:
        piece = pieces.get((motor.joint, motor.axis))
        if not isinstance(motor, Torque) or piece is None:
            lines.append(f"actuator {motor.name!r}: it is not a Torque on a revolute or prismatic joint")
        elif motor.name != piece.name:
            lines.append(f"actuator {motor.name!r}: its name; it gets the name of joint {piece.name!r}")
    begun = [w.joint.name for w in joints if any(w.velocity) or _moved(w)]
    lines += [f"start of joints: {', '.join(map(repr, begun))}"] if begun else []
    limited = [w.joint.name for w in joints if w.joint.lower is not None]
    lines += [f"stiffness and damping of limits: {', '.join(map(repr, limited))}"] if limited else []
    lines += [f"obstacle {o.name!r}" for o in scene.obstacles] + [f"contact {c.name!r}" for c in scene.laws]
    return lines + ([f"gravity {scene.gravity}"] if scene.gravity != _DOWN else [])


def _moved(written: WrittenJoint) -> bool:
    """Whether a joint does not start at zero."""
    return not np.array_equal(written.start, JOINTS[written.joint.kind].zero)


def _add_link(
    robot: Element, body: RigidBody, color: Sequence[float], frame: JointFrame, stem: str, meshes: dict[str, bytes]
) -> None:
    link = SubElement(robot, "link", name=body.name)
    own = JointFrame.of(body).seen_from(frame)
    inertia = body_inertia(body)
    if inertia is not None:
        inertial, J = SubElement(link, "inertial"), inertia.moments
        _add_origin(inertial, own.then(JointFrame(np.array(inertia.center), np.eye(3))))
        SubElement(inertial, "mass", value=numbers(inertia.mass))
        names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        SubElement(inertial, "inertia", {name: numbers(J[at]) for name, at in names.items()})
    if body.shape is None:
        return
    whole = parts_of(body.shape, f"RigidBody {body.name!r}")
    for part in (flat for one in whole for flat in _flat(one)):
        file = f"{stem}_{len(meshes)}.obj"
        if part.mesh is not None:
            meshes[file] = mesh_text(part.mesh)
        for tag in ("visual", "collision"):
            element = SubElement(link, tag)
            _add_origin(element, own.then(JointFrame(part.position, part.rotation)))
            _add_geometry(SubElement(element, "geometry"), part, file)
            if tag == "visual":
                material = SubElement(element, "material", name=f"{body.name} color")
                SubElement(material, "color", rgba=numbers(color, 1.0))


def _flat(part: PlacedShape) -> list[PlacedShape]:
    """The part as shapes that URDF supports: a capsule becomes a cylinder and two spheres."""
    if part.kind != "capsule":
        return [part]
    radius, half = part.size
    ends = [part.position + side * half * part.rotation[:, 2] for side in (-1.0, 1.0)]
    return [PlacedShape("cylinder", part.size, part.position, part.rotation)] + [
        PlacedShape("sphere", (radius,), end, part.rotation) for end in ends
    ]


def _add_geometry(geometry: Element, part: PlacedShape, file: str) -> None:
    size = part.size
    if part.kind == "mesh":
        SubElement(geometry, "mesh", filename=file)
    elif part.kind == "box":
        SubElement(geometry, "box", size=numbers(2.0 * np.array(size)))
    elif part.kind == "sphere":
        SubElement(geometry, "sphere", radius=numbers(size[0]))
    else:
        SubElement(geometry, "cylinder", radius=numbers(size[0]), length=numbers(2.0 * size[1]))


def _add_origin(element: Element, frame: JointFrame) -> None:
    """Add an ``<origin>``, whose rotation is given by angles about the fixed axes x, y and z."""
    from scipy.spatial.transform import Rotation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # where y turns by a right angle, x and z are not unique
        angles = Rotation.from_matrix(frame.rotation).as_euler("xyz")
    SubElement(element, "origin", xyz=numbers(frame.position), rpy=numbers(angles))


def _add_joints(
    robot: Element, written: WrittenJoint, frames: dict[str | None, JointFrame], efforts: dict[tuple[str, int], Torque]
) -> None:
    """Add the joints of a link; several joints become a chain with massless links between them."""
    joint, child = written.joint, written.child
    parent, origin = joint.parent, frames[child.name].seen_from(frames[joint.parent])
    for piece in written.pieces or (None,):
        last = piece is None or piece is written.pieces[-1]
        link = child.name if last else f"{child.name}/{piece.name}"
        if not last:
            SubElement(robot, "link", name=link)
        name, kind = (joint.name, "fixed") if piece is None else (piece.name, _kind(written, piece))
        element = SubElement(robot, "joint", name=name, type=kind)
        _add_origin(element, origin)
        SubElement(element, "parent", link=parent or _WORLD)
        SubElement(element, "child", link=link)
        if piece is not None and piece.kind != "free":
            _add_motion(element, written, piece, efforts.get((joint.name, piece.first)))
        parent, origin = link, JointFrame.of(None)


def _kind(written: WrittenJoint, piece: FileJoint) -> str:
    bounded = _ends(written, piece) != (-UNBOUNDED, UNBOUNDED)
    return "continuous" if piece.kind == "hinge" and not bounded else _KINDS[piece.kind]


def _ends(written: WrittenJoint, piece: FileJoint) -> tuple[float, float]:
    joint, i = written.joint, piece.first
    if joint.lower is None:
        return -UNBOUNDED, UNBOUNDED
    return max(joint.lower[i], -UNBOUNDED), min(joint.upper[i], UNBOUNDED)


def _add_motion(element: Element, written: WrittenJoint, piece: FileJoint, motor: Torque | None) -> None:
    SubElement(element, "axis", xyz=numbers(written.turn @ piece.axis))
    SubElement(element, "dynamics", damping=numbers(written.joint.damping[piece.first]), friction="0")
    limit = {"effort": numbers(0.0 if motor is None else motor.max_torque), "velocity": numbers(_FAST)}
    if _kind(written, piece) != "continuous":
        lower, upper = _ends(written, piece)
        limit |= {"lower": numbers(lower), "upper": numbers(upper)}
    SubElement(element, "limit", limit)
