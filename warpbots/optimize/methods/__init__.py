"""Optimisation methods for `warpbots.minimize`."""

from warpbots.optimize.methods.augmented_lagrangian import AugmentedLagrangian
from warpbots.optimize.methods.batched_starts import BatchedStarts
from warpbots.optimize.methods.cma_method import CMA
from warpbots.optimize.methods.multi_start import MultiStart
from warpbots.optimize.methods.scipy_method import SciPy
from warpbots.optimize.methods.smoothing import Smoothing
from warpbots.optimize.methods.torch_method import Torch

__all__ = ["CMA", "AugmentedLagrangian", "BatchedStarts", "MultiStart", "SciPy", "Smoothing", "Torch"]
