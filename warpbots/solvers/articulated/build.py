"""From a scene to the arrays of the articulated solver."""

import dataclasses
import math

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids, grid_of, solids_of
from warpbots.numerics import parallel
from warpbots.scene import Contact, Scene, SceneError, Servo, Shape, Torque, neighbours, parts_of
from warpbots.solvers.articulated.contact_list import CHUNK, ContactList
from warpbots.solvers.articulated.inertia import Moments, body_inertia
from warpbots.solvers.articulated.joint_limits import limit_laws
from warpbots.solvers.articulated.model import NEVER, PARAMETERS, ArticulatedModel
from warpbots.solvers.articulated.point_cloud import contact_cloud
from warpbots.solvers.articulated.robot import Robot, robot_of
from warpbots.solvers.articulated.robot_arrays import Contacts, Tree
from warpbots.solvers.articulated.spatial import mat33, quat, scalar, vec3
from warpbots.solvers.articulated.thin_walls import refuse_thin_walls
from warpbots.solvers.articulated.workspace import Sizes, Workspace
from warpbots.solvers.device_arrays import device_array, shared, tiled
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import refuse_copies

__all__ = ["build"]

_DTYPES = {
    "joint_position": vec3, "joint_rotation": quat, "body_position": vec3, "body_rotation": quat,
    "center_of_mass": vec3, "inertia": mat33, "gravity": vec3, "contact_point": vec3,
}  # fmt: skip


def build(
    scene: Scene,
    worlds: int,
    device: wp.Device,
    samples: int,
    rounding: float,
    room: float = 0.0,
    matter: tuple[Moments, ...] = (),
) -> ArticulatedModel:
    """Arrays of a scene; `samples`, `rounding` and `room` are those of `Articulated`, `matter` that of `limit_laws`.

    Raises:
        SceneError: The scene cannot be simulated as rigid bodies.
    """
    _refuse_others(scene)
    robot = robot_of(scene)
    groups, points, areas = _clouds(scene)
    robot = dataclasses.replace(robot, contact_points=tuple(_points_of(groups, k) for k in range(len(robot.bodies))))
    refuse_copies("Articulated", worlds, 1e3 * len(robot.bodies) + 100.0 * robot.freedom**2 + 100.0 * len(points))
    shapes, pairs = _pairs(scene, robot, groups)
    values = _frames(scene, robot) | _masses(scene) | _joints(scene, robot, matter) | _motors(scene)
    values["gravity"] = np.array(scene.gravity)
    values |= {"contact_point": points, "contact_area": areas, "contact_scale": np.array(1.0)}
    for name in ("stiffness", "damping", "friction", "viscosity"):
        values[f"contact_{name}"] = np.array([getattr(c, name) for c in scene.contacts])
    values["contact_restitution"] = np.array([c.restitution or 0.0 for c in scene.contacts])

    def parameter(name: str) -> wp.array:
        return tiled(values[name], worlds, device, _DTYPES.get(name, scalar))

    contact_topology, contact_list = _contacts(groups, pairs, len(points), scene.contacts, worlds, device)
    sizes = Sizes(
        worlds, len(robot.elements), len(robot.bodies), robot.freedom, len(groups), len(pairs), len(scene.actuators)
    )
    solids = _solids(shapes, samples, rounding, room, device)
    arrays = {name: parameter(name) for name in PARAMETERS if name != "solid_distance"}
    return ArticulatedModel(
        scene=scene, worlds=worlds, device=device, robot=robot, tree=_tree(scene, robot, device),
        contact_topology=contact_topology, solids=solids, workspace=Workspace(sizes, contact_list, device),
        solid_distance=shared(solids.sample, worlds), **arrays,
    )  # fmt: skip


def _refuse_others(scene: Scene) -> None:
    faults = [f"SoftBody {b.name!r}: rigid bodies alone are articulated" for b in scene.soft]
    faults += [
        f"{type(a).__name__} {a.name!r}: joints are driven by Torque and Servo"
        for a in scene.actuators
        if not isinstance(a, Torque | Servo)
    ]
    if scene.fluid is not None:
        faults.append("Scene.fluid: it acts on soft bodies")
    for part in (*scene.constraints, *scene.loads, *scene.attachments):
        faults.append(f"{type(part).__name__} {part.name!r}: it belongs to soft bodies; use joints and motors")
    if faults:
        advice = remedy(scene, "Articulated")
        raise SceneError("Articulated cannot simulate this scene:\n" + "\n".join([*faults, advice]))


def _frames(scene: Scene, robot: Robot) -> dict[str, np.ndarray]:
    """Frames of joints in those of their parents' joints, and of bodies in those of their joints, all at zero."""
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


def _joints(scene: Scene, robot: Robot, matter: tuple[Moments, ...]) -> dict[str, np.ndarray]:
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
            values["joint_lower"][at] = np.maximum(joint.lower, -NEVER)
            values["joint_upper"][at] = np.minimum(joint.upper, NEVER)
            values["limit_stiffness"][at], values["limit_damping"][at] = limit_laws(scene, joint, matter)
    return values


def _motors(scene: Scene) -> dict[str, np.ndarray]:
    def of(field: str) -> np.ndarray:
        return np.array([getattr(a, field, 0.0) for a in scene.actuators])

    named = {"torque": "max_torque", "stiffness": "stiffness", "damping": "damping", "target": "target"}
    return {f"motor_{name}": of(field) for name, field in (named | {"reach": "reach"}).items()}


@dataclasses.dataclass(frozen=True)
class _Group:
    """Contact points `first` to `first + count` of a body."""

    body: int
    first: int
    count: int


def _clouds(scene: Scene) -> tuple[list[_Group], np.ndarray, np.ndarray]:
    """Groups of contact points, their positions in the frames of the bodies and their areas."""
    groups, positions, areas, first = [], [np.zeros((0, 3))], [np.zeros(0)], 0
    for k, body in enumerate(scene.rigid):
        cloud = contact_cloud(body)
        if cloud is not None:
            groups.append(_Group(k, first, len(cloud.positions)))
            first += len(cloud.positions)
            positions.append(cloud.positions)
            areas.append(cloud.areas)
    return groups, np.concatenate(positions), np.concatenate(areas)


_Solid = tuple[int, Shape, str]
"""Body, or -1 for the world, shape in its frame, and name."""

_Pair = tuple[int, int, int]
"""Group, solid and law."""


def _pairs(scene: Scene, robot: Robot, groups: list[_Group]) -> tuple[list[_Solid], list[_Pair]]:
    """Solids that may be in contact, and the pairs of a group of points and a solid under a law.

    Raises:
        SceneError: A contact has no pair, because all bodies that it names are one or joint neighbours.
    """
    solids: list[_Solid] = []
    numbers: dict[tuple[int, int], list[int]] = {}

    def solids_at(body: int, index: int, shape: Shape, name: str) -> list[int]:
        if (body, index) not in numbers:
            parts = parts_of(shape)
            numbers[body, index] = list(range(len(solids), len(solids) + len(parts)))
            solids.extend((body, part, name) for part in parts)
        return numbers[body, index]

    pairs: list[_Pair] = []
    joined = neighbours(scene.rigid, scene.joints)
    for law, contact in enumerate(scene.contacts):
        before = len(pairs)
        for g, group in enumerate(groups):
            if contact.points not in _names(scene, group.body):
                continue
            for k, body in enumerate(scene.rigid):
                if (
                    body.shape is not None
                    and contact.solid in _names(scene, k)
                    and _apart(contact, joined, robot.bodies[group.body], body.name)
                ):
                    pairs += [(g, s, law) for s in solids_at(k, 0, body.shape, body.name)]
            for i, obstacle in enumerate(scene.obstacles):
                if obstacle.name == contact.solid:
                    pairs += [(g, s, law) for s in solids_at(-1, i, obstacle.shape, obstacle.name)]
        if len(pairs) == before:
            raise SceneError(
                f"Contact {contact.name!r}: all bodies that it names are one body or joint neighbours, which are "
                f"never in contact; name others"
            )
    return solids, pairs


def _solids(shapes: list[_Solid], samples: int, rounding: float, room: float, device: wp.Device) -> Solids:
    """Solids on the device.

    Raises:
        SceneError: A solid is so thin that most of it is lost between samples.
    """
    solids = solids_of([(body, shape) for body, shape, _ in shapes], samples, rounding, device, room)
    coefficients = solids.sample.numpy()[0]
    for s, (_, shape, name) in enumerate(shapes):
        if (grid := grid_of(solids, s)) is not None:
            refuse_thin_walls(grid, coefficients[grid.first : grid.first + grid.size], shape, name, 3)
    return solids


def _names(scene: Scene, body: int) -> tuple[str, str | None]:
    return scene.rigid[body].name, scene.rigid[body].surface


def _apart(contact: Contact, joined: set[frozenset[str]], a: str, b: str) -> bool:
    """Whether points of body `a` may be in contact with body `b`; joint neighbours may where both are named."""
    return a != b and ({contact.points, contact.solid} == {a, b} or frozenset((a, b)) not in joined)


def _points_of(groups: list[_Group], body: int) -> np.ndarray:
    """Indices of the contact points of a body."""
    ranges = [np.arange(g.first, g.first + g.count) for g in groups if g.body == body]
    return np.concatenate([np.zeros(0, dtype=int), *ranges])


def _contacts(
    groups: list[_Group], pairs: list[_Pair], points: int, laws: tuple[Contact, ...], worlds: int, device: wp.Device
) -> tuple[Contacts, ContactList]:
    def array(values: list) -> wp.array:
        return device_array(values, device, int)

    topology = Contacts()
    topology.points, topology.groups, topology.pairs, topology.laws = (
        points,
        len(groups),
        len(pairs),
        len(laws),
    )
    for field in ("body", "first", "count"):
        setattr(topology, f"group_{field}", array([getattr(g, field) for g in groups]))
    for i, name in enumerate(("group", "solid", "law")):
        setattr(topology, f"pair_{name}", array([p[i] for p in pairs]))
    topology.bounded = array([law.restitution is not None for law in laws])
    contact_list = ContactList()
    candidates = [(p, groups[g].first + i) for p, (g, _, _) in enumerate(pairs) for i in range(groups[g].count)]
    contact_list.pair, contact_list.point = array([p for p, _ in candidates]), array([i for _, i in candidates])
    contact_list.count = wp.zeros(worlds, dtype=int, device=device)
    contact_list.candidate = wp.zeros(worlds * len(candidates), dtype=int, device=device)
    listed = worlds * len(candidates) if parallel(device) else 0
    contact_list.deep = wp.zeros(listed, dtype=int, device=device)
    contact_list.counted = wp.zeros(worlds * math.ceil(listed / worlds / CHUNK), dtype=int, device=device)
    return topology, contact_list


def _tree(scene: Scene, robot: Robot, device: wp.Device) -> Tree:
    elements = robot.elements

    def array(values: object) -> wp.array:
        return device_array(values, device, int)

    tree = Tree()
    tree.elements, tree.bodies = len(elements), len(robot.bodies)
    tree.freedom, tree.coordinates, tree.channels = robot.freedom, len(robot.start), len(scene.actuators)
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
    # one thread comes to parents before their children in any case
    ends = np.cumsum([len(level) for level in levels]) if parallel(device) else [len(order)]
    tree.levels, tree.order, tree.level = len(ends), array(order), array([0, *ends])
    tree.child = array(len(levels[0]) + np.cumsum([0, *children]))
    driven = np.array([robot.velocities[a.joint].start + a.axis for a in scene.actuators], dtype=np.int32)
    tree.motor_dof, tree.motor = array(driven), array(np.argsort(driven, kind="stable"))
    tree.drive = array(np.searchsorted(np.sort(driven), np.arange(robot.freedom + 1)))
    tree.motor_coordinate = array([_motor_coordinate(robot, a) for a in scene.actuators])
    return tree


def _motor_coordinate(robot: Robot, motor: Torque | Servo) -> int:
    """Coordinate of the velocity that a motor drives, -1 for the rotations of a ball."""
    joint = next(j for j in robot.joints if j.name == motor.joint)
    return -1 if motor.axis >= joint.straight else robot.coordinates[motor.joint].start + motor.axis
