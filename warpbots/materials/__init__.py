"""Constitutive laws and return mappings: as descriptions in a `Material`, and as Warp functions that solvers call."""

from warpbots.materials import (
    corotated,
    fixed_corotated,
    hencky,
    linear,
    neo_hookean,
    st_venant_kirchhoff,
    weakly_compressible,
)
from warpbots.materials.cam_clay import cam_clay
from warpbots.materials.differential import differential
from warpbots.materials.drucker_prager import drucker_prager
from warpbots.materials.elasticity import DIFFERENTIALS, FLUIDS, LAWS, Law, elasticity, law_of, p_wave_modulus
from warpbots.materials.fibre_reinforcement import fibre_reinforcement
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.materials.maxwell import maxwell, maxwell_step
from warpbots.materials.viscosity import viscous_stress
from warpbots.materials.von_mises import von_mises
from warpbots.materials.weakly_compressible import without_shear
from warpbots.scene import CamClay, DruckerPrager, FibreReinforcement, MaxwellBranch, VonMises

__all__ = [
    "VonMises",
    "DruckerPrager",
    "CamClay",
    "MaxwellBranch",
    "FibreReinforcement",
    "DIFFERENTIALS",
    "FLUIDS",
    "LAWS",
    "Law",
    "cam_clay",
    "differential",
    "drucker_prager",
    "elasticity",
    "fibre_reinforcement",
    "lame_lambda",
    "lame_mu",
    "law_of",
    "maxwell",
    "maxwell_step",
    "p_wave_modulus",
    "viscous_stress",
    "von_mises",
    "without_shear",
]

LAWS["neo_hookean"] = neo_hookean.law
LAWS["fixed_corotated"] = fixed_corotated.law
LAWS["corotated"] = corotated.law
LAWS["linear"] = linear.law
LAWS["st_venant_kirchhoff"] = st_venant_kirchhoff.law
LAWS["hencky"] = hencky.law
LAWS["weakly_compressible"] = weakly_compressible.law

DIFFERENTIALS[neo_hookean.law] = neo_hookean.differential
DIFFERENTIALS[fixed_corotated.law] = fixed_corotated.differential
DIFFERENTIALS[corotated.law] = corotated.differential
DIFFERENTIALS[linear.law] = linear.differential
DIFFERENTIALS[st_venant_kirchhoff.law] = st_venant_kirchhoff.differential
DIFFERENTIALS[hencky.law] = hencky.differential
