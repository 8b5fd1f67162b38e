"""Optimisation of controls, parameters, and all other inputs of rollouts."""

from typing import TYPE_CHECKING

from warpbots.optimize import methods
from warpbots.optimize.bounds import Bounded
from warpbots.optimize.curvature import hessian_product
from warpbots.optimize.doubts import OptimizeWarning
from warpbots.optimize.estimate import Estimate
from warpbots.optimize.fit import fit
from warpbots.optimize.history import History
from warpbots.optimize.least_squares import least_squares
from warpbots.optimize.minimize import minimize
from warpbots.optimize.problem import Outcome
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.search import search
from warpbots.optimize.search_history import SearchHistory, SearchRun
from warpbots.optimize.unknowns import Unknown
from warpbots.renamed import refuse_former

__all__ = [
    "Bounded",
    "Estimate",
    "History",
    "OptimizeWarning",
    "SearchRun",
    "Outcome",
    "RolloutError",
    "SearchHistory",
    "Unknown",
    "fit",
    "hessian_product",
    "least_squares",
    "methods",
    "minimize",
    "search",
]

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
