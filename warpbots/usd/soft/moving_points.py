"""Prims of points that follow matter: particles, springs as curves, and meshes whose points are nodes."""

from typing import NamedTuple

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.quantities import PointValues
from warpbots.usd.soft.sampled_normals import CornerNormals
from warpbots.usd.stage.transforms import transform
from warpbots.usd.stage.units import StageUnits
from warpbots.usd.stage.value_colors import write_values

__all__ = ["MovingCurves", "MovingMesh", "MovingPoints", "SoftFrame"]


class SoftFrame(NamedTuple):
    """One frame of all soft matter.

    Attributes:
        position: Positions of the points of matter [m], shape (n, dim), float64.
        velocity: Velocities [m/s], shape (n, dim), float64; None to write no velocities.
        broken: 1 for a broken spring and 0 for an intact one, shape (n_springs,); None if no spring can yield or break.
        last: Whether this is the last frame.
    """

    position: np.ndarray
    velocity: np.ndarray | None
    broken: np.ndarray | None
    last: bool


class MovingPoints:
    """A prim whose points follow points of matter."""

    def __init__(self, points: UsdGeom.PointBased, follows: np.ndarray, frame: StageUnits):
        """Move a prim in lifted scene coordinates, or in coordinates of its own.

        Args:
            points: The prim.
            follows: Index of the point of matter that each point of the prim follows, shape (n_points,).
            frame: Units and axes of the stage.
        """
        self._points, self._follows, self._frame = points, follows, frame
        self._local = np.linalg.inv(frame.matrix(points.GetPrim()))
        said = points.GetPrim().GetAttribute("widths")
        self.widths = np.asarray(said.Get() if said else [0.0])
        """Widths of the points now, or one width for all [m]; 0 for a mesh."""

    @property
    def prim(self) -> Usd.Prim:
        """The prim."""
        return self._points.GetPrim()

    def write(self, code: float, now: SoftFrame) -> int:
        """Write points, extent and velocities at a time code; returns the number of bytes."""
        values = np.ascontiguousarray(self._places(now), dtype=np.float32)
        self._points.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(values), code)
        self._points.GetExtentAttr().Set(self._extent(values), code)
        if now.velocity is None:
            return values.nbytes
        rates = self._frame.lift(now.velocity[self._follows]) @ self._local[:3, :3].T
        rates = np.ascontiguousarray(rates, dtype=np.float32)
        self._points.GetVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(rates), code)
        return values.nbytes + rates.nbytes

    def write_extents(self) -> None:
        """Write the extents of all frames so far again, for the widths that the points have now."""
        places, extents = self._points.GetPointsAttr(), self._points.GetExtentAttr()
        for code in places.GetTimeSamples():
            extents.Set(self._extent(np.asarray(places.Get(code))), code)

    def write_values(self, shown: PointValues, values: np.ndarray, code: float | None = None) -> int:
        """Write `values` of all points of matter, shape (n,), as a primvar; returns the number of bytes."""
        if not shown.known[self._follows].all():
            return 0
        return write_values(self.prim, shown.name, values[self._follows], code)

    def _places(self, now: SoftFrame) -> np.ndarray:
        """Points in coordinates of the prim, shape (n_points, 3)."""
        return transform(self._local, self._frame.lift(now.position[self._follows]))

    def _extent(self, values: np.ndarray) -> Vt.Vec3fArray:
        """Bounding box of all points, enlarged by half the widths of the points, shape (2, 3)."""
        if not len(values):
            return UsdGeom.Boundable.ComputeExtentFromPlugins(self._points, Usd.TimeCode.EarliestTime())
        widths = self.widths
        radius = 0.5 * (widths[:, None] if len(widths) == len(values) else widths.max())
        return Vt.Vec3fArray.FromNumpy(np.stack([(values - radius).min(0), (values + radius).max(0)]))


class MovingMesh(MovingPoints):
    """A mesh of a file whose points are nodes of the matter; it keeps its faces."""

    def __init__(self, mesh: UsdGeom.Mesh, follows: np.ndarray, frame: StageUnits, normals: CornerNormals | None):
        """Move a mesh; the arguments are as for `MovingPoints`, and `normals` is None to write no normals."""
        super().__init__(mesh, follows, frame)
        self._normals = normals

    def write(self, code: float, now: SoftFrame) -> int:
        """Write points, extent, velocities and normals at a time code; returns the number of bytes."""
        size = super().write(code, now)
        return size if self._normals is None else size + self._normals.write(code, self._places(now), now.last)


class MovingCurves(MovingPoints):
    """Springs as curves; broken springs have no width."""

    def __init__(
        self, curves: UsdGeom.BasisCurves, follows: np.ndarray, frame: StageUnits, springs: np.ndarray, width: float
    ):
        """Move curves; `springs` is the index of the spring of each curve, `width` the width of a curve [m]."""
        super().__init__(curves, follows, frame)
        self._springs, self._width = springs, width

    def write(self, code: float, now: SoftFrame) -> int:
        """Write points, extent, velocities and widths at a time code; returns the number of bytes."""
        size = super().write(code, now)
        if now.broken is not None:
            widths = (self._width * (1.0 - now.broken[self._springs])).astype(np.float32)
            self.prim.GetAttribute("widths").Set(Vt.FloatArray.FromNumpy(widths), code)
        return size
