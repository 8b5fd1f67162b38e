"""What is simulated: plain data in SI units, NumPy only."""

from warpbots.scene.actuators import Actuator, Cable, Expansion, Motor, Muscle, Oscillation, Pressure
from warpbots.scene.attachment import Attachment
from warpbots.scene.body import SoftBody
from warpbots.scene.hold import FREEDOMS, Constraint, Load
from warpbots.scene.material import Material
from warpbots.scene.obstacle import CONDITIONS, Obstacle, floor, walls
from warpbots.scene.record import SceneError
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
    Silhouette,
    Sphere,
    TriangleMesh,
    Truss,
    Union,
    bars_of,
    dimension,
)

__all__ = [
    "CONDITIONS",
    "FREEDOMS",
    "Actuator",
    "Attachment",
    "Box",
    "Cable",
    "Capsule",
    "Constraint",
    "Cylinder",
    "DistanceGrid",
    "Expansion",
    "HalfSpace",
    "Heightfield",
    "Load",
    "Material",
    "Motor",
    "Muscle",
    "Obstacle",
    "Oscillation",
    "Points",
    "Posed",
    "Pressure",
    "Scene",
    "SceneError",
    "Shape",
    "Silhouette",
    "SoftBody",
    "Sphere",
    "Task",
    "TriangleMesh",
    "Truss",
    "Union",
    "bars_of",
    "dimension",
    "floor",
    "walls",
]
