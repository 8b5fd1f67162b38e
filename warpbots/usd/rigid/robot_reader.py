"""Rigid bodies: prims with `PhysicsRigidBodyAPI`, the joints between them, their drives, and what they touch.

The pose of a body is that of its prim; scale and mirrors go into its solids. Geometry that does not collide has no part
in physics.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pxr import Sdf, Usd

from warpbots.contact.distance import signed_distance
from warpbots.scene import (
    Cloud,
    Contact,
    Inertia,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    SceneError,
    Servo,
    Shape,
    Torque,
    Union,
)
from warpbots.usd.geometry.physics_materials import bound_material, read_friction, read_restitution
from warpbots.usd.rigid.body_tree import Branch, branches
from warpbots.usd.rigid.colliders import Note, belonging, colliders, is_rigid, read_collider
from warpbots.usd.rigid.contact_groups import Toucher, grouped, touching
from warpbots.usd.rigid.exact_values import exact_pose, load, near
from warpbots.usd.rigid.joint_chains import Step, hang
from warpbots.usd.rigid.joint_drives import claim, read_drives
from warpbots.usd.rigid.joint_prims import read_joint_prim
from warpbots.usd.rigid.mass_properties import read_weight, says_mass
from warpbots.usd.rigid.poses import pose_of
from warpbots.usd.stage.inventory import Survey
from warpbots.usd.stage.schema import RIGID_API, rows
from warpbots.usd.stage.stage_files import attempt
from warpbots.usd.stage.target import read_name
from warpbots.usd.stage.units import START, Frame
from warpbots.usd.stage.values import authored, get, schemas

__all__ = ["Robots", "points_of", "read_robots"]


class Robots(NamedTuple):
    """All that is rigid and moves.

    Attributes:
        bodies: For each rigid body of the file its bodies in the scene: those without mass before it, and itself.
        joints: The joints.
        motors: Motors that the file has as drives alone.
        actuators: Actuators with what drives say of them now.
        contacts: Laws of contact that the file does not have itself.
    """

    bodies: dict[str, tuple[RigidBody, ...]]
    joints: tuple[Joint, ...]
    motors: tuple[Torque | Servo, ...]
    actuators: tuple
    contacts: tuple[Contact, ...]


class _Body(NamedTuple):
    prim: Usd.Prim
    name: str
    now: np.ndarray
    parts: list[tuple[Usd.Prim, Shape]]
    body: RigidBody


def read_robots(
    found: Survey, frame: Frame, actuators: list, obstacles: list[Obstacle], contact_points: int,
    ignore_loops: bool = True,
) -> Robots:  # fmt: skip
    """The rigid bodies of a stage and what belongs to them.

    Args:
        found: The prims of the stage; what is left out of them is added to it.
        frame: Units and axes of the stage.
        actuators: Actuators that have their own prims.
        obstacles: The obstacles.
        contact_points: Number of points with which a body touches that does not say it itself; 0 for no contact.
        ignore_loops: Whether joints that close loops are left out.

    Raises:
        SceneError: One line for each fault; the messages name the prims.
    """

    def note(prim: Usd.Prim | None, reason: str) -> None:
        found.left_out.append((str(prim.GetPath()) if prim else "the whole file", reason))

    faults: list[str] = []
    tried = functools.partial(attempt, faults)
    rigid = {n: prim for n, prim in found.bodies.items() if is_rigid(prim)}
    bodies = {prim.GetPath(): tried(_read, prim, n, frame, note) for n, prim in rigid.items()}
    prims = [tried(read_joint_prim, prim, n, frame, note) for n, prim in found.joints.items()]
    joints = [joint for joint in prims if joint is not None]
    roots, cut = list(found.roots.values()), note if ignore_loops else None
    grown = tried(branches, list(rigid.values()), joints, roots, cut) if not faults else None
    if faults:
        raise SceneError("\n  ".join(faults))
    order = {joint.prim.GetPath(): k for k, joint in enumerate(joints)}
    steps, posed = _place(bodies, grown, frame, note, tried)
    if faults:
        raise SceneError("\n  ".join(faults))
    steps.sort(key=lambda step: order[step.prim.GetPath()])
    scene_joints = [step.joint for step in steps]
    scene_joints += _floating(bodies, posed, scene_joints, frame, note)
    posed = _weigh(bodies, posed, scene_joints, note)
    claimed, motors = claim(actuators, steps), []
    for step in steps:
        motors += read_drives(step, claimed.taken, note)
    posed, contacts = _touch(bodies, posed, scene_joints, grown, found, obstacles, contact_points, frame, note)
    return Robots(posed, tuple(scene_joints), tuple(motors), tuple(claimed.actuators), contacts)


def points_of(scene: Scene) -> int:
    """Number of points with which the bodies of `scene` touch that do not say it themselves."""
    return max((b.points for b in scene.rigid if isinstance(b.points, int)), default=0)


def _read(prim: Usd.Prim, name: str, frame: Frame, note: Note) -> _Body:
    """The body at `prim`, where the file has it now."""
    now, base = pose_of(frame.matrix(prim))
    parts = [(p, read_collider(prim, base, p, frame, note)) for p in colliders(prim)]
    parts = [(p, shape) for p, shape in parts if shape is not None]
    shapes = [shape for _, shape in parts]
    weight = read_weight(prim, base, parts, frame, note)
    for below in belonging(prim):
        if below != prim and not any(below == p for p, _ in parts) and says_mass(below, frame):
            note(below, "a mass or density of what is neither body nor collider")
    own = RIGID_API in schemas(prim)
    try:
        body = RigidBody(
            name=name, shape=None if not shapes else shapes[0] if len(shapes) == 1 else Union(tuple(shapes)),
            density=weight.density, inertia=_exact_inertia(prim, weight.inertia),
            points=_cloud(prim) if own else 0,
            surface=get(prim, "RigidBody.surface", frame) if own else None, color=_color(prim, parts, frame),
            friction=get(prim, "RigidBody.friction", frame),
        )  # fmt: skip
    except SceneError as error:
        raise SceneError(f"{prim.GetPath()}: {error}") from None
    return _Body(prim, name, now, parts, body)


def _exact_inertia(prim: Usd.Prim, plain: Inertia | None) -> Inertia | None:
    center, moments = load(prim, "center"), load(prim, "moments")
    if plain is None or center is None or moments is None or moments.size != 9:
        return plain
    moments = moments.reshape(3, 3)
    size = max(1e-300, float(np.abs(moments).max()))
    if not near(center, plain.center) or not near(moments / size, plain.moments / size):
        return plain
    return Inertia(plain.mass, tuple(center.tolist()), moments)


def _cloud(prim: Usd.Prim) -> int | Cloud:
    positions, areas = load(prim, "cloud:positions"), load(prim, "cloud:areas")
    if positions is not None and areas is not None:
        return Cloud(positions.reshape(-1, 3), areas)
    name = rows("RigidBody.points")[0].name
    return int(prim.GetAttribute(name).Get()) if authored(prim, name) else 0


def _color(prim: Usd.Prim, parts: list[tuple[Usd.Prim, Shape]], frame: Frame) -> tuple[float, float, float]:
    row = rows("RigidBody.color")[0]
    for place in (prim, *(p for p, _ in parts[:1])):
        if authored(place, row.name) and len(place.GetAttribute(row.name).Get(START)) == 1:
            return get(place, "RigidBody.color", frame)
    return row.default


def _place(
    bodies: dict[Sdf.Path, _Body], grown: list[Branch], frame: Frame, note: Note, attempt: Callable
) -> tuple[list[Step], dict[str, tuple[RigidBody, ...]]]:
    """Joints, and all bodies where they are when these are at zero."""
    zero = {path: exact_pose(b.prim, b.now) for path, b in bodies.items()}
    between: dict[Sdf.Path, list[RigidBody]] = {}
    steps: list[Step] = []
    for branch in grown:
        up, child = branch.parent, bodies[branch.child]
        names = (bodies[up].name if up else None, child.name)
        now = (bodies[up].now if up else np.eye(4), child.now)
        hung = attempt(hang, branch, names, zero[up] if up else np.eye(4), now, child.prim, frame, note)
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
    bodies: dict[Sdf.Path, _Body],
    posed: dict[str, tuple[RigidBody, ...]],
    joints: list[Joint],
    frame: Frame,
    note: Note,
) -> list[Joint]:
    """Joints of floating bodies that need one: they start with a velocity, or share their name with a joint."""
    hanging, names = {j.child: j for j in joints}, {j.name for j in joints}
    found = []
    for b in bodies.values():
        body, v, w = posed[b.name][-1], *_velocity(b.prim, frame)
        moves = v.any() or w.any()
        if b.name in hanging:
            if moves and hanging[b.name].start_velocity is None:
                note(b.prim, "a velocity of a body that hangs on a joint; its joint says how fast it starts")
            continue
        if not moves and b.name not in names:
            continue
        R = np.array(body.rotation)
        center = np.array(body.inertia.center) if body.inertia else _middle(body)
        rate = (*(R.T @ v - np.cross(R.T @ w, center)), *(R.T @ w))  # a velocity is that of the centre of mass
        found.append(
            Joint(f"{b.name}/free", "free", None, b.name, body.position, body.rotation,
                  start_velocity=tuple(map(float, rate)) if moves else None)
        )  # fmt: skip
    return found


def _middle(body: RigidBody) -> np.ndarray:
    from warpbots.solvers.articulated.inertia import solid_moments

    return np.zeros(3) if body.shape is None else solid_moments(body.shape)[1]


def _velocity(prim: Usd.Prim, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Velocity [m/s] and angular velocity [rad/s] of a body in scene axes; a file has them in those of its parent."""
    found = []
    R = pose_of(frame.matrix(prim.GetParent()))[0][:3, :3]
    for what, unit in (("velocity of a body", frame.meters), ("angular velocity of a body", np.pi / 180.0)):
        name = rows(what)[0].name
        value = np.zeros(3)
        if authored(prim, name):
            value = np.asarray(prim.GetAttribute(name).Get(START)).astype(str).astype(np.float64)
        found.append(R @ value * unit)
    return found[0], found[1]


def _weigh(
    bodies: dict[Sdf.Path, _Body], posed: dict[str, tuple[RigidBody, ...]], joints: list[Joint], note: Note
) -> dict[str, tuple[RigidBody, ...]]:
    """Bodies that weigh nothing and carry none, as UsdPhysics has them: 1 kg, and a ball of 10 cm."""
    carriers = {j.parent for j in joints}
    for b in bodies.values():
        body = posed[b.name][-1]
        if body.shape is None and body.inertia is None and b.name not in carriers and RIGID_API not in schemas(b.prim):
            note(b.prim, "neither mass nor collider; it is taken as a ball of 1 kg and 0.1 m, as UsdPhysics has it")
            body = dataclasses.replace(body, inertia=Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.004, 0.004)))
            posed[b.name] = (*posed[b.name][:-1], body)
    return posed


def _touch(
    bodies: dict[Sdf.Path, _Body], posed: dict[str, tuple[RigidBody, ...]], joints: list[Joint], grown: list[Branch],
    found: Survey, obstacles: list[Obstacle], points: int, frame: Frame, note: Note,
) -> tuple[dict[str, tuple[RigidBody, ...]], tuple[Contact, ...]]:  # fmt: skip
    """Bodies with points and surfaces, and the laws of contact, of what does not say them itself."""
    others = [b for b in bodies.values() if RIGID_API not in schemas(b.prim) and b.parts]
    if not others or not points or found.contacts:
        return posed, ()
    robot = {branch.child: branch.robot for branch in grown}
    carrier = {j.child: j.parent for j in joints}
    taken = {*posed, *(o.name for o in obstacles)}
    surfaces = _surfaces(others, robot, taken)
    touchers = [
        Toucher(
            b.name, b.prim.GetPath(), surfaces[b.name], read_friction(b.parts[0][0], frame)[0],
            robot.get(b.prim.GetPath(), b.prim.GetPath()), carrier.get(b.name), len(b.parts),
        )
        for b in others
    ]  # fmt: skip
    neighbours = {
        frozenset((branch.parent, branch.child)): any(j.touching for j in branch.joints)
        for branch in grown if branch.parent is not None
    }  # fmt: skip
    solid = {o.name: (found.obstacles[o.name], o) for o in obstacles}
    prims = {b.name: b.parts[0][0] for b in others} | {name: prim for name, (prim, _) in solid.items()}
    bounces = _bounces(prims, frame, note)
    filters, roots = list(found.filters.values()), list(found.roots.values())
    parts = {b.name: [p for p, _ in b.parts] for b in others} | {n: [prim] for n, (prim, _) in solid.items()}
    apart = grouped(parts, list(found.groups.values()), note)
    laws = touching(touchers, solid, bounces, neighbours, filters, roots, points, note, apart)
    _note_sunk(others, obstacles, note)
    for b in others:
        count = points if b.name in laws.points else 0
        last = dataclasses.replace(posed[b.name][-1], points=count, surface=laws.surfaces[b.name])
        posed[b.name] = (*posed[b.name][:-1], last)
    return posed, laws.contacts


def _bounces(prims: dict[str, Usd.Prim], frame: Frame, note: Note) -> dict[str, float]:
    """Coefficients of restitution of what colliders are made of, by name, where there is one."""
    found, wrong = {}, {}
    for name, prim in prims.items():
        e = read_restitution(prim, frame)
        if e is not None and 0.0 <= e <= 1.0:
            found[name] = e
        elif e is not None:
            material = bound_material(prim)
            wrong[material.GetPath()] = material, e
    for material, e in wrong.values():
        note(material, f"physics:restitution = {e:g} is not in [0, 1]; contacts are damped instead")
    return found


def _note_sunk(others: list[_Body], obstacles: list[Obstacle], note: Note) -> None:
    """Name the bodies whose middle starts in an obstacle, such as under a floor or behind a wall."""
    middles = np.array([b.now[:3, :3] @ (np.sum(b.body.shape.bounds, axis=0) / 2.0) + b.now[:3, 3] for b in others])
    for o in obstacles:
        lower, upper = o.shape.bounds
        near = np.flatnonzero(((middles > lower) & (middles < upper)).all(axis=1))
        depths = -signed_distance(o.shape, middles[near]) if len(near) else ()
        for k, depth in zip(near, depths, strict=True):
            if depth > 0.0:
                note(others[k].prim, f"it starts {depth:.3g} m deep in the obstacle {o.name!r}, which throws it out; "
                     f"move one of them, or read with contact_points=0")  # fmt: skip


def _surfaces(others: list[_Body], robot: dict[Sdf.Path, Sdf.Path], taken: set[str]) -> dict[str, str]:
    """What the surface of each body is called: its material, else its robot, else itself."""
    found, used = {}, {}
    size: dict[Sdf.Path, int] = {}
    for b in others:
        first = robot.get(b.prim.GetPath(), b.prim.GetPath())
        size[first] = size.get(first, 0) + 1
    for b in others:
        material = bound_material(b.parts[0][0])
        first = robot.get(b.prim.GetPath(), b.prim.GetPath())
        if material is None and size[first] == 1:
            found[b.name] = b.name
            continue
        path, name = (material.GetPath(), read_name(material)) if material else (first, f"surface of {first.name}")
        if name in taken or used.setdefault(name, path) != path:
            name = str(path) if material else f"surface of {path}"
        found[b.name] = name
    return found
