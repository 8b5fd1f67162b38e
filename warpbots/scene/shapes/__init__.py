"""Shapes of bodies and obstacles, as data only; `warpbots.contact.distance` computes signed distances.

All lengths are in metres. In 2D a shape lies in the (x, y) plane with y up; in 3D z is up.
"""

from warpbots.scene.shapes.composed import Posed, Shape, Union, bars_of, dimension, parts_of, sheets_of
from warpbots.scene.shapes.primitives import Box, Capsule, Cylinder, HalfSpace, Sphere
from warpbots.scene.shapes.sampled import DistanceGrid, Heightfield, Points, Silhouette, TriangleMesh
from warpbots.scene.shapes.sheet import Sheet
from warpbots.scene.shapes.tet_mesh import TetMesh
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
    "Sheet",
    "Silhouette",
    "Sphere",
    "TetMesh",
    "TriangleMesh",
    "Truss",
    "Union",
    "bars_of",
    "dimension",
    "parts_of",
    "sheets_of",
]
