"""Shapes: where matter is. Data only; distances to them are in `warpbots.contact.distance`.

All lengths are in metres. In 2D a shape lies in the (x, y) plane with y up; in 3D z is up.
"""

from warpbots.scene.shapes.composed import Posed, Shape, Union, bars_of, dimension
from warpbots.scene.shapes.primitives import Box, Capsule, Cylinder, HalfSpace, Sphere
from warpbots.scene.shapes.sampled import DistanceGrid, Heightfield, Points, Silhouette, TriangleMesh
from warpbots.scene.shapes.truss import Truss

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "DistanceGrid",
    "HalfSpace",
    "Heightfield",
    "Points",
    "Posed",
    "Shape",
    "Silhouette",
    "Sphere",
    "TriangleMesh",
    "Truss",
    "Union",
    "bars_of",
    "dimension",
]
