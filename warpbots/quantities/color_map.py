"""Maps from a range of values to colours."""

import dataclasses

import numpy as np

__all__ = ["ColorMap"]

_SEQUENTIAL = ((0.27, 0.00, 0.33), (0.25, 0.27, 0.53), (0.16, 0.47, 0.56), (0.21, 0.70, 0.47), (0.99, 0.91, 0.15))
"""From dark violet to yellow, with linear lightness: a few colours of matplotlib's viridis (CC0)."""

_DIVERGING = ((0.13, 0.33, 0.69), (0.92, 0.92, 0.90), (0.82, 0.29, 0.24))
"""Blue, nearly white, red."""

_DECADE = 10.0
"""Smallest ratio of the largest to the smallest value at which colours follow the logarithm of the value."""


@dataclasses.dataclass(frozen=True)
class ColorMap:
    """Map from a range of values to colours.

    Attributes:
        name: Name of the quantity.
        lower: Value of the first colour.
        upper: Value of the last colour.
        diverging: Whether the middle of the range is neutral.
        unit: Unit of the values.
        meaning: What the values are, for the label of a colour bar; "" for the name alone.
    """

    name: str
    lower: float
    upper: float
    diverging: bool = False
    unit: str = "1"
    meaning: str = ""

    @property
    def label(self) -> str:
        """Name and unit, for a colour bar."""
        return (self.meaning or self.name.replace("_", " ")) + ("" if self.unit == "1" else f" [{self.unit}]")

    @property
    def logarithmic(self) -> bool:
        """Whether colours follow the logarithm of the value."""
        return self.lower > 0.0 and self.upper >= _DECADE * self.lower

    def colors(self, values: np.ndarray) -> np.ndarray:
        """Red, green and blue in [0, 1], shape (n, 3), for `values` of shape (n,) clamped to the range of the map."""
        ends = np.array([self.lower, self.upper])
        if self.logarithmic:
            ends, values = np.log(ends), np.log(np.maximum(values, self.lower))
        table = np.array(_DIVERGING if self.diverging else _SEQUENTIAL)
        width = float(ends[1] - ends[0])
        share = (values - ends[0]) / width if width > 0.0 else np.full(len(values), 0.5)
        at = np.linspace(0.0, 1.0, len(table))
        return np.stack([np.interp(share, at, channel) for channel in table.T], axis=-1)
