"""Methods of `warpbots.minimize`."""

from warpbots.optimize.methods.augmented_lagrangian import AugmentedLagrangian
from warpbots.optimize.methods.scipy_method import SciPy
from warpbots.optimize.methods.torch_method import Torch

__all__ = ["AugmentedLagrangian", "SciPy", "Torch"]
