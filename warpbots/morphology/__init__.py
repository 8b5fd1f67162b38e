"""Shape as a parameter: rest positions, volumes and masses as differentiable functions of a few design parameters."""

from warpbots.morphology.maps import Affine, Composition, Deformation, FreeForm, Stretch, jacobian
from warpbots.morphology.shaped import shaped

__all__ = ["Affine", "Composition", "Deformation", "FreeForm", "Stretch", "jacobian", "shaped"]
