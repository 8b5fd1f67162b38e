"""Optimisation on top of torch."""

from warpbots.optimize.bounds import Bounded
from warpbots.optimize.curvature import hessian_product
from warpbots.optimize.fit import fit
from warpbots.optimize.history import History

__all__ = ["Bounded", "History", "fit", "hessian_product"]
