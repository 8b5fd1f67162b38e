"""Particles below a surface, which are visible where the surface is torn."""

from collections.abc import Callable

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.quantities import PointValues
from warpbots.usd.soft.moving_points import MovingPoints, SoftFrame
from warpbots.usd.soft.moving_surfaces import MovingSurface
from warpbots.usd.stage.units import StageUnits

__all__ = ["UncoveredPoints"]


class UncoveredPoints:
    """The particles of a body with a surface: guides for as long as the surface covers them all.

    From the moment on in which the surface tears, particles are drawn, and those that it covers have no width.
    """

    def __init__(
        self,
        define: Callable[[np.ndarray], UsdGeom.Points],
        surface: MovingSurface,
        follows: np.ndarray,
        frame: StageUnits,
        always: bool,
    ):
        """Define the prim, if it is wanted in any case.

        Args:
            define: Defines the prim of the points of matter with the given indices.
            surface: The surface, each frame of which is written before the one of the points.
            follows: Indices of the points of matter of the body, shape (n,).
            frame: Units and axes of the stage.
            always: Whether to write the particles of a body that does not tear.
        """
        self._define, self._surface, self._follows, self._frame = define, surface, follows, frame
        self._points: MovingPoints | None = None
        self._codes: list[float] = []  # time codes of the first and of the previous frame
        self._drawn = False
        if always:
            UsdGeom.Imageable(self._begin().prim).CreatePurposeAttr(UsdGeom.Tokens.guide)

    @property
    def prim(self) -> Usd.Prim | None:
        """The prim; None before it is defined."""
        return None if self._points is None else self._points.prim

    def write(self, code: float, now: SoftFrame) -> int:
        """Write the frame `now` at a time code; returns the number of bytes."""
        bare = self._surface.bare
        if bare is not None and not self._drawn:
            self._draw()
        self._codes = [self._codes[0] if self._codes else code, code]
        if self._points is None:
            return 0
        size = 0
        if self._drawn:
            self._points.widths = self._wide * (0.0 if bare is None else bare)
            size = self._write_widths(self._points.widths, code)
        return size + self._points.write(code, now)

    def write_values(self, shown: PointValues, values: np.ndarray, code: float | None = None) -> int:
        """Write `values` of all points of matter, shape (n,), as a primvar; returns the number of bytes."""
        return 0 if self._points is None else self._points.write_values(shown, values, code)

    def _begin(self) -> MovingPoints:
        points = self._define(self._follows)
        self._points = MovingPoints(points, self._follows, self._frame)
        self._wide = np.asarray(self._points.widths, dtype=np.float32)
        return self._points

    def _draw(self) -> None:
        points = self._points or self._begin()
        UsdGeom.Imageable(points.prim).CreatePurposeAttr(UsdGeom.Tokens.default_)
        self._drawn = True
        for code in dict.fromkeys(self._codes):  # the surface covered all of them until now
            self._write_widths(0.0 * self._wide, code)
        points.widths = 0.0 * self._wide
        points.write_extents()

    def _write_widths(self, widths: np.ndarray, code: float) -> int:
        widths = np.ascontiguousarray(widths, dtype=np.float32)
        self.prim.GetAttribute("widths").Set(Vt.FloatArray.FromNumpy(widths), code)
        return widths.nbytes
