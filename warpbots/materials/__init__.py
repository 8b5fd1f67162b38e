"""Constitutive laws and return mappings as Warp functions of the deformation gradient."""

from warpbots.materials import corotated, fixed_corotated, hencky, linear, neo_hookean, st_venant_kirchhoff
from warpbots.materials.differential import DIFFERENTIALS, differential
from warpbots.materials.drucker_prager import drucker_prager
from warpbots.materials.elasticity import LAWS, elasticity, p_wave_modulus
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.materials.viscosity import viscous_stress
from warpbots.materials.von_mises import von_mises

__all__ = [
    "DIFFERENTIALS",
    "LAWS",
    "differential",
    "drucker_prager",
    "elasticity",
    "lame_lambda",
    "lame_mu",
    "p_wave_modulus",
    "viscous_stress",
    "von_mises",
]

LAWS["neo_hookean"] = neo_hookean.law
LAWS["fixed_corotated"] = fixed_corotated.law
LAWS["corotated"] = corotated.law
LAWS["linear"] = linear.law
LAWS["st_venant_kirchhoff"] = st_venant_kirchhoff.law
LAWS["hencky"] = hencky.law

DIFFERENTIALS[neo_hookean.law] = neo_hookean.differential
DIFFERENTIALS[fixed_corotated.law] = fixed_corotated.differential
DIFFERENTIALS[corotated.law] = corotated.differential
DIFFERENTIALS[linear.law] = linear.differential
DIFFERENTIALS[st_venant_kirchhoff.law] = st_venant_kirchhoff.differential
DIFFERENTIALS[hencky.law] = hencky.differential
