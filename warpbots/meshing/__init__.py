"""Tetrahedral and hexahedral meshes of shapes, for finite-element solvers."""

from warpbots.meshing.hexahedralize import hexahedra
from warpbots.meshing.quality import Quality, quality
from warpbots.meshing.tetrahedralize import repeatable, tetrahedra

__all__ = ["Quality", "hexahedra", "quality", "repeatable", "tetrahedra"]
