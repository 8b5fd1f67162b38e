"""Constitutive laws as Warp functions of the deformation gradient."""

from warpbots.materials import fixed_corotated, linear, neo_hookean, st_venant_kirchhoff
from warpbots.materials.material import LAWS, elasticity, p_wave_modulus

__all__ = ["LAWS", "elasticity", "p_wave_modulus"]

LAWS["neo_hookean"] = neo_hookean.law
LAWS["fixed_corotated"] = fixed_corotated.law
LAWS["linear"] = linear.law
LAWS["st_venant_kirchhoff"] = st_venant_kirchhoff.law
