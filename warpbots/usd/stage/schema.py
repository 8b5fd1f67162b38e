"""The one table of everything that warpbots reads from and writes to USD attributes.

Standard names come first, for other programs: UsdPhysics and UsdGeom of OpenUSD, the codeless schemas of
newton-usd-schemas, and the deformable schema that AOUSD has proposed but not released. Names that start with
``warpbots:`` exist only for values without a standard attribute. All values are in units of the stage, except those of
``warpbots:exact:`` (see `warpbots.usd.stage.attributes`), which are in SI units and in scene axes.
"""

import dataclasses
from typing import Any, NamedTuple

from warpbots.scene import (
    CamClay,
    Cavity,
    Contact,
    Fluid,
    Material,
    Obstacle,
    RigidBody,
    SceneError,
    Servo,
    SoftBody,
    Task,
    Torque,
    VonMises,
)
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.units import UNITS

__all__ = ["AOUSD_COMMIT", "KINDS", "OWN", "SCHEMA_VERSION", "TABLE", "Row", "attributes_of", "declare", "rows"]

SCHEMA_VERSION = 1
"""Version of this table; files with a later version are refused."""

AOUSD_COMMIT = "63c74d79"
"""Commit of the AOUSD proposal (OpenUSD-proposals, pull request 111) whose names the rows of origin "AOUSD" use."""


KINDS = {
    "text": ("string", "token"),
    "integer": ("int", "bool"),
    "number": ("double", "float"),
    "constant": ("double[]", "float[]"),
    "numbers": ("double[]", "float[]"),
    "color": ("color3f[]",),
    "table": ("double2[]",),
    "vector": ("double3", "vector3f"),
    "vectors": ("double3[]",),
    "points": ("double3[]", "point3f[]"),
    "local": (),
}
"""Kinds of rows, with the USD types that hold a value of each; any type if there are none."""


class Row(NamedTuple):
    """One row of the table: a USD attribute.

    Attributes:
        sets: The field of a class of `warpbots.scene` that the attribute sets, or a description of what else it sets.
        name: Name of the USD attribute.
        type: USD type of the attribute, one of the types of its kind.
        kind: The conversion of the value, a key of `KINDS`. A "number", "numbers" (an array)
            and a "constant" (an array of one number) are converted to SI units. A "vector" and "vectors" (an array) are
            also rotated from the axes of the prim; "points" are transformed from the coordinates of the prim.
            "integer", "text", "color" and "table" (pairs of numbers) are not converted. A "local" value has no codec:
            the modules that read and write it convert it.
        unit: Unit of the value, a key of `warpbots.usd.stage.units.UNITS`.
        prim: The prim or the applied schema that has the attribute.
        origin: The specification or program that defines the name.
        default: Value if nothing is authored; `...` if there is no default.
        written: Whether warpbots also writes the attribute.
        uniform: Whether its schema makes it uniform (not animated); all attributes of warpbots are uniform.
        reader: The module of `warpbots.usd` that reads the attribute.
        writer: The module of `warpbots.usd` that writes the attribute; "" if no module does.
    """

    sets: str
    name: str
    type: str
    kind: str
    unit: str
    prim: str
    origin: str
    default: Any = ...
    written: bool = True
    uniform: bool = False
    reader: str = ""
    writer: str = ""


OWN = "warpbots"
"""Origin of names that exist only in warpbots."""

_USD, _AOUSD, _NEWTON, _OMNI = "OpenUSD", f"AOUSD {AOUSD_COMMIT}", "newton-usd-schemas 0.6", "Omniverse"
_MUJOCO = "mujoco-usd-converter"
_SCENE, _MATERIAL = "PhysicsScene", "Material"


TABLE: list[Row] = []
"""All attributes, in the order in which they are declared."""

_ROWS: dict[str, tuple[Row, ...]] = {}


def declare(reader: str, *new: Row, writer: str | None = None) -> None:
    """Add rows to the table.

    Args:
        reader: The module of `warpbots.usd` that reads these attributes.
        *new: The rows. If several rows have the same `sets`, the first one whose attribute the file authors is used.
        writer: The module that writes these attributes; None for `reader`.

    Raises:
        SceneError: The kind or unit of a row is unknown, its type does not hold its kind, or another row has the same
            attribute of the same prim. A row that is declared once more, as by a cell of a notebook, is no fault.
    """
    for row in new:
        by = reader if writer is None else writer
        complete = row._replace(reader=reader, writer=by if row.written else "")
        if complete in TABLE:
            continue
        _refuse_wrong(complete)
        TABLE.append(complete)
        _ROWS[row.sets] = (*_ROWS.get(row.sets, ()), complete)


def _refuse_wrong(row: Row) -> None:
    """Raise a `SceneError` if a row contradicts itself or another row."""
    who, units = f"Row {row.sets!r}, {row.name}", (*UNITS, "kg/m^dim")
    if row.kind not in KINDS:
        raise SceneError(f"{who}: kind must be one of {', '.join(KINDS)}, got {row.kind!r}")
    if KINDS[row.kind] and row.type not in KINDS[row.kind]:
        raise SceneError(
            f"{who}: type of the kind {row.kind!r} must be one of {', '.join(KINDS[row.kind])}, got {row.type!r}"
        )
    if row.kind != "local" and row.unit not in units:
        raise SceneError(
            f"{who}: unit must be one of {', '.join(units)}, got {row.unit!r}; add yours to UNITS in usd/stage/units.py"
        )
    for other in TABLE:
        if (other.name, other.prim) == (row.name, row.prim):
            remedy = "declare it once; a notebook with a corrected row must be restarted"
            remedy = remedy if other.sets == row.sets else "give it another name"
            raise SceneError(f"{who}: attribute {row.name} of {row.prim} already holds {other.sets}; {remedy}")


def rows(sets: str) -> tuple[Row, ...]:
    """The rows that set `sets`, in the order in which they are read."""
    return _ROWS[sets]


def attributes_of(cls: type, *otherwise: str) -> dict[str, str]:
    """The `Row.sets` of each field of a class: ``<class>.<field>``, or ``<field>`` if several classes share the rows.

    Args:
        cls: A dataclass of a scene.
        *otherwise: Fields that a file does not store as an attribute.

    Raises:
        SceneError: A field has no row; a file would lose it.
    """
    found = {f.name: f"{cls.__name__}.{f.name}" for f in dataclasses.fields(cls) if f.name not in otherwise}
    found = {name: sets if sets in _ROWS else name for name, sets in found.items()}
    for name, sets in found.items():
        if sets not in _ROWS:
            raise SceneError(
                f"{cls.__name__}.{name}: no attribute of a file holds it; declare a Row in {__name__}, as CONTRIBUTING "
                f"says"
            )
    return found


# fmt: off
# the physics scene
declare("stage.scene_settings",
    Row("Scene.gravity direction", "physics:gravityDirection", "vector3f", "vector", "1", _SCENE, _USD, None),
    Row("Scene.gravity magnitude", "physics:gravityMagnitude", "float", "number", "m/s^2", _SCENE, _USD, None),
    Row("gravity enabled", "newton:gravityEnabled", "bool", "integer", "1", "NewtonSceneAPI", _NEWTON, 1,
        written=False),
    Row("dimension", "warpbots:dimension", "int", "integer", "1", _SCENE, OWN, 3),
    Row("Scene.domain", "warpbots:domain", "double3[]", "points", "m", _SCENE, OWN, None),
    Row("Fluid.density", "warpbots:fluid:density", "double", "number", "kg/m^dim", _SCENE, OWN),
    Row("Fluid.velocity", "warpbots:fluid:velocity", "double3", "vector", "m/s", _SCENE, OWN, None),
    Row("Fluid.drag", "warpbots:fluid:drag", "double2[]", "table", "1", _SCENE, OWN, Fluid.drag),
    Row("Fluid.thrust", "warpbots:fluid:thrust", "double2[]", "table", "1", _SCENE, OWN, Fluid.thrust),
    Row("Task.cell_size", "newton:mpm:voxelSize", "float", "number", "m", "NewtonMPMSceneAPI", _NEWTON, None,
        uniform=True),
    Row("steps per second", "newton:timeStepsPerSecond", "int", "integer", "1", "NewtonSceneAPI", _NEWTON, None,
        uniform=True),
    Row("Task.control_interval", "warpbots:task:controlInterval", "double", "number", "s", _SCENE, OWN),
    Row("Task.substeps", "warpbots:task:substeps", "int", "integer", "1", _SCENE, OWN),
    Row("Task.steps", "warpbots:task:steps", "int", "integer", "1", _SCENE, OWN),
    Row("Task.direction", "warpbots:task:direction", "double3", "vector", "1", _SCENE, OWN),
    Row("Task.clusters", "warpbots:task:clusters", "int", "integer", "1", _SCENE, OWN, Task.clusters),
    Row("Task.clock", "warpbots:task:clock", "double", "number", "s", _SCENE, OWN, Task.clock),
)
# materials: the first authored row is used
declare("geometry.physics_materials",
    Row("Material.youngs_modulus", "newton:mpm:youngsModulus", "float", "number", "Pa", "NewtonMPMMaterialAPI", _NEWTON,
        None),
    Row("Material.youngs_modulus", "physics:youngsModulus", "float", "number", "Pa",
        "PhysicsVolumeDeformableMaterialAPI", _AOUSD),
    Row("Material.youngs_modulus", "omniphysics:youngsModulus", "float", "number", "Pa",
        "OmniPhysicsDeformableMaterialAPI", _OMNI, written=False),
    Row("Material.youngs_modulus", "physxDeformableBodyMaterial:youngsModulus", "float", "number", "Pa",
        "PhysxDeformableBodyMaterialAPI", _OMNI, written=False),
    Row("Material.youngs_modulus", "physxDeformableSurfaceMaterial:youngsModulus", "float", "number", "Pa",
        "PhysxDeformableSurfaceMaterialAPI", _OMNI, written=False),
    Row("Material.poissons_ratio", "newton:mpm:poissonsRatio", "float", "number", "1", "NewtonMPMMaterialAPI", _NEWTON,
        Material.poissons_ratio),
    Row("Material.poissons_ratio", "physics:poissonsRatio", "float", "number", "1",
        "PhysicsVolumeDeformableMaterialAPI", _AOUSD),
    Row("Material.poissons_ratio", "omniphysics:poissonsRatio", "float", "number", "1",
        "OmniPhysicsDeformableMaterialAPI", _OMNI, written=False),
    Row("Material.poissons_ratio", "physxDeformableBodyMaterial:poissonsRatio", "float", "number", "1",
        "PhysxDeformableBodyMaterialAPI", _OMNI, written=False),
    Row("Material.poissons_ratio", "physxDeformableSurfaceMaterial:poissonsRatio", "float", "number", "1",
        "PhysxDeformableSurfaceMaterialAPI", _OMNI, written=False),
    Row("Material.density", "physics:density", "float", "number", "kg/m^dim", "PhysicsMaterialAPI", _USD,
        Material.density),
    Row("Material.density", "omniphysics:density", "float", "number", "kg/m^dim", "OmniPhysicsDeformableMaterialAPI",
        _OMNI, written=False),
    Row("Material.density", "physxDeformableBodyMaterial:density", "float", "number", "kg/m^dim",
        "PhysxDeformableBodyMaterialAPI", _OMNI, written=False),
    Row("Material.density", "physxDeformableSurfaceMaterial:density", "float", "number", "kg/m^dim",
        "PhysxDeformableSurfaceMaterialAPI", _OMNI, written=False),
    Row("Material.law", "warpbots:law", "token", "text", "1", _MATERIAL, OWN, Material.law),
    Row("Material.constants", "warpbots:constants:{constant}", "double", "local", "of the law", _MATERIAL, OWN, None),
    Row("Material.incompressibility", "warpbots:incompressibility", "int", "integer", "1", _MATERIAL, OWN,
        Material.incompressibility),
    Row("Material.damping", "warpbots:damping", "double", "number", "s", _MATERIAL, OWN, Material.damping),
    Row("Material.yield_strain", "warpbots:yieldStrain", "double", "number", "1", _MATERIAL, OWN, None),
    Row("Material.breaking_strain", "warpbots:breakingStrain", "double", "number", "1", _MATERIAL, OWN, None),
    Row("Material.plasticity", "warpbots:plasticity", "token", "text", "1", _MATERIAL, OWN, None),
    Row("VonMises.yield_stress", "warpbots:yieldStress", "double", "number", "Pa", _MATERIAL, OWN),
    Row("VonMises.hardening", "warpbots:hardening", "double", "number", "Pa", _MATERIAL, OWN, VonMises.hardening),
    Row("DruckerPrager.friction_angle", "warpbots:frictionAngle", "double", "number", "1", _MATERIAL, OWN),
    Row("CamClay.preconsolidation_pressure", "warpbots:preconsolidationPressure", "double", "number", "Pa", _MATERIAL,
        OWN),
    Row("CamClay.stress_ratio", "warpbots:stressRatio", "double", "number", "1", _MATERIAL, OWN, CamClay.stress_ratio),
    Row("CamClay.cohesion", "warpbots:cohesion", "double", "number", "1", _MATERIAL, OWN, CamClay.cohesion),
    Row("CamClay.hardening_coefficient", "warpbots:hardeningCoefficient", "double", "number", "1", _MATERIAL, OWN,
        CamClay.hardening_coefficient),
    Row("FibreReinforcement.direction", "warpbots:fibreDirections", "double3[]", "vectors", "1", _MATERIAL, OWN, ()),
    Row("FibreReinforcement.modulus", "warpbots:fibreModuli", "double[]", "numbers", "Pa", _MATERIAL, OWN, ()),
    Row("MaxwellBranch.shear_modulus", "warpbots:branchModuli", "double[]", "numbers", "Pa", _MATERIAL, OWN, ()),
    Row("MaxwellBranch.relaxation_time", "warpbots:relaxationTimes", "double[]", "numbers", "s", _MATERIAL, OWN, ()),
)
# bodies
declare("stage.inventory",
    Row("order", "warpbots:order", "int", "integer", "1", "body, obstacle or actuator", OWN, None),
    writer="scene_writer",
)
declare("soft.mass_and_motion",
    Row("SoftBody.velocity", "warpbots:velocity", "double3", "vector", "m/s", "PhysicsDeformableBodyAPI", OWN, None),
    Row("SoftBody.friction", "warpbots:friction", "double", "number", "1", "PhysicsDeformableBodyAPI", OWN,
        SoftBody.friction),
    writer="soft.soft_bodies",
)
declare("soft.soft_bodies",
    Row("SoftBody.color", "primvars:displayColor", "color3f[]", "color", "1", "soft body or its shape", _USD,
        SoftBody.color),
)
declare("geometry.shape_prims",
    Row("shape", "warpbots:shape", "token", "text", "1", "every shape", OWN, None),
)
# sheets; the thickness is that of the geometry or, in older files, of its material
declare("geometry.sheet_prims",
    Row("Sheet.thickness", "physics:thicknesses", "float[]", "constant", "m", "PhysicsSurfaceDeformableSimAPI", _AOUSD,
        1e-3),
    Row("Sheet.thickness", "physics:surfaceThickness", "float", "number", "m", "PhysicsSurfaceDeformableMaterialAPI",
        _AOUSD, written=False),
    Row("Sheet.thickness", "omniphysics:surfaceThickness", "float", "number", "m",
        "OmniPhysicsSurfaceDeformableMaterialAPI", _OMNI, written=False),
    Row("Sheet.thickness", "physxDeformableSurfaceMaterial:thickness", "float", "number", "m",
        "PhysxDeformableSurfaceMaterialAPI", _OMNI, written=False),
    Row("what has a thickness", "physics:thicknesses:elementType", "token", "text", "1",
        "PhysicsSurfaceDeformableSimAPI", _AOUSD, "constant", uniform=True),
    Row("Sheet.bending", "physics:surfaceBendStiffness", "float", "number", "N m",
        "PhysicsSurfaceDeformableMaterialAPI", _AOUSD, None),
    Row("Sheet.bending", "omniphysics:surfaceBendStiffness", "float", "number", "N m",
        "OmniPhysicsSurfaceDeformableMaterialAPI", _OMNI, written=False),
)
# rigid bodies; values of kind "local" are in the frame of their prim
declare("rigid.mass_properties",
    Row("RigidBody.density", "physics:density", "float", "number", "kg/m^dim", "PhysicsMassAPI", _USD, None),
    writer="rigid.body_writer",
)
declare("rigid.body_reader",
    Row("RigidBody.color", "primvars:displayColor", "color3f[]", "color", "1", "rigid body or its shape", _USD,
        RigidBody.color),
    Row("RigidBody.friction", "warpbots:friction", "double", "number", "1", RIGID_API, OWN, RigidBody.friction),
    Row("RigidBody.points", "warpbots:contactPoints", "int", "integer", "1", RIGID_API, OWN, None),
    Row("RigidBody.surface", "warpbots:surface", "string", "text", "1", RIGID_API, OWN, None),
    writer="rigid.body_writer",
)
declare("rigid.mass_properties",
    Row("Inertia.mass", "physics:mass", "float", "number", "kg", "PhysicsMassAPI", _USD, None),
    Row("Inertia.mass", "omniphysics:mass", "float", "number", "kg", "OmniPhysicsDeformableBodyAPI", _OMNI,
        written=False),
    Row("Inertia.center", "physics:centerOfMass", "point3f", "local", "m", "PhysicsMassAPI", _USD, None),
    Row("Inertia.diagonal", "physics:diagonalInertia", "float3", "local", "kg m^2", "PhysicsMassAPI", _USD, None),
    Row("Inertia.axes", "physics:principalAxes", "quatf", "local", "1", "PhysicsMassAPI", _USD, None),
)
declare("rigid.body_reader",
    Row("velocity of a body", "physics:velocity", "vector3f", "local", "m/s", "PhysicsRigidBodyAPI", _USD, None),
    Row("angular velocity of a body", "physics:angularVelocity", "vector3f", "local", "deg/s", "PhysicsRigidBodyAPI",
        _USD, None),
    writer="rigid.body_writer",
)
# joints; {axis} is linear, angular, or an axis of a PhysicsJoint (transX, rotX, ...), angles are in degrees
declare("rigid.joint_reader",
    Row("axis of a joint", "physics:axis", "token", "text", "1", "joint", _USD, "X", uniform=True),
    Row("place at a body", "physics:localPos0", "point3f", "local", "m", "joint", _USD, None),
    Row("place at a body", "physics:localPos1", "point3f", "local", "m", "joint", _USD, None),
    Row("turn at a body", "physics:localRot0", "quatf", "local", "1", "joint", _USD, None),
    Row("turn at a body", "physics:localRot1", "quatf", "local", "1", "joint", _USD, None),
    Row("Joint.lower", "physics:lowerLimit", "float", "local", "m or deg", "joint", _USD, None),
    Row("Joint.upper", "physics:upperLimit", "float", "local", "m or deg", "joint", _USD, None),
    Row("Joint.lower", "limit:{axis}:physics:low", "float", "local", "m or deg", "PhysicsLimitAPI", _USD, None),
    Row("Joint.upper", "limit:{axis}:physics:high", "float", "local", "m or deg", "PhysicsLimitAPI", _USD, None),
    Row("motor stiffness", "drive:{axis}:physics:stiffness", "float", "local", "N/m or N m/deg", "PhysicsDriveAPI",
        _USD, None),
    Row("motor damping", "drive:{axis}:physics:damping", "float", "local", "N s/m or N m s/deg", "PhysicsDriveAPI",
        _USD, None),
    Row("motor target", "drive:{axis}:physics:targetPosition", "float", "local", "m or deg", "PhysicsDriveAPI", _USD,
        None),
    Row("motor force", "drive:{axis}:physics:maxForce", "float", "local", "N or N m", "PhysicsDriveAPI", _USD, None),
    writer="rigid.joint_writer",
)
declare("rigid.named_kinds",
    Row("Joint.kind", "warpbots:kind", "token", "text", "1", "joint", OWN, None),
    Row("chain of a joint", "warpbots:chain", "string", "text", "1", "joint", OWN, ""),
)
declare("rigid.joint_chains",
    Row("Joint.armature", "newton:armature", "float", "local", "kg or kg m^2", "joint", _NEWTON, None),
    Row("Joint.armature", "physxJoint:armature", "float", "local", "kg or kg m^2", "joint", _OMNI, None, written=False),
    Row("Joint.armature", "mjc:armature", "double", "local", "kg or kg m^2", "joint", _MUJOCO, None, written=False),
    Row("Joint.damping", "newton:damping", "float", "local", "N s/m or N m s/deg", "joint", _NEWTON, None),
    Row("Joint.damping", "mjc:damping", "double", "local", "N s/m or N m s/rad", "joint", _MUJOCO, None, written=False),
    Row("Joint.stiffness", "mjc:stiffness", "double", "local", "N/m or N m/rad", "joint", _MUJOCO, None, written=False),
    Row("Joint.limit_stiffness", "physxLimit:{axis}:stiffness", "float", "local", "N/m or N m/deg", "PhysxLimitAPI",
        _OMNI, None, written=False),
    writer="rigid.joint_writer",
)
# obstacles
declare("geometry.physics_materials",
    Row("Obstacle.friction", "physics:dynamicFriction", "float", "number", "1", "PhysicsMaterialAPI", _USD,
        Obstacle.friction),
    Row("Obstacle.friction", "omniphysics:dynamicFriction", "float", "number", "1", "OmniPhysicsDeformableMaterialAPI",
        _OMNI, written=False),
    Row("Obstacle.friction", "physxDeformableBodyMaterial:dynamicFriction", "float", "number", "1",
        "PhysxDeformableBodyMaterialAPI", _OMNI, written=False),
    Row("Obstacle.friction", "physxDeformableSurfaceMaterial:dynamicFriction", "float", "number", "1",
        "PhysxDeformableSurfaceMaterialAPI", _OMNI, written=False),
    Row("Obstacle.static_friction", "physics:staticFriction", "float", "number", "1", "PhysicsMaterialAPI", _USD, None),
    Row("Obstacle.static_friction", "omniphysics:staticFriction", "float", "number", "1",
        "OmniPhysicsDeformableMaterialAPI", _OMNI, written=False),
    Row("restitution", "physics:restitution", "float", "number", "1", "PhysicsMaterialAPI", _USD, None),
)
declare("geometry.obstacle_prims",
    Row("Obstacle.condition", "warpbots:condition", "token", "text", "1", "obstacle", OWN, Obstacle.condition),
)
# actuators, constraints, loads and attachments
declare("stage.actuators_and_loads",
    Row("region", "warpbots:region", "string", "text", "1", "what has one region", OWN),
    Row("Pressure.max_pressure", "warpbots:maxPressure", "double", "number", "Pa", "WarpbotsPressureAPI", OWN),
    Row("Expansion.max_strain", "warpbots:maxStrain", "double", "number", "1", "WarpbotsExpansionAPI", OWN),
    Row("Expansion.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsExpansionAPI", OWN, None),
    Row("Oscillation.amplitude", "warpbots:amplitude", "double", "number", "1", "WarpbotsOscillationAPI", OWN),
    Row("Oscillation.frequency", "warpbots:frequency", "double", "number", "1/s", "WarpbotsOscillationAPI", OWN),
    Row("Oscillation.phase", "warpbots:phase", "double", "number", "1", "WarpbotsOscillationAPI", OWN, 0.0),
    Row("Oscillation.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsOscillationAPI", OWN, None),
    Row("Oscillation.wave", "warpbots:wave", "double3", "vector", "1/m", "WarpbotsOscillationAPI", OWN, None),
    Row("Motor.attachment", "warpbots:attachment", "string", "text", "1", "WarpbotsMotorAPI", OWN),
    Row("Motor.rotor", "warpbots:rotor", "string", "text", "1", "WarpbotsMotorAPI", OWN),
    Row("Motor.stator", "warpbots:stator", "string", "text", "1", "WarpbotsMotorAPI", OWN),
    Row("Motor.max_torque", "warpbots:maxTorque", "double", "number", "N m", "WarpbotsMotorAPI", OWN),
    Row("Motor.max_speed", "warpbots:maxSpeed", "double", "number", "1/s", "WarpbotsMotorAPI", OWN),
    Row("Attachment.first", "warpbots:first", "string", "text", "1", "WarpbotsAttachmentAPI", OWN),
    Row("Attachment.second", "warpbots:second", "string", "text", "1", "WarpbotsAttachmentAPI", OWN),
    Row("Attachment.points", "warpbots:points", "double3[]", "points", "m", "WarpbotsAttachmentAPI", OWN),
    Row("Constraint.freedom", "warpbots:freedom", "token", "text", "1", "WarpbotsConstraintAPI", OWN, "fixed"),
    Row("Constraint.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsConstraintAPI", OWN, None),
    Row("Torque.joint", "warpbots:joint", "string", "text", "1", "WarpbotsTorqueAPI", OWN),
    Row("Torque.max_torque", "warpbots:exact:motor:maxTorque", "double", "number", "1", "WarpbotsTorqueAPI", OWN),
    Row("Torque.axis", "warpbots:axis", "int", "integer", "1", "WarpbotsTorqueAPI", OWN, Torque.axis),
    Row("Servo.joint", "warpbots:joint", "string", "text", "1", "WarpbotsServoAPI", OWN),
    Row("Servo.stiffness", "warpbots:exact:motor:stiffness", "double", "number", "1", "WarpbotsServoAPI", OWN),
    Row("Servo.damping", "warpbots:exact:motor:damping", "double", "number", "1", "WarpbotsServoAPI", OWN,
        Servo.damping),
    Row("Servo.target", "warpbots:exact:motor:target", "double", "number", "1", "WarpbotsServoAPI", OWN, Servo.target),
    Row("Servo.reach", "warpbots:exact:motor:reach", "double", "number", "1", "WarpbotsServoAPI", OWN, Servo.reach),
    Row("Servo.axis", "warpbots:axis", "int", "integer", "1", "WarpbotsServoAPI", OWN, Servo.axis),
    Row("Contact.points", "warpbots:pointsOf", "string", "text", "1", "WarpbotsContactAPI", OWN),
    Row("Contact.solid", "warpbots:solid", "string", "text", "1", "WarpbotsContactAPI", OWN),
    Row("Contact.stiffness", "warpbots:stiffness", "double", "number", "Pa/m", "WarpbotsContactAPI", OWN),
    Row("Contact.damping", "warpbots:damping", "double", "number", "Pa s/m^2", "WarpbotsContactAPI", OWN,
        Contact.damping),
    Row("Contact.friction", "warpbots:friction", "double", "number", "1", "WarpbotsContactAPI", OWN, Contact.friction),
    Row("Contact.viscosity", "warpbots:viscosity", "double", "number", "Pa s/m", "WarpbotsContactAPI", OWN,
        Contact.viscosity),
    Row("Contact.restitution", "warpbots:restitution", "double", "number", "1", "WarpbotsContactAPI", OWN, None),
    Row("Contact.impact", "warpbots:impact", "token", "text", "1", "WarpbotsContactAPI", OWN, Contact.impact),
    Row("Load.force", "warpbots:force", "double3", "vector", "N", "WarpbotsLoadAPI", OWN),
    Row("Muscle.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsMuscleAPI", OWN),
    Row("Muscle.max_stress", "warpbots:maxStress", "double", "number", "Pa", "WarpbotsMuscleAPI", OWN),
    Row("DielectricElastomer.direction", "warpbots:direction", "double3", "vector", "1",
        "WarpbotsDielectricElastomerAPI", OWN),
    Row("DielectricElastomer.max_field", "warpbots:maxField", "double", "number", "V/m",
        "WarpbotsDielectricElastomerAPI", OWN),
    Row("DielectricElastomer.relative_permittivity", "warpbots:relativePermittivity", "double", "number", "1",
        "WarpbotsDielectricElastomerAPI", OWN),
    Row("Fibre.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsFibreAPI", OWN),
    Row("Fibre.stiffness", "warpbots:stiffness", "double", "number", "Pa", "WarpbotsFibreAPI", OWN),
    Row("Fibre.max_contraction", "warpbots:maxContraction", "double", "number", "1", "WarpbotsFibreAPI", OWN),
    Row("PneumaticCell.stiffness", "warpbots:stiffness", "double", "number", "Pa", "WarpbotsPneumaticCellAPI", OWN),
    Row("PneumaticCell.max_expansion", "warpbots:maxExpansion", "double", "number", "1", "WarpbotsPneumaticCellAPI",
        OWN),
    Row("Cavity.max_pressure", "warpbots:maxPressure", "double", "number", "Pa", "WarpbotsCavityAPI", OWN, None),
    Row("Cavity.max_gas_ratio", "warpbots:maxGasRatio", "double", "number", "1", "WarpbotsCavityAPI", OWN, None),
    Row("Cavity.ambient_pressure", "warpbots:ambientPressure", "double", "number", "Pa", "WarpbotsCavityAPI", OWN,
        Cavity.ambient_pressure),
    Row("Cable.waypoints", "points", "point3f[]", "points", "m", "BasisCurves", _USD),
    Row("Cable.stiffness", "warpbots:stiffness", "double", "number", "N/m", "WarpbotsCableAPI", OWN),
    Row("Cable.rest_length", "warpbots:restLength", "double", "number", "m", "WarpbotsCableAPI", OWN, None),
)
# fmt: on
