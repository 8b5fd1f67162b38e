"""Tetrahedral meshes of shapes, for finite-element solvers."""

from warpbots.meshing.quality import Quality, quality
from warpbots.meshing.tetrahedralize import tetrahedra

__all__ = ["Quality", "quality", "tetrahedra"]
