"""Reports the physics in a file that no reader has read, so that nothing is lost silently.

Physics means every authored attribute and relationship in the namespaces of physics schemas, and every applied physics
schema. The ledger lists the properties that readers have read. All other properties of every prim are reported with
their values, except properties without effect: values that equal the fallback of their schema or that change nothing in
warpbots, and attributes that control how another program computes, such as tolerances and identifiers.
"""

import functools
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom, UsdShade

from warpbots.usd.stage.applied_schemas import MOTION_API, RESULT_API
from warpbots.usd.stage.attributes import authored, schemas
from warpbots.usd.stage.ledger import Ledger
from warpbots.usd.stage.prim_roles import body_of, is_collider, is_soft
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import START

__all__ = ["unread"]

_SCHEMA = re.compile(r"(Physics|Physx|OmniPhysics|Newton|Mjc|Isaac)")
_PROPERTY = re.compile(r"(physics|physx\w*|omniphysics|newton|mjc|isaac\w*|drive|limit|state|warpbots):")
"""Namespaces of physics."""

_KNOWN = re.compile(
    r"Physics(RigidBody|Collision|MeshCollision|Mass|Material|ArticulationRoot|FilteredPairs|DeformableBody|Drive|Limit"
    r"|JointState|CollisionGroup|((Volume|Surface|Curves)Deformable(Sim|Material)))API"
    r"|OmniPhysics(DeformableBody|(Volume|Surface)DeformableSim|(Surface)?DeformableMaterial|Body)API"
    r"|Newton(Scene|MPMScene|XpbdScene|VbdScene|KaminoScene|MPMMaterial|PointsDeformableSim|Mimic|ArticulationRoot"
    r"|Collision|MeshCollision|Material|Mass|Joint|RigidBody)API"
    r"|Mjc(Joint|Scene|Collision|MeshCollision|Material|Site|ImageableAPI|Mimic|Equality\w*)(API)?"
    r"|Physx(Scene|RigidBody|Articulation|Collision|ConvexHullCollision|ConvexDecompositionCollision|SDFMeshCollision"
    r"|TriangleMeshCollision|TriangleMeshSimplificationCollision|Joint|Limit|Material|ContactReport|MimicJoint"
    r"|Deformable|Deformable(Body|Surface)(Material)?|SurfaceVelocity|Trigger|TriggerState|CookedData"
    r"|ResidualReporting)API"
    r"|Isaac\w+API"
)
"""Schemas that are read in part, reported elsewhere, or whose attributes are reported one by one."""

_EXPLANATIONS = dict.fromkeys(
    (
        "PhysxTendonAxisAPI", "PhysxTendonAxisRootAPI", "PhysxTendonAttachmentAPI", "PhysxTendonAttachmentRootAPI",
        "PhysxTendonAttachmentLeafAPI",
    ),
    "a tendon, which is not simulated",
)  # fmt: skip
"""Explanations for particular schemas."""

_NUMERICS = re.compile(
    r"warpbots:(exact:.+|order)|physics:(engine|newton:\w+|tensor:.+)|mjc:(group|compiler:.+|statistic:.+|visual:.+)"
    r"|mjc:option:(?!wind|density|viscosity|gravity).+|physxScene:(?!invertCollisionGroupFilter)\w+|newton:(kamino|xpbd|vbd|mujoco):.+|newton:max\w*Iterations|newton:timeStepsPerSecond|newton:collapse_fixed_joints"
    r"|newton:mpm:(voxelSize|tolerance|rheologySolvers|velocityBasis\w+|gridType|transferScheme|maxIterations)"
    r"|physx\w+:(\w*[sS]olver\w*IterationCount|sleepThreshold|stabilizationThreshold|contactSlopCoefficient"
    r"|maxDepenetrationVelocity|maxContactImpulse|solveContact|enableCCD|enableSpeculativeCCD|cfmScale|threshold"
    r"|contactOffset|restOffset|torsionalPatchRadius|minTorsionalPatchRadius|hullVertexLimit|minThickness|\w*[cC]ooking\w*"
    r"|maxConvexHulls|voxelResolution|errorPercentage|shrinkWrap|sdf\w+|improvePatchFriction|buffer|maxHullVertices"
    r"|weldTolerance|metric|simplificationMetric|data|settlingThreshold|sleepDamping)|isaac\w*:.+"
    r"|physxDeformable:(simulation|collision|rest|selfCollisionFilter)\w*|physxTrigger\w*:.+"
)
"""Attributes that control how other programs compute, or by which they identify prims."""

_NEUTRAL = {
    "physics:articulationEnabled": (True,),
    "physics:startsAsleep": (False,),
    "physxArticulation:articulationEnabled": (True,),
    "physxDeformable:disableGravity": (False,),
    "physxDeformable:enableCCD": (False, True),
    "physxDeformable:selfCollision": (True,),
    "physxJoint:maxJointVelocity": (1e6,),
    "physxRigidBody:angularDamping": (0.0, 0.05),
    "physxRigidBody:disableGravity": (False,),
    "physxRigidBody:enableGyroscopicForces": (True,),
    "physxRigidBody:linearDamping": (0.0,),
    "physxRigidBody:maxAngularVelocity": (5729.58,),
    "physxRigidBody:lockedPosAxis": (0,),
    "physxRigidBody:lockedRotAxis": (0,),
    "physxRigidBody:retainAccelerations": (False,),
    "physxMaterial:compliantContactDamping": (0.0,),
    "physxMaterial:compliantContactStiffness": (0.0,),
    "physxMaterial:frictionCombineMode": ("average",),
    "physxMaterial:restitutionCombineMode": ("average",),
    "physxMaterial:dampingCombineMode": ("average",),
    "physxScene:invertCollisionGroupFilter": (False,),
    "physxSurfaceVelocity:surfaceAngularVelocity": ((0.0, 0.0, 0.0),),
    "omniphysics:startsAsleep": (False,),
}
"""Values without effect here, such as the defaults of PhysX."""

_ENDLESS = 1e30


_MASS = frozenset(
    row.name for what in ("mass", "center", "diagonal", "axes") for row in rows(f"Inertia.{what}")
) | {row.name for row in rows("RigidBody.density")}  # fmt: skip
"""Attributes without effect on static prims."""

_SEVERAL = 3
"""Largest number of different values of one attribute that are listed one by one."""


def unread(stage: Usd.Stage, ledger: Ledger, settings: Usd.Prim | None) -> list[tuple[str, str]]:
    """Paths of prims, each with a description of physics on the prim that no reader has read.

    Args:
        stage: The stage.
        ledger: Record of the properties that readers have read from the stage.
        settings: The PhysicsScene of the scene, or None.
    """
    found: list[tuple[str, str]] = []
    values: dict[str, list[tuple[str, Any]]] = {}
    shapes = _attributes_of_shapes(ledger)
    walk = iter(Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()))
    for prim in walk:
        path = prim.GetPath()
        if RESULT_API in schemas(prim):
            walk.PruneChildren()
        if path in ledger.named or RESULT_API in schemas(prim):
            continue
        if prim.IsA(UsdShade.Material) and path not in ledger.materials:
            continue  # no solid of the scene has this material
        lost = [schema for schema in _own_schemas(prim) if not _KNOWN.fullmatch(schema)]
        found += [(str(path), f"{s}, {_EXPLANATIONS.get(s, 'which warpbots does not support')}") for s in lost]
        found += [(str(path), reason) for reason in _roles(prim, ledger)]
        found += [(str(path), reason) for name in shapes.get(path, ()) for reason in _changes_in_time(prim, name)]
        kind = str(prim.GetTypeName())
        if _SCHEMA.search(kind) and not Usd.SchemaRegistry.GetTypeFromName(kind):
            motors = (
                "; motors are drives of joints" if kind.endswith("Actuator") else ", which warpbots does not support"
            )
            found.append((str(path), f"a {kind}{motors}"))
            continue  # its attributes are part of this note
        for name in prim.GetAuthoredPropertyNames(lambda name: bool(_PROPERTY.match(name))):
            if any(schema.lower().startswith(name.partition(":")[0].lower()) for schema in lost):
                continue  # it is part of the note on its schema
            if (path, name) in ledger.read:
                found += [(str(path), reason) for reason in _changes_in_time(prim, name)]
            elif not _changes_nothing(prim, name, settings):
                values.setdefault(name, []).append((str(path), _value(prim, name)))
    return found + [note for name, where in values.items() for note in _lines(name, where)]


def _attributes_of_shapes(ledger: Ledger) -> dict[Sdf.Path, list[str]]:
    """Names of the attributes outside of physics, such as points or a radius, that readers have read from solids."""
    found: dict[Sdf.Path, list[str]] = {}
    for path, name in sorted(ledger.read):
        if path in ledger.solids and not _PROPERTY.match(name) and not name.startswith("primvars:"):
            found.setdefault(path, []).append(name)
    return found


def _own_schemas(prim: Usd.Prim) -> list[str]:
    """Names of the physics schemas applied to `prim`, without instance names of multiple-apply schemas."""
    applied = (schema.partition(":")[0] for schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas())
    return list(dict.fromkeys(schema for schema in applied if _SCHEMA.match(schema)))


def _roles(prim: Usd.Prim, ledger: Ledger) -> Iterator[str]:
    """Sentences on roles that the schemas of `prim` give to the prim, but that it does not have in the scene."""
    soft = _above(prim, is_soft)
    if soft and soft != prim and is_soft(prim):
        yield f"a soft body inside the soft body {soft.GetPath()}; it is taken as part of that body"
    if prim.IsA(UsdGeom.Gprim) and is_collider(prim) and not soft and prim.GetPath() not in ledger.solids:
        yield "a collider that became part of no body and no obstacle"
    if prim.IsA(UsdGeom.Subset) and prim.GetParent().GetPath() in ledger.solids:
        binding = UsdShade.MaterialBindingAPI(prim)
        bound = binding.GetDirectBinding("physics").GetMaterial() or binding.GetDirectBinding().GetMaterial()
        if bound and bound.GetPrim().GetAuthoredPropertyNames(lambda name: bool(_PROPERTY.match(name))):
            yield f"the physics material {bound.GetPath()} of a part of the surface; the whole solid is of one material"


def _above(prim: Usd.Prim, has: Any) -> Usd.Prim | None:
    """The topmost of `prim` and its ancestors for which `has` is true, or None."""
    prims = (prim.GetStage().GetPrimAtPath(path) for path in prim.GetPath().GetPrefixes())
    return next((p for p in prims if has(p)), None)


def _changes_in_time(prim: Usd.Prim, name: str) -> Iterator[str]:
    """Yields a note if an attribute that was read has other values at later times."""
    attribute = prim.GetAttribute(name)
    if not attribute or MOTION_API in schemas(prim) or not attribute.ValueMightBeTimeVarying():
        return
    times = attribute.GetTimeSamples()
    first = attribute.Get(times[0]) if times else None
    if any(attribute.Get(time) != first for time in times[1:]):
        yield f"{name}, which changes in time; its first value counts, {_shown(first)}"


def _changes_nothing(prim: Usd.Prim, name: str, settings: Usd.Prim | None) -> bool:
    """Whether a property that was not read has no effect on the scene."""
    if _NUMERICS.fullmatch(name):
        return True
    if name in _MASS and _is_static(prim):
        return True
    link = prim.GetRelationship(name)
    if link:
        aims = link.GetForwardedTargets()
        own = name.endswith("simulationOwner") and settings is not None and set(aims) <= {settings.GetPath()}
        return not aims or own
    if not authored(prim, name):
        return True
    attribute = prim.GetAttribute(name)
    if attribute.ValueMightBeTimeVarying():
        return False
    value = attribute.Get(START)
    if _is_fallback(prim, name, value):
        return True
    if isinstance(value, float):
        return abs(value) >= _ENDLESS or any(math.isclose(value, v, rel_tol=1e-6) for v in _NEUTRAL.get(name, ()))
    return value in _NEUTRAL.get(name, ())


def _is_static(prim: Usd.Prim) -> bool:
    """Whether `prim` is a collider or a body that does not move, and therefore needs no mass."""
    still = schemas(prim) & {"PhysicsCollisionAPI", "PhysicsRigidBodyAPI"} and not _above(prim, is_soft)
    return bool(still) and body_of(prim) is None


def _is_fallback(prim: Usd.Prim, name: str, value: Any) -> bool:
    """Whether `value` equals the fallback value in the schema of the attribute."""
    said = prim.GetPrimDefinition().GetAttributeFallbackValue(name)
    if said is None:  # its schema is not applied
        said = next((other for pattern, other in _fallbacks() if pattern.fullmatch(name)), None)
    return said is not None and value == said


@functools.cache
def _fallbacks() -> tuple[tuple[re.Pattern, Any], ...]:
    """Name patterns and fallback values of the attributes of all registered physics schemas, applied schemas first."""
    registry, applied, typed = Usd.SchemaRegistry(), [], []
    for kind in Tf.Type.FindByName("UsdSchemaBase").GetAllDerivedTypes():
        schema = registry.GetSchemaTypeName(kind)
        if not schema or not _SCHEMA.match(schema):
            continue
        found = applied if registry.IsAppliedAPISchema(kind) else typed
        whole = registry.FindAppliedAPIPrimDefinition(schema) or registry.FindConcretePrimDefinition(schema)
        for name in whole.GetPropertyNames() if whole else ():
            value = whole.GetAttributeFallbackValue(name)
            if value is not None:
                found.append((re.compile(re.escape(name).replace("__INSTANCE_NAME__", "[^:]+")), value))
    return (*applied, *typed)


def _value(prim: Usd.Prim, name: str) -> Any:
    """The value of the property `name`: the value of an attribute, or the targets of a relationship."""
    link = prim.GetRelationship(name)
    return [str(path) for path in link.GetForwardedTargets()] if link else prim.GetAttribute(name).Get(START)


def _lines(name: str, where: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """A note on the property `name` for each prim, with its value unless there are many different values."""
    several = {_shown(value) for _, value in where}
    if len(several) > _SEVERAL:
        numbers = [value for _, value in where if isinstance(value, float | int)]
        whole = f" from {min(numbers):g} to {max(numbers):g}" if len(numbers) == len(where) else ""
        yield from ((path, f"{name}{whole}, which is not read") for path, _ in where)
    else:
        yield from ((path, f"{name} = {_shown(value)}, which is not read") for path, value in where)


def _shown(value: Any) -> str:
    """`value` as a text that fits on a short line."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bool | int | str):
        return str(value)
    array = np.asarray(value)
    if array.dtype.kind in "fiub" and array.size <= 9:
        return "(" + ", ".join(f"{v:g}" for v in array.reshape(-1).astype(float)) + ")"
    if array.dtype.kind in "fiub" and array.size:
        return f"{len(array)} values"
    text = ", ".join(map(str, value)) if isinstance(value, list) else " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
