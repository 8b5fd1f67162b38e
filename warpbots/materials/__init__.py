"""Constitutive laws and return mappings: as descriptions in a `Material`, and as Warp functions that solvers call."""

from warpbots.materials import (
    corotated,
    fixed_corotated,
    gent,
    hencky,
    linear,
    mooney_rivlin,
    neo_hookean,
    ogden,
    st_venant_kirchhoff,
    weakly_compressible,
)
from warpbots.materials.cam_clay import cam_clay
from warpbots.materials.differential import differential
from warpbots.materials.distortion import distortion
from warpbots.materials.drucker_prager import drucker_prager
from warpbots.materials.elasticity import (
    DIFFERENTIALS,
    FLUIDS,
    LAWS,
    Law,
    elasticity,
    functions_of,
    kept_laws,
    law_of,
    numbers_type,
    p_wave_modulus,
)
from warpbots.materials.fibre_reinforcement import fibre_reinforcement
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.materials.law_checks import check_law, without_checks
from warpbots.materials.law_constants import CONSTANTS, LawConstant, constant_values, with_constants
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
    "CONSTANTS",
    "DIFFERENTIALS",
    "FLUIDS",
    "LAWS",
    "Law",
    "LawConstant",
    "cam_clay",
    "constant_values",
    "differential",
    "distortion",
    "drucker_prager",
    "elasticity",
    "fibre_reinforcement",
    "functions_of",
    "kept_laws",
    "lame_lambda",
    "lame_mu",
    "law_of",
    "maxwell",
    "maxwell_step",
    "numbers_type",
    "p_wave_modulus",
    "check_law",
    "viscous_stress",
    "von_mises",
    "with_constants",
    "without_shear",
]

LAWS["neo_hookean"] = neo_hookean.law
LAWS["fixed_corotated"] = fixed_corotated.law
LAWS["corotated"] = corotated.law
LAWS["linear"] = linear.law
LAWS["st_venant_kirchhoff"] = st_venant_kirchhoff.law
LAWS["hencky"] = hencky.law
LAWS["mooney_rivlin"] = mooney_rivlin.law
LAWS["ogden"] = ogden.law
LAWS["gent"] = gent.law
LAWS["weakly_compressible"] = weakly_compressible.law

DIFFERENTIALS[neo_hookean.law] = neo_hookean.differential
DIFFERENTIALS[fixed_corotated.law] = fixed_corotated.differential
DIFFERENTIALS[corotated.law] = corotated.differential
DIFFERENTIALS[linear.law] = linear.differential
DIFFERENTIALS[st_venant_kirchhoff.law] = st_venant_kirchhoff.differential
DIFFERENTIALS[hencky.law] = hencky.differential
DIFFERENTIALS[mooney_rivlin.law] = mooney_rivlin.differential
DIFFERENTIALS[ogden.law] = ogden.differential
DIFFERENTIALS[gent.law] = gent.differential

without_checks()
