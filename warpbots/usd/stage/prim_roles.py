"""The role of a prim in physics (soft body, rigid body, collider or shape), and the body to which a prim belongs.

warpbots writes a body or an obstacle as an Xform, with the solid as child ``Shape`` and its type in `warpbots:shape`.
In files of other programs the prim may be the geometry itself, or have the geometry anywhere below.
"""

import typing

from pxr import Usd, UsdGeom

from warpbots.scene import Actuator, Attachment, Constraint, Contact, Load, Servo, StressActuator, Torque, VelocityDrive
from warpbots.usd.stage.applied_schemas import (
    BODY_APIS,
    GEOMETRY_TYPES,
    MOTION_API,
    REGION_API,
    RESULT_API,
    SIM_APIS,
)
from warpbots.usd.stage.attributes import authored, enabled, schemas, value_of
from warpbots.usd.stage.schema import rows

__all__ = [
    "prims_of_body", "body_of", "is_collider", "geometry_of", "is_geometry", "is_moving", "is_ours", "is_rigid",
    "is_shape", "is_soft", "kind_of", "Part", "part_api", "part_classes",
]  # fmt: skip

Part = Actuator | Torque | Servo | VelocityDrive | Constraint | Load | Attachment | Contact
"""Anything that acts on regions, bodies, joints or obstacles."""

_SHAPE = rows("shape")[0].name

_SOFT_SWITCHES = (
    "omniphysics:deformableBodyEnabled", "physics:deformableBodyEnabled", "physics:bodyEnabled",
    "physxDeformable:deformableEnabled",
)  # fmt: skip


def is_moving(prim: Usd.Prim) -> bool:
    """Whether `prim` is a rigid body that is simulated: enabled and not kinematic."""
    if "PhysicsRigidBodyAPI" not in schemas(prim) or not enabled(prim, "physics:rigidBodyEnabled"):
        return False
    kinematic = authored(prim, "physics:kinematicEnabled") and value_of(prim, "physics:kinematicEnabled")
    return not kinematic or MOTION_API in schemas(prim)  # whose bodies are kinematic, so that a player shows the motion


def is_soft(prim: Usd.Prim) -> bool:
    """Whether `prim` is a soft body that is enabled."""
    return bool(schemas(prim) & set(BODY_APIS)) and all(enabled(prim, name) for name in _SOFT_SWITCHES)


def is_rigid(prim: Usd.Prim) -> bool:
    """Whether `prim` is a rigid body that is simulated, and is not also marked as a soft body."""
    return is_moving(prim) and not is_soft(prim)


def is_collider(prim: Usd.Prim) -> bool:
    """Whether `prim` is an enabled collider; a trigger, which reports contact without resisting it, is none."""
    said = "PhysicsCollisionAPI" in schemas(prim) and "PhysxTriggerAPI" not in schemas(prim)
    return said and enabled(prim, "physics:collisionEnabled")


def body_of(prim: Usd.Prim) -> Usd.Prim | None:
    """The moving rigid body that `prim` belongs to: `prim` itself or the nearest rigid body above it; else None."""
    while prim and not prim.IsPseudoRoot():
        if "PhysicsRigidBodyAPI" in schemas(prim):
            return prim if is_moving(prim) else None
        prim = prim.GetParent()
    return None


def prims_of_body(body: Usd.Prim) -> list[Usd.Prim]:
    """`body` and all prims below it that belong to no other rigid body."""
    found, walk = [], iter(Usd.PrimRange(body, Usd.TraverseInstanceProxies()))
    for prim in walk:
        if prim != body and "PhysicsRigidBodyAPI" in schemas(prim):
            walk.PruneChildren()
        else:
            found.append(prim)
    return found


def is_geometry(prim: Usd.Prim) -> bool:
    """Whether `prim` is of a geometric type that can be read as a shape."""
    return prim.GetTypeName() in GEOMETRY_TYPES


def is_shape(prim: Usd.Prim) -> bool:
    """Whether `prim` is the root of a shape."""
    return authored(prim, _SHAPE) or is_geometry(prim)


def geometry_of(prim: Usd.Prim) -> list[Usd.Prim]:
    """Roots of the shapes at or below `prim`; if some are marked for simulation, only these.

    Curves are bars only if there is no other geometry: beside a mesh they are hair, or a line drawn on it.
    """
    if is_ours(prim):
        return [prim.GetChild("Shape")]  # whatever other programs have put beside it
    found, walk = [], iter(Usd.PrimRange(prim, Usd.TraverseInstanceProxies()))
    for below in walk:
        if schemas(below) & {REGION_API, RESULT_API}:
            walk.PruneChildren()
        elif is_shape(below):
            found.append(below)
            walk.PruneChildren()
    marked = [part for part in found if schemas(part) & set(SIM_APIS)]
    return marked or [part for part in found if not part.IsA(UsdGeom.Curves)] or found


def is_ours(prim: Usd.Prim) -> bool:
    """Whether `prim` has the layout of the bodies and obstacles that warpbots writes."""
    shape = prim.GetChild("Shape")
    return bool(shape) and prim.GetTypeName() == "Xform" and authored(shape, _SHAPE)


def kind_of(cls: type) -> str:
    """Name of the field of a scene that holds parts of the class `cls`."""
    others = {Constraint: "constraints", Load: "loads", Attachment: "attachments", Contact: "contacts"}
    return others.get(cls, "actuators")


def part_classes() -> dict[str, type]:
    """Classes of parts by their applied schemas, ``Warpbots<class>API``; stress actuators of users are included.

    Of several classes with one name, such as those of a notebook cell that ran twice, the last one counts.
    """
    kinds = [kind for kind in typing.get_args(Part) if kind is not StressActuator]
    return {f"Warpbots{kind.__name__}API": kind for kind in (*kinds, *_below(StressActuator))}


def _below(cls: type) -> list[type]:
    """All classes that derive from `cls`."""
    return [found for child in cls.__subclasses__() for found in (child, *_below(child))]


def part_api(applied: set[str]) -> str | None:
    """The schema among `applied` that makes a prim an actuator, constraint, load, attachment or contact, or None."""
    return next((api for api in part_classes() if api in applied), None)
