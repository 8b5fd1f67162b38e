"""A method that runs another method from several starts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpbots.optimize.doubts import OptimizeWarning
from warpbots.optimize.problem import Problem, Spent
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.run import FAILED, LIMIT, SPENT, Complete, Ending, Method, Progress, Search
from warpbots.scene.field_types import checked
from warpbots.simulation import SimulationError
from warpbots.user_warning import warn_user

__all__ = ["MultiStart"]


class MultiStart:
    """Method that runs another method from several starts, one after the other, as a remedy for local minima.

    The iterations of `warpbots.minimize` are divided equally among the starts; if they cannot be, the first starts get
    one more. The first start consists of the current values of the unknowns. All other starts are random: uniformly
    distributed between the bounds of an unknown, or, if an unknown does not have two finite bounds, normally
    distributed about the first start. If the search from a start ends with a failed rollout or gradient, the search
    from the next start begins; if this happens for all starts, the whole search fails. If the limit of episodes ends
    the search before every start has run, there is an `OptimizeWarning`. ``History.message`` says how the search from
    each start ended. With a ``window`` above 1, means are taken within each start, and a start with fewer iterations
    than ``window`` counts only if it is the first one.
    """

    @checked
    def __init__(self, method: Method, starts: int, *, deviation: float = 1.0, seed: int = 0):
        """Choose the starts.

        Args:
            method: The method that runs from each start.
            starts: Number of starts, at least 2.
            deviation: Standard deviation of normally distributed starts, in units of the scales of the unknowns.
            seed: Seed of the random starts.

        Raises:
            ValueError: `starts` is below 2, or `deviation` is not positive.
        """
        if starts < 2 or not deviation > 0.0:
            raise ValueError(
                f"methods.MultiStart: starts must be at least 2 and deviation positive, got {starts} and {deviation:g}"
            )
        self.method, self.starts, self.deviation, self.seed = method, starts, deviation, seed

    @property
    def constrained(self) -> bool:
        """Whether the method can take constraints."""
        return self.method.constrained

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""
        settings = {"starts": self.starts, "deviation": self.deviation, "starts_seed": self.seed}
        return {**self.method.about(), **settings}

    def search(self, problem: Problem) -> "_MultiStartSearch":
        """Make a search for the minimum of `problem` by this method."""
        return _MultiStartSearch(self, problem)


class _MultiStartSearch:
    def __init__(self, settings: MultiStart, problem: Problem):
        self._settings, self._problem = settings, problem
        self._given = problem.unknowns.vector()
        self._index = self._done = self._iterations = 0
        self._endings: list[Ending] = []
        self._search: Search = settings.method.search(problem)

    def state_dict(self) -> dict[str, Any]:
        own = {"given": self._given.tolist(), "index": self._index, "done": self._done, "iterations": self._iterations}
        own["endings"] = [tuple(ending) for ending in self._endings]
        return {**own, "search": self._search.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._given = np.array(state["given"])
        self._index, self._done, self._iterations = state["index"], state["done"], state["iterations"]
        self._endings = [Ending(*ending) for ending in state["endings"]]
        self._search.load_state_dict(state["search"])

    def run(self, run: Progress) -> Ending:
        if run.iterations < self._settings.starts or self._iterations not in (0, run.iterations):
            was = f"; the stopped run had {self._iterations}" if self._iterations else ""
            raise ValueError(
                f"methods.MultiStart: iterations must be at least 1 for each of {self._settings.starts} starts, and as "
                f"many in a resumed run as in the stopped one, got {run.iterations}{was}"
            )
        self._iterations = run.iterations
        if run.history.window > (fewest := run.iterations // self._settings.starts):
            raise ValueError(
                f"methods.MultiStart: window must be at most the {fewest} iterations of each start, got "
                f"{run.history.window}; give more iterations, fewer starts or a smaller window"
            )
        while True:
            self._endings.append(self._one_start(run))
            if self._index + 1 == self._settings.starts:
                return self._ending()
            self._index, self._done = self._index + 1, 0
            if run.history.loss:  # before, the first rollouts of all starts have failed
                run.history.begins.append(len(run.history.loss))
            self._problem.unknowns.set_vector(self._start(self._index))
            self._problem.unknowns.to_leaves()
            self._search = self._settings.method.search(self._problem)

    def _one_start(self, run: Progress) -> Ending:
        try:
            return self._search.run(_RunOfStart(self, run))
        except Complete:
            return LIMIT
        except Spent as end:
            raise Spent(self._spent(str(end))) from None
        except (SimulationError, FloatingPointError) as fault:  # of a rollout, or of a gradient
            if not isinstance(fault, RolloutError):
                self._problem.failures += 1
            if self._index + 1 == self._settings.starts and {e.reason for e in self._endings} <= {FAILED}:
                raise
            return Ending(FAILED, str(fault))

    def _spent(self, message: str) -> str:
        """Message of the end at the limit of episodes, after a warning if some starts have not run."""
        ends = [*self._endings, Ending(SPENT, message)]
        if (left := self._settings.starts - len(ends)) and self._problem.processes.first:
            warn_user(
                OptimizeWarning(
                    f"MultiStart: the limit of {self._problem.limit:g} episodes ended the search in start "
                    f"{self._index} of 0 to {self._settings.starts - 1}, so that {left} starts have not run; give more "
                    f"episodes, fewer iterations for each start or fewer starts"
                )
            )
        return _listed(ends)

    def _ending(self) -> Ending:
        """Ending of the whole search: converged if all searches converged, else the first other reason of a search."""
        others = [e.reason for e in self._endings if e.reason != "converged"]
        return Ending(others[0] if others else "converged", _listed(self._endings))

    def share(self) -> int:
        """Number of iterations of the search from the current start."""
        each, rest = divmod(self._iterations, self._settings.starts)
        return each + (self._index < rest)

    def _start(self, index: int) -> np.ndarray:
        """Values of the unknowns at start number `index`, divided by their scales, shape (n,)."""
        rng = np.random.default_rng((self._settings.seed, index))
        return self._problem.unknowns.random_vector(self._given, self._settings.deviation, rng)


def _listed(endings: Sequence[Ending]) -> str:
    return "; ".join(f"start {i}: {e.reason} ({e.message})" for i, e in enumerate(endings))


class _RunOfStart:
    """The part of a run that the search from one start sees as its own run."""

    def __init__(self, search: _MultiStartSearch, whole: Progress):
        self._parent, self._whole = search, whole
        self.iterations, self.done = search.share(), search._done
        self.note, self.save, self.history = whole.note, whole.save, whole.history

    def complete(self) -> None:
        self.done = self._parent._done = self.done + 1
        self._whole.complete()
