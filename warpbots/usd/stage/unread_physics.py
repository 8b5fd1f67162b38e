"""Physics in a file that warpbots does not read: it is reported, so that nothing is lost silently.

Whatever is not in the tables here counts as physics if its name has a prefix of physics schemas. Attributes that only
control how another program computes, such as tolerances and identifiers, do not count.
"""

import math
import re
from collections.abc import Iterator

from pxr import Usd

from warpbots.usd.stage.attributes import authored
from warpbots.usd.stage.schema import TABLE
from warpbots.usd.stage.units import START

__all__ = ["unread"]

_SCHEMA = re.compile(r"(Physics|Physx|OmniPhysics|Newton|Mjc|Isaac)")
_ATTRIBUTE = re.compile(r"(physics|physx\w*|omniphysics|newton|mjc|isaac\w*|drive|limit|state):")

_KNOWN = re.compile(
    r"Physics(RigidBody|Collision|MeshCollision|Mass|Material|ArticulationRoot|FilteredPairs|DeformableBody|Drive|Limit"
    r"|JointState|CollisionGroup|((Volume|Surface|Curves)Deformable(Sim|Material)))API"
    r"|OmniPhysics(DeformableBody|(Volume|Surface)DeformableSim|(Surface)?DeformableMaterial|Body)API"
    r"|Newton(Scene|MPMScene|XpbdScene|VbdScene|KaminoScene|MPMMaterial|PointsDeformableSim|Mimic|ArticulationRoot"
    r"|Collision|MeshCollision|Material|Mass|Joint|RigidBody)API"
    r"|Mjc(Joint|Scene|Collision|MeshCollision|Material|Site|ImageableAPI|Mimic|Equality\w*)(API)?"
    r"|Physx(Scene|RigidBody|Articulation|Collision|ConvexHullCollision|ConvexDecompositionCollision|SDFMeshCollision"
    r"|TriangleMeshCollision|TriangleMeshSimplificationCollision|Joint|Limit|Material|ContactReport|MimicJoint"
    r"|Deformable|Deformable(Body|Surface)(Material)?|Trigger|TriggerState|CookedData|ResidualReporting)API"
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

_NAMED = (
    "physxLimit:",
    "drive:",
    "limit:",
    "state:",
    "physxMimicJoint",
    "physxTendon",
    "newton:mimic",
    "newton:constraintMimic",
)
"""Prefixes of attributes that are read, or reported together with their joint."""

_READ = {
    *(row.name for row in TABLE),
    "physics:approximation", "physics:articulationEnabled", "physics:bodyEnabled", "physics:breakForce",
    "physics:breakTorque", "physics:collisionEnabled", "physics:coneAngle0Limit", "physics:coneAngle1Limit",
    "physics:deformableBodyEnabled", "physics:excludeFromArticulation", "physics:jointEnabled",
    "physics:kinematicEnabled", "physics:maxDistance", "physics:minDistance", "physics:rigidBodyEnabled",
    "omniphysics:deformableBodyEnabled", "physxDeformable:deformableEnabled", "newton:friction",
    "newton:selfCollisionEnabled", "physxJoint:jointFriction", "physxArticulation:enabledSelfCollisions",
    "mjc:frictionloss", "mjc:springref", "physics:invertFilteredGroups",
    "physics:mergeGroup",
}  # fmt: skip
"""Attributes that are read, or reported where they are used."""

_NUMERICS = re.compile(
    r"physics:(engine|newton:\w+|tensor:.+)|mjc:(group|compiler:.+|statistic:.+|visual:.+)"
    r"|mjc:option:(?!wind|density|viscosity|gravity).+|physxScene:(?!invertCollisionGroupFilter)\w+|newton:(kamino|xpbd|vbd|mujoco):.+|newton:max\w*Iterations|newton:collapse_fixed_joints"
    r"|newton:mpm:(tolerance|rheologySolvers|velocityBasis\w+|gridType|transferScheme|maxIterations)"
    r"|physx\w+:(\w*[sS]olver\w*IterationCount|sleepThreshold|stabilizationThreshold|contactSlopCoefficient"
    r"|maxDepenetrationVelocity|maxContactImpulse|solveContact|enableCCD|enableSpeculativeCCD|cfmScale|threshold"
    r"|contactOffset|restOffset|torsionalPatchRadius|minTorsionalPatchRadius|hullVertexLimit|minThickness|\w*[cC]ooking\w*"
    r"|maxConvexHulls|voxelResolution|errorPercentage|shrinkWrap|sdf\w+|improvePatchFriction|buffer|maxHullVertices"
    r"|weldTolerance|metric|simplificationMetric|data|settlingThreshold|sleepDamping)|isaac\w*:.+"
    r"|physxDeformable:(simulation|collision|rest|selfCollisionFilter)\w*|physxTrigger\w*:.+"
)
"""Attributes that control how other programs compute, or identify their prims."""

_NEUTRAL = {
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
    "omniphysics:startsAsleep": (False,),
}
"""Values without effect here, such as the defaults of PhysX."""

_ENDLESS = 1e30


def unread(prim: Usd.Prim) -> Iterator[str]:
    """Descriptions of the physics of `prim` that is not read."""
    lost = []
    for schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
        kind = schema.partition(":")[0]
        if _SCHEMA.match(kind) and not _KNOWN.fullmatch(kind):
            lost.append(kind.lower())
            yield f"{kind}, {_EXPLANATIONS.get(kind, 'which warpbots does not support')}"
    kind = str(prim.GetTypeName())
    if _SCHEMA.search(kind) and not Usd.SchemaRegistry.GetTypeFromName(kind):
        motors = "; motors are drives of joints" if kind.endswith("Actuator") else ", which warpbots does not support"
        yield f"a {kind}{motors}"
        return  # its attributes go with it
    for name in prim.GetAuthoredPropertyNames(lambda name: bool(_ATTRIBUTE.match(name))):
        if name in _READ or name.startswith(_NAMED) or _NUMERICS.fullmatch(name):
            continue
        if any(schema.startswith(name.partition(":")[0].lower()) for schema in lost):
            continue  # it goes with its schema
        attribute = prim.GetAttribute(name)
        if attribute and authored(prim, name) and not _changes_nothing(name, attribute.Get(START)):
            yield f"{name}, which is not read"


def _changes_nothing(name: str, value: object) -> bool:
    if isinstance(value, float):
        return abs(value) >= _ENDLESS or any(math.isclose(value, v, rel_tol=1e-6) for v in _NEUTRAL.get(name, ()))
    return value in _NEUTRAL.get(name, ())
