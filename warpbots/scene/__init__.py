"""Scenes: everything that is simulated, as plain data in SI units. This package imports only NumPy."""

from warpbots.scene.actuators import *  # noqa: F403 (all of them, so that a new one need not be named again)
from warpbots.scene.actuators import __all__ as _ACTUATORS
from warpbots.scene.attachment import Attachment
from warpbots.scene.body import SoftBody
from warpbots.scene.boundary_conditions import FREEDOMS, Constraint, Load
from warpbots.scene.constituents import FibreReinforcement, MaxwellBranch
from warpbots.scene.contact_law import Contact, contacts_between
from warpbots.scene.field import Field
from warpbots.scene.fingerprint import fingerprint
from warpbots.scene.fluid import Fluid
from warpbots.scene.joint import Joint
from warpbots.scene.joint_kinds import JOINTS, ElementaryJoint, JointKind
from warpbots.scene.joint_motors import Servo, Torque
from warpbots.scene.material import Material
from warpbots.scene.mechanism_checks import neighbours, touched_bodies, whole_bodies
from warpbots.scene.obstacle import CONDITIONS, Obstacle, floor, walls
from warpbots.scene.plasticity import CamClay, DruckerPrager, Plasticity, VonMises
from warpbots.scene.prescribed_motion import BEYOND, DRIVE_KINDS, INTERPOLATIONS, PrescribedMotion, VelocityDrive
from warpbots.scene.record import SceneError
from warpbots.scene.rigid_body import Cloud, Inertia, RigidBody, nearest_moments
from warpbots.scene.scene import Scene, Task
from warpbots.scene.shapes import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
    bars_of,
    dimension,
    parts_of,
    sheets_of,
)
from warpbots.scene.unnamed_pairs import unnamed_pairs

__all__ = [
    "BEYOND",
    "CONDITIONS",
    "DRIVE_KINDS",
    "FREEDOMS",
    "INTERPOLATIONS",
    "JOINTS",
    "ElementaryJoint",
    "JointKind",
    "Attachment",
    "Box",
    "CamClay",
    "Capsule",
    "Cloud",
    "Constraint",
    "Contact",
    "Cylinder",
    "DistanceGrid",
    "DruckerPrager",
    "FibreReinforcement",
    "Field",
    "Fluid",
    "HalfSpace",
    "Heightfield",
    "Inertia",
    "Joint",
    "Load",
    "Material",
    "MaxwellBranch",
    "Obstacle",
    "Plasticity",
    "Points",
    "Posed",
    "PrescribedMotion",
    "RigidBody",
    "Scene",
    "SceneError",
    "Servo",
    "Shape",
    "Sheet",
    "Silhouette",
    "SoftBody",
    "Sphere",
    "Task",
    "Torque",
    "TetMesh",
    "TriangleMesh",
    "Truss",
    "Union",
    "VelocityDrive",
    "VonMises",
    "bars_of",
    "contacts_between",
    "dimension",
    "fingerprint",
    "floor",
    "nearest_moments",
    "neighbours",
    "touched_bodies",
    "unnamed_pairs",
    "whole_bodies",
    "parts_of",
    "sheets_of",
    "walls",
]
__all__ += [name for name in _ACTUATORS]  # noqa: C416
