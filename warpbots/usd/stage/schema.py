"""The one table of everything that warpbots reads from and writes to USD attributes.

Standard names come first, for other programs: UsdPhysics and UsdGeom of OpenUSD, the codeless schemas of
newton-usd-schemas, and the deformable schema that AOUSD has proposed but not released. Names that start with
``warpbots:`` exist only for what has no standard attribute. All values are in units of the stage, except those that
start with ``warpbots:exact:`` (see `warpbots.usd.stage.attributes`), which are in SI units and in scene axes.
"""

from typing import Any, NamedTuple

from warpbots.scene import (
    Attachment,
    Box,
    Cable,
    CamClay,
    Capsule,
    Cavity,
    Constraint,
    Contact,
    Cylinder,
    DistanceGrid,
    DruckerPrager,
    Expansion,
    Fibre,
    Fluid,
    HalfSpace,
    Heightfield,
    Load,
    Material,
    Motor,
    Muscle,
    Obstacle,
    Oscillation,
    PneumaticCell,
    Points,
    Posed,
    Pressure,
    RigidBody,
    Servo,
    Sheet,
    Silhouette,
    SoftBody,
    Sphere,
    Task,
    TetMesh,
    Torque,
    TriangleMesh,
    Truss,
    Union,
    VonMises,
)

__all__ = [
    "AOUSD_COMMIT",
    "BODY_APIS",
    "EXACT",
    "FIELD_API",
    "FIELD_ARRAYS",
    "GEOMETRY_TYPES",
    "MATERIAL_APIS",
    "MOTION_API",
    "OBSTACLE_API",
    "OWN",
    "PART_APIS",
    "PLASTICITY",
    "POINTS_API",
    "JOINT_FIELDS",
    "REGION_API",
    "REST_POSE",
    "ROD_API",
    "RESULT_API",
    "RIGID_API",
    "RIGID_FIELDS",
    "SCENE_APIS",
    "SCHEMA_VERSION",
    "SHAPES",
    "SHAPE_FIELDS",
    "SIM_APIS",
    "SURFACE_APIS",
    "SURFACE_MATERIAL_API",
    "TABLE",
    "UNSUPPORTED_APIS",
    "VOLUME_API",
    "Row",
    "rows",
]

SCHEMA_VERSION = 1
"""Version of this table; files with a later version are refused."""

AOUSD_COMMIT = "63c74d79"
"""Commit of the AOUSD proposal (OpenUSD-proposals, pull request 111) whose names the rows of origin "AOUSD" use."""

EXACT = "warpbots:exact:"
"""Prefix of attributes that hold a value to the last bit, in SI units and scene axes."""


class Row(NamedTuple):
    """One attribute.

    Attributes:
        sets: What it sets: a field of a class of `warpbots.scene`, or a description of something else.
        name: Name of the USD attribute.
        type: Its USD type.
        kind: How the value is converted: "number" by its unit; "integer", "text", "color" and "table" (pairs of
            numbers) not at all; "numbers" as an array, "constant" as an array of one number; "vector" by the rotation
            of its prim, "vectors" as an array of such; "points" by the transform of its prim; "local" where it is read.
        unit: Unit of the value, a key of `warpbots.usd.stage.units.UNITS`.
        prim: The prim or the applied schema that carries it.
        origin: Where the name is from.
        default: Value if nothing is authored; `...` if there is no default.
        written: Whether the writer authors it, too.
        uniform: Whether it is uniform (not animated) by its schema; our own attributes all are.
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


OWN = "warpbots"
"""Origin of names that exist only in warpbots."""

_USD, _AOUSD, _NEWTON, _OMNI = "OpenUSD", f"AOUSD {AOUSD_COMMIT}", "newton-usd-schemas 0.6", "Omniverse"
_MUJOCO = "mujoco-usd-converter"
RIGID_API = "WarpbotsRigidBodyAPI"
"""Applied schema of a rigid body of ours, which has its own contact points."""

_SCENE, _MATERIAL = "PhysicsScene", "Material"

# fmt: off
TABLE = (
    # the physics scene
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
    # materials: the first authored row is used
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
    # bodies
    Row("order", "warpbots:order", "int", "integer", "1", "body, obstacle or actuator", OWN, None),
    Row("SoftBody.velocity", "warpbots:velocity", "double3", "vector", "m/s", "PhysicsDeformableBodyAPI", OWN, None),
    Row("SoftBody.friction", "warpbots:friction", "double", "number", "1", "PhysicsDeformableBodyAPI", OWN,
        SoftBody.friction),
    Row("SoftBody.color", "primvars:displayColor", "color3f[]", "color", "1", "body or its shape", _USD,
        SoftBody.color),
    Row("shape", "warpbots:shape", "token", "text", "1", "every shape", OWN, None),
    # sheets; the thickness is that of the geometry or, in older files, of its material
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
    # rigid bodies; what is local is in the frame of its prim
    Row("RigidBody.density", "physics:density", "float", "number", "kg/m^dim", "PhysicsMassAPI", _USD, None),
    Row("RigidBody.color", "primvars:displayColor", "color3f[]", "color", "1", "body or its shape", _USD,
        RigidBody.color),
    Row("RigidBody.friction", "warpbots:friction", "double", "number", "1", RIGID_API, OWN, RigidBody.friction),
    Row("RigidBody.points", "warpbots:contactPoints", "int", "integer", "1", RIGID_API, OWN, None),
    Row("RigidBody.surface", "warpbots:surface", "string", "text", "1", RIGID_API, OWN, None),
    Row("Inertia.mass", "physics:mass", "float", "number", "kg", "PhysicsMassAPI", _USD, None),
    Row("Inertia.mass", "omniphysics:mass", "float", "number", "kg", "OmniPhysicsDeformableBodyAPI", _OMNI,
        written=False),
    Row("Inertia.center", "physics:centerOfMass", "point3f", "local", "m", "PhysicsMassAPI", _USD, None),
    Row("Inertia.diagonal", "physics:diagonalInertia", "float3", "local", "kg m^2", "PhysicsMassAPI", _USD, None),
    Row("Inertia.axes", "physics:principalAxes", "quatf", "local", "1", "PhysicsMassAPI", _USD, None),
    Row("velocity of a body", "physics:velocity", "vector3f", "local", "m/s", "PhysicsRigidBodyAPI", _USD, None),
    Row("angular velocity of a body", "physics:angularVelocity", "vector3f", "local", "deg/s", "PhysicsRigidBodyAPI",
        _USD, None),
    # joints; {axis} is linear, angular, or an axis of a PhysicsJoint (transX, rotX, ...), angles are in degrees
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
    Row("Joint.armature", "newton:armature", "float", "local", "kg or kg m^2", "joint", _NEWTON, None),
    Row("Joint.armature", "physxJoint:armature", "float", "local", "kg or kg m^2", "joint", _OMNI, None,
        written=False),
    Row("Joint.armature", "mjc:armature", "double", "local", "kg or kg m^2", "joint", _MUJOCO, None, written=False),
    Row("Joint.damping", "newton:damping", "float", "local", "N s/m or N m s/deg", "joint", _NEWTON, None),
    Row("Joint.damping", "mjc:damping", "double", "local", "N s/m or N m s/rad", "joint", _MUJOCO, None,
        written=False),
    Row("Joint.stiffness", "mjc:stiffness", "double", "local", "N/m or N m/rad", "joint", _MUJOCO, None,
        written=False),
    Row("Joint.limit_stiffness", "physxLimit:{axis}:stiffness", "float", "local", "N/m or N m/deg", "PhysxLimitAPI",
        _OMNI, None, written=False),
    # obstacles
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
    Row("Obstacle.condition", "warpbots:condition", "token", "text", "1", "obstacle", OWN, Obstacle.condition),
    # actuators, constraints, loads and attachments
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
    Row("Contact.friction", "warpbots:friction", "double", "number", "1", "WarpbotsContactAPI", OWN,
        Contact.friction),
    Row("Contact.viscosity", "warpbots:viscosity", "double", "number", "Pa s/m", "WarpbotsContactAPI", OWN,
        Contact.viscosity),
    Row("Contact.restitution", "warpbots:restitution", "double", "number", "1", "WarpbotsContactAPI", OWN, None),
    Row("Contact.impact", "warpbots:impact", "token", "text", "1", "WarpbotsContactAPI", OWN, Contact.impact),
    Row("Load.force", "warpbots:force", "double3", "vector", "N", "WarpbotsLoadAPI", OWN),
    Row("Muscle.direction", "warpbots:direction", "double3", "vector", "1", "WarpbotsMuscleAPI", OWN),
    Row("Muscle.max_stress", "warpbots:maxStress", "double", "number", "Pa", "WarpbotsMuscleAPI", OWN),
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

SHAPE_FIELDS = {
    Box: {"lower": "vector", "upper": "vector"},
    Sphere: {"center": "vector", "radius": "number"},
    Capsule: {"start": "vector", "end": "vector", "radius": "number"},
    Cylinder: {"start": "vector", "end": "vector", "radius": "number"},
    HalfSpace: {"point": "vector", "normal": "vector"},
    Heightfield: {"origin": "vector", "spacing": "number", "heights": "grid"},
    Silhouette: {"mask": "rows", "lower": "vector", "pixel": "number"},
    TriangleMesh: {"vertices": "points", "faces": "indices"},
    Points: {"positions": "points", "volumes": "vector"},
    DistanceGrid: {"values": "grid", "lower": "vector", "spacing": "number"},
    Truss: {"joints": "points", "bars": "indices", "radius": "vector"},
    TetMesh: {"vertices": "points", "tets": "indices"},
    Sheet: {"vertices": "points", "faces": "indices", "thickness": "number", "bending": "number"},
    Posed: {"translation": "vector", "rotation": "grid"},
    Union: {},
}
"""Fields of each shape; field f is stored in ``warpbots:exact:f`` if the geometry of the prim does not give it."""

SHAPES = {cls.__name__: cls for cls in SHAPE_FIELDS}
"""Values of the attribute ``warpbots:shape``."""

GEOMETRY_TYPES = (
    "Cube", "Sphere", "Capsule", "Capsule_1", "Cylinder", "Cylinder_1", "Cone", "Plane", "Mesh", "TetMesh", "Points",
    "BasisCurves",
)  # fmt: skip
"""USD types of the prims that are read as shapes."""

BODY_APIS = (
    "PhysicsDeformableBodyAPI", "OmniPhysicsDeformableBodyAPI", "PhysxDeformableBodyAPI", "PhysxDeformableSurfaceAPI",
)  # fmt: skip
"""Applied schemas that mark a soft body; the first is written."""

POINTS_API = "NewtonPointsDeformableSimAPI"
VOLUME_API = "PhysicsVolumeDeformableSimAPI"
SURFACE_APIS = (
    "PhysicsSurfaceDeformableSimAPI", "OmniPhysicsSurfaceDeformableSimAPI", "PhysxDeformableSurfaceAPI",
)  # fmt: skip
"""Applied schemas that mark a mesh as a sheet instead of a solid; the first is written."""

SIM_APIS = (VOLUME_API, "OmniPhysicsVolumeDeformableSimAPI", POINTS_API, *SURFACE_APIS)
"""Applied schemas that mark the simulated geometry of a body that has several."""

ROD_API = "PhysicsCurvesDeformableSimAPI"
"""Applied schema of curves that are rods, which warpbots does not support."""

SURFACE_MATERIAL_API = "PhysicsSurfaceDeformableMaterialAPI"
MATERIAL_APIS = ("PhysicsMaterialAPI", "NewtonMPMMaterialAPI", "PhysicsVolumeDeformableMaterialAPI")
PLASTICITY = {"VonMises": VonMises, "DruckerPrager": DruckerPrager, "CamClay": CamClay}
"""Kinds of plasticity by what ``warpbots:plasticity`` calls them."""

SCENE_APIS = ("NewtonSceneAPI", "NewtonMPMSceneAPI")
REGION_API = "WarpbotsRegionAPI"
OBSTACLE_API = "WarpbotsObstacleAPI"
RESULT_API = "WarpbotsResultAPI"
MOTION_API = "WarpbotsMotionAPI"
"""Applied schema of prims whose motion is in the file; rigid ones are kinematic for players, but not when read."""

FIELD_API = "WarpbotsFieldAPI"
FIELD_ARRAYS = ("values", "places", "recorded")
"""Fields of a `Field`, stored in ``warpbots:exact:<field>``, with their shape in ``...:size`` unless it is (n,)."""

PART_APIS = {
    "WarpbotsPressureAPI": Pressure,
    "WarpbotsMuscleAPI": Muscle,
    "WarpbotsFibreAPI": Fibre,
    "WarpbotsPneumaticCellAPI": PneumaticCell,
    "WarpbotsCavityAPI": Cavity,
    "WarpbotsCableAPI": Cable,
    "WarpbotsExpansionAPI": Expansion,
    "WarpbotsOscillationAPI": Oscillation,
    "WarpbotsMotorAPI": Motor,
    "WarpbotsAttachmentAPI": Attachment,
    "WarpbotsConstraintAPI": Constraint,
    "WarpbotsLoadAPI": Load,
    "WarpbotsTorqueAPI": Torque,
    "WarpbotsServoAPI": Servo,
    "WarpbotsContactAPI": Contact,
}
"""Applied schemas of actuators, constraints, loads, attachments and laws of contact."""

REST_POSE = "pose"
"""Pose of a rigid body in the file of its scene, stored in ``warpbots:exact:pose`` beside the frames of a motion."""

RIGID_FIELDS = ("position", "rotation", "center", "moments", "cloud:positions", "cloud:areas")
"""Fields of a rigid body stored in ``warpbots:exact:<field>`` if the standard attributes do not give them."""

JOINT_FIELDS = (
    "position", "rotation", "axis", "start", "start_velocity", "stiffness", "neutral", "damping", "armature", "lower",
    "upper", "limit_stiffness", "limit_damping",
)  # fmt: skip
"""Fields of a joint stored in ``warpbots:exact:<field>`` if the standard attributes do not give them."""

UNSUPPORTED_APIS = {
    "PhysicsRigidBodyAPI": "a rigid body that is also marked as a soft body; remove one of the two schemas",
    "PhysicsArticulationRootAPI": "an articulation of rigid bodies",
    "PhysicsFilteredPairsAPI": "a collision filter; soft bodies ignore it",
}
"""Applied schemas of physics that warpbots does not simulate, and their descriptions."""


def rows(sets: str) -> tuple[Row, ...]:
    """The rows that set `sets`, in the order in which they are read."""
    return _ROWS[sets]


_ROWS: dict[str, tuple[Row, ...]] = {}
for _row in TABLE:
    _ROWS[_row.sets] = (*_ROWS.get(_row.sets, ()), _row)
