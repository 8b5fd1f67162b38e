"""Writes values as colours that every viewer shows: one primvar holds the colours, a second primvar the values."""

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpbots.quantities import ColorMap

__all__ = ["write_colors"]


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
