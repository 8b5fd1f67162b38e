"""Values as colours that every viewer shows: one primvar holds the values, the primvar ``displayColor`` their colours.

The values are written frame by frame. Their colours are written when the range of all values is known.
"""

from collections.abc import Iterator

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpbots.quantities import ColorMap

__all__ = ["color_values", "write_values"]


def write_values(prim: Usd.Prim, name: str, values: np.ndarray, code: float | None = None) -> int:
    """Author the primvar `name` with a value for each point.

    Args:
        prim: The prim, with points.
        name: Name of the quantity.
        values: Values of the points, shape (n,).
        code: Time code; None to write default values, which USD uses at all times if the primvar has no time samples.

    Returns:
        The number of bytes.
    """
    time = Usd.TimeCode.Default() if code is None else code
    unique, index = np.unique(values.astype(np.float32), return_inverse=True)
    primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar(
        name, Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex
    )  # fmt: skip
    primvar.Set(Vt.FloatArray.FromNumpy(unique), time)
    primvar.SetIndices(Vt.IntArray.FromNumpy(index.astype(np.int32)), time)
    return unique.nbytes + 4 * len(index)


def color_values(prim: Usd.Prim, color_map: ColorMap) -> Iterator[int]:
    """Author ``primvars:displayColor`` for the primvar of `write_values`: its default value and all time samples.

    The custom data of the attribute ``primvars:displayColor`` hold the range of values of the colours.

    Args:
        prim: The prim.
        color_map: Map from the values to colours, and the name of the quantity.

    Yields:
        The number of bytes of each value that has been written.
    """
    primvars = UsdGeom.PrimvarsAPI(prim)
    values = primvars.GetPrimvar(color_map.name)
    shown = primvars.CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, UsdGeom.Tokens.vertex)
    shown.GetAttr().SetCustomDataByKey(
        "warpbots",
        {"name": color_map.name, "lower": color_map.lower, "upper": color_map.upper,
         "logarithmic": color_map.logarithmic},
    )  # fmt: skip
    for time in (Usd.TimeCode.Default(), *values.GetTimeSamples()):
        colors = color_map.colors(np.asarray(values.Get(time), dtype=float)).astype(np.float32)
        indices = values.GetIndices(time)
        shown.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(colors)), time)
        shown.SetIndices(indices, time)
        yield colors.nbytes + 4 * len(indices)
