"""Covariance matrix adaptation, a search without gradients (Hansen, The CMA evolution strategy: a tutorial, 2016)."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from warpbots.optimize.problem import Problem, Spent
from warpbots.optimize.recorded import RecordedEvaluations
from warpbots.optimize.run import Ending, Progress
from warpbots.scene.field_types import checked

__all__ = ["CMA"]

_CONVERGED = {"tolfun", "tolfunhist", "tolfunrel", "tolx"}  # changes of loss or unknowns are below the tolerance


class CMA:
    """The evolution strategy CMA-ES of the package ``cma``, for comparison with methods that use gradients.

    An iteration is a generation; the history has the smallest loss of each generation. If the limit of episodes ends a
    generation, its smallest loss counts if it is the smallest of all. The method respects bounds, but it takes no
    constraints. A rollout that fails is ranked behind all other rollouts of its generation; if all rollouts of a
    generation fail, the search ends.
    """

    @checked
    def __init__(self, step: float = 0.3, *, population: int | None = None, seed: int = 0):
        """Choose the settings.

        Args:
            step: Standard deviation of the unknowns in the first generation, in units of their scales.
            population: Number of rollouts in each generation, from 2 to 1,000,000; None for 4 + 3 ln n with n unknown
                numbers.
            seed: Seed of the random numbers of the method, which uses no global generator.

        Raises:
            ValueError: `step` is not positive, or `population` is out of range.
        """
        if not (step > 0.0 and (population is None or 2 <= population <= 1_000_000)):
            raise ValueError(
                f"methods.CMA: step must be positive and population 2 to 1,000,000, got {step:g} and {population}"
            )
        self.step, self.population, self.seed = step, population, seed

    @property
    def constrained(self) -> bool:
        """Whether the method can take constraints."""
        return False

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""
        settings = {"step": self.step, "population": self.population, "seed": self.seed}
        return {"optimizer": "CMA", **settings, "cma": _version()}

    def search(self, problem: Problem) -> "_CMASearch":
        """Make a search for the minimum of `problem` by this method.

        Raises:
            ImportError: The package ``cma`` is not installed.
            ValueError: There is only one unknown number.
        """
        _version()
        return _CMASearch(self, problem)


class _CMASearch:
    def __init__(self, method: CMA, problem: Problem):
        self._method, self._problem = method, problem
        self._start = problem.unknowns.vector()
        if len(self._start) < 2:
            raise ValueError("methods.CMA: needs at least 2 unknown numbers, got 1; use methods.SciPy")
        self._evaluations = RecordedEvaluations(problem, derivatives=False)

    def state_dict(self) -> dict[str, Any]:
        return {"start": self._start.tolist(), **self._evaluations.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._start = np.array(state["start"])
        self._evaluations.load_state_dict(state)

    def run(self, run: Progress) -> Ending:
        import cma

        at, method = self._evaluations.at, self._method
        draw = np.random.default_rng(method.seed).standard_normal
        options = {
            "bounds": [
                [float(v) if np.isfinite(v) else None for v in bound] for bound in self._problem.unknowns.bounds()
            ],
            "randn": lambda *shape: draw(shape),
            "seed": np.nan,  # none for NumPy's global generator
            "verbose": -9,
            "maxiter": np.inf,
        }
        if method.population is not None:
            options["popsize"] = method.population
        strategy = cma.CMAEvolutionStrategy(self._start, method.step, options)
        self._evaluations.note(run, at(self._start))
        while not strategy.stop():
            points, found = strategy.ask(), []
            try:
                for point in points:
                    found.append(at(point))
            except Spent:
                self._evaluations.note_unfinished(run)
                raise
            best = min(found, key=lambda each: each.loss)
            if best.failed:
                self._problem.unknowns.set_vector(points[-1])
                raise self._problem.failed("all rollouts of this generation failed", self._evaluations.iteration)
            strategy.tell(points, [each.loss for each in found])
            self._evaluations.note(run, best)
        found_by = strategy.stop()
        reason = "converged" if found_by.keys() & _CONVERGED else "stagnated"
        return Ending(reason, ", ".join(f"{name} = {value}" for name, value in found_by.items()))


def _version() -> str:
    try:
        return metadata.version("cma")
    except metadata.PackageNotFoundError:
        raise ImportError("methods.CMA needs the package cma: pip install 'warpbots[cma]'") from None
