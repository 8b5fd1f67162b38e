"""Shape as a parameter: a few design numbers move rest positions, volumes and masses, differentiably."""

from warpbots.shape.maps import Affine, Composition, Deformation, FreeForm, Stretch, jacobian
from warpbots.shape.shaped import shaped

__all__ = ["Affine", "Composition", "Deformation", "FreeForm", "Stretch", "jacobian", "shaped"]
