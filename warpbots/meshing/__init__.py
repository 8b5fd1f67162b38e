"""Tetrahedral meshes of shapes, for finite-element solvers."""

from warpbots.meshing.quality import Quality, quality
from warpbots.meshing.tetrahedralize import repeatable, tetrahedra

__all__ = ["Quality", "quality", "repeatable", "tetrahedra"]
