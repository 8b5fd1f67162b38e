"""Shape as a parameter: a few design numbers move rest positions, volumes and masses, differentiably."""

from warpbots.morphology.maps import Affine, Composition, Deformation, FreeForm, Stretch, jacobian
from warpbots.morphology.shaped import shaped

__all__ = ["Affine", "Composition", "Deformation", "FreeForm", "Stretch", "jacobian", "shaped"]
