"""Writes values as colours that every viewer shows: one primvar holds the colours, a second primvar the values."""

import dataclasses

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

__all__ = ["ColorMap", "write_colors"]

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
        name: Name of the quantity and of its primvar.
        lower: Value of the first colour.
        upper: Value of the last colour.
        diverging: Whether the middle of the range is neutral.
    """

    name: str
    lower: float
    upper: float
    diverging: bool = False

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


def write_colors(prim: Usd.Prim, color_map: ColorMap, values: np.ndarray, code: float | None = None) -> int:
    """Author ``primvars:displayColor`` and the primvar of the values, one for each point.

    The custom data of the attribute ``primvars:displayColor`` hold the range of values of the colours.

    Args:
        prim: The prim, with points.
        color_map: Map from the values to colours, and the name of the quantity.
        values: Values of the points, shape (n,).
        code: Time code; None to write default values, which USD uses at all times if the primvars have no time samples.

    Returns:
        The number of bytes.
    """
    primvars, time = UsdGeom.PrimvarsAPI(prim), Usd.TimeCode.Default() if code is None else code
    unique, index = np.unique(values.astype(np.float32), return_inverse=True)
    colors = np.ascontiguousarray(color_map.colors(unique.astype(float)), dtype=np.float32)
    indices = Vt.IntArray.FromNumpy(index.astype(np.int32))
    for name, kind, array in (
        ("displayColor", Sdf.ValueTypeNames.Color3fArray, Vt.Vec3fArray.FromNumpy(colors)),
        (color_map.name, Sdf.ValueTypeNames.FloatArray, Vt.FloatArray.FromNumpy(unique)),
    ):
        primvar = primvars.CreatePrimvar(name, kind, UsdGeom.Tokens.vertex)
        primvar.Set(array, time)
        primvar.SetIndices(indices, time)
    shown = {"name": color_map.name, "lower": color_map.lower, "upper": color_map.upper,
             "logarithmic": color_map.logarithmic}  # fmt: skip
    primvars.GetPrimvar("displayColor").GetAttr().SetCustomDataByKey("warpbots", shown)
    return unique.nbytes + colors.nbytes + 8 * len(index)
