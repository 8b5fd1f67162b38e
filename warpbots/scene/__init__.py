"""What is simulated: plain data in SI units, NumPy only."""

from warpbots.scene.actuators import Actuator, Cable, Muscle, Pressure
from warpbots.scene.body import SoftBody
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
    Union,
    dimension,
)

__all__ = [
    "CONDITIONS",
    "Actuator",
    "Box",
    "Cable",
    "Capsule",
    "Cylinder",
    "DistanceGrid",
    "HalfSpace",
    "Heightfield",
    "Material",
    "Muscle",
    "Obstacle",
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
    "Union",
    "dimension",
    "floor",
    "walls",
]
