"""Names of applied schemas and of prim types, and what each of them marks."""

from warpbots.scene import CamClay, DruckerPrager, VonMises

__all__ = [
    "BODY_APIS",
    "FIELD_API",
    "GEOMETRY_TYPES",
    "MATERIAL_APIS",
    "MOTION_API",
    "OBSTACLE_API",
    "PLASTICITY",
    "POINTS_API",
    "REGION_API",
    "RESULT_API",
    "RIGID_API",
    "ROD_API",
    "SCENE_APIS",
    "SIM_APIS",
    "SURFACE_APIS",
    "SURFACE_MATERIAL_API",
    "SURFACE_VELOCITY_API",
    "UNSUPPORTED_APIS",
    "VOLUME_API",
]

RIGID_API = "WarpbotsRigidBodyAPI"
"""Applied schema of a rigid body written by warpbots, which has its own contact points."""

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
"""Applied schemas that mark which geometry of a body with several geometries is simulated."""

ROD_API = "PhysicsCurvesDeformableSimAPI"
"""Applied schema of curves that are rods, which warpbots does not support."""

SURFACE_MATERIAL_API = "PhysicsSurfaceDeformableMaterialAPI"

SURFACE_VELOCITY_API = "PhysxSurfaceVelocityAPI"
"""Applied schema of a rigid body whose surface moves like the belt of a conveyor."""

MATERIAL_APIS = ("PhysicsMaterialAPI", "NewtonMPMMaterialAPI", "PhysicsVolumeDeformableMaterialAPI")

PLASTICITY = {"VonMises": VonMises, "DruckerPrager": DruckerPrager, "CamClay": CamClay}
"""Kinds of plasticity by their names in ``warpbots:plasticity``."""

SCENE_APIS = ("NewtonSceneAPI", "NewtonMPMSceneAPI")

REGION_API = "WarpbotsRegionAPI"

OBSTACLE_API = "WarpbotsObstacleAPI"

RESULT_API = "WarpbotsResultAPI"

MOTION_API = "WarpbotsMotionAPI"
"""Applied schema of prims whose motion is in the file; rigid bodies are kinematic for players, but read as moving."""

FIELD_API = "WarpbotsFieldAPI"

UNSUPPORTED_APIS = {
    "PhysicsRigidBodyAPI": "a rigid body that is also marked as a soft body; remove one of the two schemas",
    "PhysicsArticulationRootAPI": "an articulation of rigid bodies",
    "PhysicsFilteredPairsAPI": "a collision filter; soft bodies ignore it",
}
"""Applied schemas of physics that warpbots does not simulate, and their descriptions."""
