"""The values that the colours of a motion show: written frame by frame, coloured when their range is known."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from pxr import Usd

from warpbots.quantities import PointValues
from warpbots.usd.geometry.looks import show_colors
from warpbots.usd.stage.value_colors import color_values

__all__ = ["ShownValues"]


class _Colored(Protocol):
    """Moving geometry that can carry values; its prim is None if nothing of it is written."""

    @property
    def prim(self) -> Usd.Prim | None: ...

    def write_values(self, shown: PointValues, values: np.ndarray, code: float | None = None) -> int: ...


class ShownValues:
    """Writes a quantity of matter on prims.

    The range of stress and strain is known only after the last frame. The file holds the values of all frames by then,
    so that colours follow from the file, without a second simulation and without all frames in memory.
    """

    def __init__(self, shown: PointValues):
        """Begin without a prim.

        Args:
            shown: The quantity.
        """
        self._shown = shown
        self._moving: list[tuple[_Colored, float]] = []
        self._written: set[int] = set()  # indices in `_moving` of all that carry values
        self._highest: np.ndarray | None = None

    def add(self, moving: _Colored, roughness: float) -> None:
        """Show the values on `moving` too, whose surface has the given roughness."""
        self._moving.append((moving, roughness))

    def at(self, time: float, state: Any) -> np.ndarray:
        """Values of all points at a time [s], shape (n,)."""
        return self._shown.at(time, state)

    def write(self, code: float, values: np.ndarray) -> int:
        """Write the values of a frame; returns the number of bytes."""
        self._highest = values if self._highest is None else np.maximum(self._highest, values)
        size = 0
        for k, (moving, _) in enumerate(self._moving):
            if k not in self._written:
                written = moving.write_values(self._shown, values)  # defaults, which validators ask for, too
                if not written:
                    continue
                self._written.add(k)
                size += written
            if self._shown.changes:
                size += moving.write_values(self._shown, values, code)
        return size

    def complete(self) -> Iterator[int]:
        """Write the colours of all frames; yields the number of bytes after each value."""
        color_map = self._shown.spanning([self._highest]).color_map
        for k in sorted(self._written):
            moving, roughness = self._moving[k]
            show_colors(moving.prim, roughness)
            yield from color_values(moving.prim, color_map)
