"""Conversion of a scene into the arrays of the articulated solver."""

import dataclasses
import math

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import grid_of, solids_of
from warpbots.numerics import parallel
from warpbots.scene import Scene, SceneError, Servo, Torque, VelocityDrive
from warpbots.scene.with_z import with_z
from warpbots.solvers.articulated.contact_list import CHUNK, ContactList
from warpbots.solvers.articulated.contact_topology import Touching, contact_arrays, touching
from warpbots.solvers.articulated.inertia import Moments, body_inertia
from warpbots.solvers.articulated.joint_limits import limit_laws
from warpbots.solvers.articulated.model import NEVER, ArticulatedModel
from warpbots.solvers.articulated.robot import ArticulatedRobot, robot_of
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.sparse_points import warn_of_sparse_boxes
from warpbots.solvers.articulated.spatial import mat33, quat, scalar, vec3
from warpbots.solvers.articulated.thin_walls import refuse_thin_walls
from warpbots.solvers.articulated.workspace import ArticulatedSizes, ArticulatedWorkspace
from warpbots.solvers.device_arrays import device_array, shared, tiled_parameters
from warpbots.solvers.motion_parameters import motion_parameters
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import refuse_copies

__all__ = ["build"]

_ENTRIES = {"scalar": scalar, "vector": vec3, "inertia": mat33, "quaternion": quat}
"""Warp types by `Parameter.entry`."""


def build(
    scene: Scene,
    worlds: int,
    device: wp.Device,
    samples: int,
    rounding: float,
    room: float = 0.0,
    matter: dict[str, Moments] | None = None,
) -> ArticulatedModel:
    """Build the model of a scene.

    `samples`, `rounding` and `room` are the options of `Articulated`. `matter` maps the name of a joint to the soft
    matter that the joint carries (`limit_laws`).

    Raises:
        SceneError: The scene cannot be simulated as rigid bodies.
    """
    _refuse_others(scene)
    robot = robot_of(scene)
    frames = MovingFrames(scene, worlds, device)
    found = touching(scene, frames.of_obstacle)
    warn_of_sparse_boxes(scene, found)
    points, radii = found.of("positions"), found.of("radii")
    robot = dataclasses.replace(robot, contact_points=tuple(_points_of(found, k) for k in range(len(robot.bodies))))
    refuse_copies("Articulated", worlds, 1e3 * len(robot.bodies) + 100.0 * robot.freedom**2 + 100.0 * len(points))
    values = _frames(scene, robot) | _masses(scene) | _joints(scene, robot, matter) | _motors(robot)
    values["gravity"] = with_z(scene.gravity)
    values["body_force"] = values["body_torque"] = np.zeros((len(scene.rigid), 3))
    values |= {"contact_point": points, "contact_radius": radii, "contact_area": found.of("areas")}
    values["contact_scale"] = np.array(1.0)
    for name in ("stiffness", "damping", "friction", "viscosity"):
        values[f"contact_{name}"] = np.array([getattr(c, name) for c in scene.laws])
    values["contact_restitution"] = np.array([c.restitution or 0.0 for c in scene.laws])

    sizes = ArticulatedSizes(
        worlds, len(robot.elements), len(robot.bodies), robot.freedom, len(found.groups), len(found.pairs),
        len(robot.motors), len(robot.start), any(c.impact == "instant" for c in scene.laws),
    )  # fmt: skip
    solids = _solids(found, samples, rounding, room, device)
    contact_list = _contact_list(found, worlds, device)
    arrays = tiled_parameters(ArticulatedModel, values, worlds, device, _ENTRIES)
    arrays |= motion_parameters(scene, worlds, device)
    return ArticulatedModel(
        scene=scene, worlds=worlds, device=device, robot=robot, tree=_tree(robot, device),
        rounded=bool(radii.any()), contact_topology=contact_arrays(found, scene.laws, device), solids=solids,
        frames=frames, workspace=ArticulatedWorkspace(sizes, contact_list, frames, device),
        solid_distance=shared(solids.sample, worlds), **arrays,
    )  # fmt: skip


def _refuse_others(scene: Scene) -> None:
    faults = [f"SoftBody {b.name!r}: rigid bodies alone are articulated" for b in scene.soft]
    faults += [
        f"{type(a).__name__} {a.name!r}: joints are driven by Torque and Servo, obstacles by VelocityDrive"
        for a in scene.actuators
        if not isinstance(a, Torque | Servo | VelocityDrive)
    ]
    if scene.fluid is not None:
        faults.append("Scene.fluid: it acts on soft bodies")
    for part in (*scene.constraints, *scene.loads, *scene.attachments):
        faults.append(f"{type(part).__name__} {part.name!r}: it belongs to soft bodies; use joints and motors")
    if faults:
        advice = remedy(scene, "Articulated")
        raise SceneError("Articulated cannot simulate this scene:\n" + "\n".join([*faults, advice]))


def _frames(scene: Scene, robot: ArticulatedRobot) -> dict[str, np.ndarray]:
    """Frames of joints relative to their parent joints and of bodies relative to their joints, at zero coordinates."""
    joint_p = np.array([j.position for j in robot.joints])
    joint_R = np.array([j.rotation for j in robot.joints])
    body_p = np.array([b.position for b in scene.rigid])
    body_R = np.array([b.rotation for b in scene.rigid])
    base = np.array(robot.parents)
    up_p = np.where((base >= 0)[:, None], joint_p[base], 0.0)
    up_R = np.where((base >= 0)[:, None, None], joint_R[base], np.eye(3))
    return {
        "joint_position": np.einsum("kji,kj->ki", up_R, joint_p - up_p),
        "joint_rotation": _quaternions(np.einsum("kji,kjl->kil", up_R, joint_R)),
        "body_position": np.einsum("kji,kj->ki", joint_R, body_p - joint_p),
        "body_rotation": _quaternions(np.einsum("kji,kjl->kil", joint_R, body_R)),
    }


def _quaternions(rotations: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(rotations).as_quat(canonical=True)


def _masses(scene: Scene) -> dict[str, np.ndarray]:
    found = [body_inertia(b) for b in scene.rigid]
    return {
        "mass": np.array([i.mass if i else 0.0 for i in found]),
        "center_of_mass": np.array([i.center if i else np.zeros(3) for i in found]),
        "inertia": np.array([i.moments if i else np.zeros((3, 3)) for i in found]),
    }


def _joints(scene: Scene, robot: ArticulatedRobot, matter: dict[str, Moments] | None) -> dict[str, np.ndarray]:
    values = {
        "joint_stiffness": np.zeros(robot.freedom), "joint_neutral": np.zeros(robot.freedom),
        "joint_damping": np.zeros(robot.freedom), "armature": np.zeros(robot.freedom),
        "joint_lower": np.full(robot.freedom, -NEVER), "joint_upper": np.full(robot.freedom, NEVER),
        "limit_stiffness": np.zeros(robot.freedom), "limit_damping": np.zeros(robot.freedom),
    }  # fmt: skip
    for joint in robot.joints:
        at = robot.velocities[joint.name]
        for field in ("stiffness", "neutral", "damping"):
            values[f"joint_{field}"][at] = getattr(joint, field)
        values["armature"][at] = joint.armature
        if joint.lower is not None:
            carried = (matter[joint.name],) if matter else ()
            values["joint_lower"][at] = np.maximum(joint.lower, -NEVER)
            values["joint_upper"][at] = np.minimum(joint.upper, NEVER)
            values["limit_stiffness"][at], values["limit_damping"][at] = limit_laws(scene, joint, carried)
    return values


def _motors(robot: ArticulatedRobot) -> dict[str, np.ndarray]:
    def of(field: str) -> np.ndarray:
        return np.array([getattr(motor, field, 0.0) for motor in robot.motors.values()])

    named = {"torque": "max_torque", "stiffness": "stiffness", "damping": "damping", "target": "target"}
    return {f"motor_{name}": of(field) for name, field in (named | {"reach": "reach"}).items()}


def _solids(found: Touching, samples: int, rounding: float, room: float, device: wp.Device) -> Solids:
    """Build the solids with which contact points may be in contact, on the device.

    Raises:
        SceneError: A solid is so thin that most of it is lost between samples.
    """
    solids = solids_of([(body, shape) for body, shape, _ in found.solids], samples, rounding, device, room)
    radii = solids.rounding.numpy()
    radii[list(found.sharp)] = 0.0
    solids.rounding.assign(radii)
    coefficients = solids.sample.numpy()[0]
    for s, (_, shape, name) in enumerate(found.solids):
        if (grid := grid_of(solids, s)) is not None:
            refuse_thin_walls(grid, coefficients[grid.first : grid.first + grid.size], shape, name)
    return solids


def _points_of(found: Touching, body: int) -> np.ndarray:
    """Indices of the contact points of a body."""
    ranges = [np.arange(g.first, g.first + len(g.points.areas)) for g in found.groups if g.body == body]
    return np.concatenate([np.zeros(0, dtype=int), *ranges])


def _contact_list(found: Touching, worlds: int, device: wp.Device) -> ContactList:
    """Build the arrays that list the contacts of each world, and fill in the pair and the point of each candidate."""
    contact_list = ContactList()
    candidates = [(n, found.groups[p.group].first + i) for n, p in enumerate(found.pairs) for i in range(p.count)]
    contact_list.pair = device_array([p for p, _ in candidates], device, int)
    contact_list.point = device_array([i for _, i in candidates], device, int)
    contact_list.count = wp.zeros(worlds, dtype=int, device=device)
    contact_list.candidate = wp.zeros(worlds * len(candidates), dtype=int, device=device)
    contact_list.free = wp.zeros(worlds * len(candidates), dtype=int, device=device)
    threads = worlds * len(candidates) if parallel(device) else 0
    contact_list.deep = wp.zeros(threads, dtype=int, device=device)
    contact_list.counted = wp.zeros(worlds * math.ceil(threads / worlds / CHUNK), dtype=int, device=device)
    return contact_list


def _tree(robot: ArticulatedRobot, device: wp.Device) -> JointTree:
    elements = robot.elements

    def array(values: object) -> wp.array:
        return device_array(values, device, int)

    tree = JointTree()
    tree.elements, tree.bodies = len(elements), len(robot.bodies)
    tree.freedom, tree.coordinates, tree.motors = robot.freedom, len(robot.start), len(robot.motors)
    for field in ("parent", "kind", "dof", "coordinate", "body", "first", "last"):
        setattr(tree, field, array([int(getattr(e, field)) for e in elements]))
    tree.axis = device_array([e.axis for e in elements], device, vec3)
    order = {e.body: n for n, e in enumerate(elements) if e.last}
    tree.element = array([order[k] for k in range(len(robot.bodies))])
    carries = np.eye(len(elements), dtype=np.int32)
    for n, element in enumerate(elements):
        if element.parent >= 0:
            carries[:, n] |= carries[:, element.parent]
    tree.carries = array(carries.reshape(-1))
    ends = [e.dof for e in elements[1:]] + [robot.freedom]
    tree.of_dof = array([n for n, (e, end) in enumerate(zip(elements, ends, strict=True)) for _ in range(end - e.dof)])
    levels = robot.levels
    order = np.concatenate(levels)
    children = [sum(e.parent == n for e in elements) for n in order]
    # a single thread visits parents before their children anyway
    ends = np.cumsum([len(level) for level in levels]) if parallel(device) else [len(order)]
    tree.levels, tree.order, tree.level = len(ends), array(order), array([0, *ends])
    tree.child = array(len(levels[0]) + np.cumsum([0, *children]))
    motors = robot.motors.values()
    driven = np.array([robot.velocities[a.joint].start + a.axis for a in motors], dtype=np.int32)
    tree.motor_dof, tree.motor = array(driven), array(np.argsort(driven, kind="stable"))
    tree.motor_channel = array(list(robot.motors))
    tree.drive = array(np.searchsorted(np.sort(driven), np.arange(robot.freedom + 1)))
    tree.motor_coordinate = array([_motor_coordinate(robot, a) for a in motors])
    return tree


def _motor_coordinate(robot: ArticulatedRobot, motor: Torque | Servo) -> int:
    """Index of the joint coordinate that a motor drives, or -1 if the motor drives a rotation of a ball joint."""
    joint = next(j for j in robot.joints if j.name == motor.joint)
    return -1 if motor.axis >= joint.straight else robot.coordinates[motor.joint].start + motor.axis
