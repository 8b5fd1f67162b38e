"""Looks: materials of type UsdPreviewSurface, which Omniverse, usdview and Blender draw."""

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

from warpbots.materials import FLUIDS
from warpbots.scene import CamClay, DruckerPrager, Material, VonMises
from warpbots.usd.stage.attributes import apply

__all__ = [
    "GROUND", "GROUND_ROUGHNESS", "RIGID_ROUGHNESS", "ensure_look", "roughness_of", "show_colors",
    "update_look", "write_look",
]  # fmt: skip

GROUND = (0.74, 0.72, 0.69)
"""Colour of obstacles, darker than white so that light cannot blot them out."""
GROUND_ROUGHNESS = 0.85
"""Roughness of obstacles."""
RIGID_ROUGHNESS = 0.35
"""Roughness of rigid bodies."""

_WET, _RUBBER, _CLAY, _GRAINS = 0.1, 0.5, 0.75, 0.95
"""Roughness of fluids, of elastic matter, of matter that yields like clay, and of grains."""


def roughness_of(material: Material) -> float:
    """Roughness of the surface of a material in [0, 1], by what it is: a fluid, rubber, clay or grains."""
    if material.law in FLUIDS:
        return _WET
    if isinstance(material.plasticity, CamClay | DruckerPrager):
        return _GRAINS
    return _CLAY if isinstance(material.plasticity, VonMises) else _RUBBER


def write_look(prim: Usd.Prim, color: tuple[float, float, float], roughness: float) -> None:
    """Define or update the look of `prim` as its child ``Look``, and bind it to `prim` for all purposes.

    Args:
        prim: A body or an obstacle.
        color: Red, green and blue in [0, 1] as pictures show them (sRGB); the shader gets the linear values.
        roughness: Roughness in [0, 1].
    """
    material, shader = _material(prim, "Look", roughness)
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*_linear(color)))
    _bind(prim, material)


def update_look(prim: Usd.Prim, color: tuple[float, float, float], roughness: float) -> None:
    """Write the look of `prim`, unless another program has bound a material to it for all purposes."""
    bound = UsdShade.MaterialBindingAPI(prim).GetDirectBinding().GetMaterialPath()
    if bound.isEmpty or bound == prim.GetPath().AppendChild("Look"):
        write_look(prim, color, roughness)


def ensure_look(prim: Usd.Prim, color: tuple[float, float, float], roughness: float) -> None:
    """Write the look of `prim`, unless a material is bound to it for all purposes."""
    bound, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    if not bound:
        write_look(prim, color, roughness)


def show_colors(prim: Usd.Prim, roughness: float) -> None:
    """Bind a look to the geometry `prim` whose colour is ``primvars:displayColor`` at each point."""
    material, shader = _material(prim, "Colors", roughness)
    reader = UsdShade.Shader.Define(prim.GetStage(), material.GetPath().AppendChild("Reader"))
    reader.CreateIdAttr("UsdPrimvarReader_float3")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(str(UsdGeom.Tokens.primvarsDisplayColor).split(":")[1])
    result = reader.CreateOutput("result", Sdf.ValueTypeNames.Float3)
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).ConnectToSource(result)
    _bind(prim, material)


def _material(prim: Usd.Prim, name: str, roughness: float) -> tuple[UsdShade.Material, UsdShade.Shader]:
    material = UsdShade.Material.Define(prim.GetStage(), prim.GetPath().AppendChild(name))
    shader = UsdShade.Shader.Define(prim.GetStage(), material.GetPath().AppendChild("Shader"))
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(roughness)
    material.CreateSurfaceOutput().ConnectToSource(shader.CreateOutput("surface", Sdf.ValueTypeNames.Token))
    return material, shader


def _bind(prim: Usd.Prim, material: UsdShade.Material) -> None:
    apply(prim, "MaterialBindingAPI")
    UsdShade.MaterialBindingAPI(prim).Bind(material)


def _linear(color: tuple[float, float, float]) -> list[float]:
    c = np.asarray(color, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).tolist()
