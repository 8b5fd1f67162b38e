"""Constitutive laws as Warp functions of the deformation gradient."""

from warpbots.materials import corotated, fixed_corotated, linear, neo_hookean, st_venant_kirchhoff
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.materials.material import LAWS, elasticity, p_wave_modulus

__all__ = ["LAWS", "elasticity", "lame_lambda", "lame_mu", "p_wave_modulus"]

LAWS["neo_hookean"] = neo_hookean.law
LAWS["fixed_corotated"] = fixed_corotated.law
LAWS["corotated"] = corotated.law
LAWS["linear"] = linear.law
LAWS["st_venant_kirchhoff"] = st_venant_kirchhoff.law
