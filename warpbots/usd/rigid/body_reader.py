"""Rigid bodies of a file: prims with `PhysicsRigidBodyAPI`, with their colliders, mass and colour.

A body has the pose of its prim; scaling and mirroring of the prim are applied to the solids of the body. Geometry that
is not a collider has no part in physics.
"""

from typing import NamedTuple

import numpy as np
from pxr import Usd

from warpbots.scene import Cloud, RigidBody, SceneError, Shape, Union
from warpbots.usd.geometry.body_colors import read_color
from warpbots.usd.geometry.physics_materials import bound_material, said_friction
from warpbots.usd.rigid.colliders import colliders, read_collider
from warpbots.usd.rigid.exact_values import load_exact
from warpbots.usd.rigid.mass_properties import exact_inertia, has_mass_attributes, read_mass_properties
from warpbots.usd.stage.applied_schemas import MOTION_API, RIGID_API
from warpbots.usd.stage.attributes import authored, get, schemas, value_of
from warpbots.usd.stage.exact_fields import REST_POSE
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.ledger import mark_solid
from warpbots.usd.stage.prim_roles import prims_of_body
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import pose_of
from warpbots.usd.stage.units import StageUnits

__all__ = ["BodyPrim", "read_body_prim", "read_velocity"]


class BodyPrim(NamedTuple):
    """A rigid body of a file.

    Attributes:
        prim: The prim of the body.
        name: Name of the body.
        now: Pose of the body in the file, shape (4, 4). If the file contains a motion of the body, the pose without
            this motion.
        parts: Colliders of the body, each with its solid in the frame of the body.
        body: The corresponding body of the scene, still without pose and contact points.
    """

    prim: Usd.Prim
    name: str
    now: np.ndarray
    parts: list[tuple[Usd.Prim, Shape]]
    body: RigidBody


def read_body_prim(prim: Usd.Prim, name: str, frame: StageUnits, note: Note) -> BodyPrim:
    """The rigid body at `prim`, at its pose in the file.

    Args:
        prim: The prim.
        name: Name of the body.
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        SceneError: A value is outside its range; the message names the prim.
    """
    now, base = pose_of(frame.rigid.matrix(prim))
    parts = [(p, read_collider(prim, base, p, frame, note)) for p in colliders(prim)]
    parts = [(p, shape) for p, shape in parts if shape is not None]
    for p, _ in parts:
        mark_solid(p, bound_material(p))
    shapes = [shape for _, shape in parts]
    weight = read_mass_properties(prim, base, parts, frame, note)
    for below in prims_of_body(prim):
        if below != prim and not any(below == p for p, _ in parts) and has_mass_attributes(below, frame):
            note(below, "a mass or density of a prim that is neither body nor collider")
    own = RIGID_API in schemas(prim)
    try:
        body = RigidBody(
            name=name, shape=None if not shapes else shapes[0] if len(shapes) == 1 else Union(tuple(shapes)),
            density=weight.density, inertia=exact_inertia(prim, weight.inertia),
            points=_cloud(prim) if own else 0,
            surface=get(prim, "RigidBody.surface", frame) if own else None,
            color=read_color((prim, *(p for p, _ in parts[:1])), "RigidBody.color", frame, note),
            friction=_friction(prim, parts, frame),
        )  # fmt: skip
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None
    return BodyPrim(prim, name, _at_rest(prim, now), parts, body)


def _friction(prim: Usd.Prim, parts: list[tuple[Usd.Prim, Shape]], frame: StageUnits) -> float:
    """Coulomb coefficient of a bone in soft matter: set on the bone, else on the material of its first collider."""
    own = get(prim, "RigidBody.friction", frame)
    if not parts or authored(prim, rows("RigidBody.friction")[0].name):
        return own
    said, _ = said_friction(parts[0][0], frame)
    return own if said is None else said


def _at_rest(prim: Usd.Prim, now: np.ndarray) -> np.ndarray:
    """The pose without motion: the stored pose at rest if results of a motion move `prim`, else `now`."""
    rest = load_exact(prim, REST_POSE) if MOTION_API in schemas(prim) else None
    return now if rest is None or rest.size != now.size else rest.reshape(now.shape)


def read_velocity(prim: Usd.Prim, frame: StageUnits) -> tuple[np.ndarray, np.ndarray]:
    """Velocity [m/s] and angular velocity [rad/s] of a body in scene axes; files use axes of the parent prim."""
    found = []
    R = pose_of(frame.rigid.matrix(prim.GetParent()))[0][:3, :3]
    for what, unit in (("velocity of a body", frame.meters), ("angular velocity of a body", np.pi / 180.0)):
        name = rows(what)[0].name
        value = np.zeros(3)
        if authored(prim, name):
            value = np.asarray(value_of(prim, name)).astype(str).astype(np.float64)
        found.append(R @ value * unit)
    return found[0], found[1]


def _cloud(prim: Usd.Prim) -> int | Cloud:
    positions, areas = load_exact(prim, "cloud:positions"), load_exact(prim, "cloud:areas")
    name = rows("RigidBody.points")[0].name
    count = int(value_of(prim, name)) if authored(prim, name) else 0
    return count if positions is None or areas is None else Cloud(positions.reshape(-1, 3), areas)
