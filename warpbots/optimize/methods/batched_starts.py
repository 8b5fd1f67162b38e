"""A torch optimiser that runs from several starts at once."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpbots.optimize.methods.torch_method import Torch, TorchSearch
from warpbots.optimize.problem import Problem
from warpbots.optimize.run import Ending, Progress
from warpbots.scene.field_types import checked

__all__ = ["BatchedStarts"]

_MIXES = ("LBFGS", "Muon", "Adafactor")
"""Torch optimisers in which the step of one value depends on other values; some exist only in later versions."""


class BatchedStarts:
    """Method that runs a torch optimiser from several starts at once, as a remedy for local minima.

    Each start is one world of a batch. The first axis of every unknown is the start, and the loss is a tensor of shape
    (starts,) with one number for each start. The first start is the first row of the unknowns. All other starts are
    random: uniformly distributed between the bounds of an unknown, or, if an unknown does not have two finite bounds,
    normally distributed about the row of the start. Each start moves along its own gradient.

    The history has the smallest loss of all starts and the largest norm of their gradients; an evaluation counts as one
    episode for each start. At the end all rows of the unknowns are copies of the best start, and ``History.message``
    has the last loss of each start. If a rollout fails in one world, the whole search ends, as with `Torch`.
    """

    constrained = False

    @checked
    def __init__(self, method: Torch, starts: int, *, deviation: float = 1.0, seed: int = 0):
        """Choose the starts.

        Args:
            method: A torch optimiser without constraints; ``max_norm`` clips the gradient of each start separately.
            starts: Number of starts, at least 2.
            deviation: Standard deviation of normally distributed starts, in units of the scales of the unknowns.
            seed: Seed of the random starts.

        Raises:
            ValueError: `method` is not a `Torch`, or has constraints or smoothing; `starts` is below 2; or `deviation`
                is not positive.
        """
        if starts < 2 or not deviation > 0.0:
            raise ValueError(
                f"methods.BatchedStarts: starts must be at least 2 and deviation positive, got {starts} and "
                f"{deviation:g}"
            )
        if method.constrained or method.smoothed:
            raise ValueError(
                "methods.BatchedStarts: its method takes neither constraints nor smoothing; use methods.MultiStart, "
                "whose starts follow one another"
            )
        self.method, self.starts, self.deviation, self.seed = method, starts, deviation, seed

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""
        settings = {"batched_starts": self.starts, "deviation": self.deviation, "starts_seed": self.seed}
        return {**self.method.about(), **settings}

    def search(self, problem: Problem) -> "_BatchedSearch":
        """Make a search for the minimum of `problem` from all starts.

        Raises:
            ValueError: The length of the first axis of an unknown is not the number of starts, or the step of the
                optimiser for one start depends on other starts.
        """
        for name, tensor in zip(problem.unknowns.names, problem.unknowns.tensors, strict=True):
            if tensor.dim() == 0 or len(tensor) != self.starts:
                raise ValueError(
                    f"methods.BatchedStarts: unknown {name!r} has the shape {tuple(tensor.shape)}; it needs an axis of "
                    f"{self.starts} starts in front, one for each world of the simulation"
                )
        search = self.method.search(problem)
        if type(search.rule).__name__ in _MIXES:
            raise ValueError(
                f"methods.BatchedStarts: a step of torch.optim.{type(search.rule).__name__} mixes the starts; use one "
                f"that moves every value by itself, such as torch.optim.Adam"
            )
        problem.starts = self.starts
        return _BatchedSearch(self, problem, search)


class _BatchedSearch:
    def __init__(self, settings: BatchedStarts, problem: Problem, search: TorchSearch):
        self._settings, self._problem, self._search = settings, problem, search
        self._drawn = False

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self._drawn, "search": self._search.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._drawn = state["drawn"]
        self._search.load_state_dict(state["search"])

    def run(self, run: Progress) -> Ending:
        if not self._drawn:
            self._draw()
        reason, message = self._search.run(run)
        losses = ", ".join(f"{loss:.4g}" for loss in self._problem.losses.tolist())
        return Ending(reason, f"{message}; last losses of the starts: {losses}")

    def _draw(self) -> None:
        """Replace all rows of the unknowns except the first row by random starts."""
        unknowns, rng, self._drawn = self._problem.unknowns, np.random.default_rng(self._settings.seed), True
        first = [t[0].detach().clone() for t in unknowns.tensors]
        unknowns.set_vector(unknowns.random_vector(unknowns.vector(), self._settings.deviation, rng))
        with torch.no_grad():
            for tensor, row in zip(unknowns.tensors, first, strict=True):
                tensor[0] = row
        unknowns.to_leaves()
