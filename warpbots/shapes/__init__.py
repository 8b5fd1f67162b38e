"""Shapes of bodies and obstacles, described or read from files; signed distances are in `warpbots.contact`.

All lengths are in metres. In 2D a shape lies in the (x, y) plane with y up; in 3D z is up.
"""

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
from warpbots.shapes.files import load_mesh, load_sheet, load_silhouette, load_tetrahedra

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
    "load_mesh",
    "load_sheet",
    "load_silhouette",
    "load_tetrahedra",
    "parts_of",
    "sheets_of",
]
