"""Records of the evaluations that a method of a library requests, so that a resumed search can replay them."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpbots.optimize.problem import Evaluation, Problem, largest_violation
from warpbots.optimize.random_state import random_state, set_random_state
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.run import Complete, Progress

__all__ = ["GradientFailed", "Recorded", "RecordedEvaluations"]


class GradientFailed(Exception):
    """Raised when the derivatives of a trial failed; the method must begin again, see `RecordedEvaluations.rewind`."""


@dataclasses.dataclass
class Recorded:
    """Record of an evaluation: loss and constraints at one point.

    Attributes:
        point: The unknowns divided by their scales, shape (n,), float64.
        loss: The loss. If the rollout failed, the loss is infinite and all constraints are zero.
        equality: Values of the equality constraints, shape (n_equality,), float64.
        inequality: Values of the inequality constraints, shape (n_inequality,), float64.
        jacobian: Gradients of the loss and of all constraints, shape (1 + n_equality + n_inequality, n), float64; None
            if the gradients were not requested.
        fault: Why the rollout or its gradient failed; empty if it did not.
    """

    point: torch.Tensor
    loss: float
    equality: torch.Tensor
    inequality: torch.Tensor
    jacobian: torch.Tensor | None = None
    fault: str = ""

    @property
    def failed(self) -> bool:
        """Whether the rollout failed."""
        return self.loss == math.inf

    @property
    def violation(self) -> float:
        """The largest violation of a constraint."""
        return largest_violation(self.equality, self.inequality)


class RecordedEvaluations:
    """Evaluates a problem once at each point that a method requests, and replays the evaluations of an earlier run.

    The internal state of a method of a library cannot be saved, but this state depends only on the evaluations: with
    the recorded evaluations of a stopped run, the method reaches the same point to the last bit. The last evaluation is
    repeated with the same random numbers, for two reasons: its derivatives may not have been computed yet; and if the
    loss has changed, an error is raised.

    If a rollout after the first one fails, it is recorded with an infinite loss, so that the method can take a smaller
    step. If only its derivatives fail, a method that has already accepted the trial cannot take a smaller step any
    more. The rollout is then recorded as failed, too, and the method begins again: with the evaluations replayed, it
    arrives at the same trial, and now sees that the trial has failed.

    Attributes:
        iteration: Number of recorded iterations.
    """

    def __init__(self, problem: Problem, derivatives: bool = True):
        """Begin with no recorded evaluations.

        Args:
            problem: The problem to evaluate.
            derivatives: Whether derivatives may be requested; if false, torch builds no graph.
        """
        self.iteration = 0
        self._problem, self._derivatives = problem, derivatives
        self._before = problem.episodes, problem.failures
        self._past: list[Recorded] = []
        self._replay: list[Recorded] = []
        self._repeats = False  # whether the last one to replay is evaluated again
        self._known = 0  # iterations that are in the history already
        self._random: list[dict[str, Any]] | None = None  # of each process, before the last evaluation
        self._live: Evaluation | None = None  # the last evaluation with its graph

    def note(self, run: Progress, here: Recorded) -> None:
        """Record an iteration in the history, unless the stopped run has recorded it already.

        Args:
            run: The run.
            here: The evaluation at the end of the iteration.

        Raises:
            Complete: All iterations are done.
            Stopped: A callback asked to stop.
        """
        self.iteration += 1
        if self.iteration > self._known:
            self._problem.unknowns.set_vector(here.point.numpy())
            norm = None if here.jacobian is None else here.jacobian[0].norm().item()
            run.note(here.loss, here.violation, norm)
            if self.iteration > 1:
                run.complete()
            else:
                run.save()
        if self.iteration > run.iterations:
            raise Complete

    def note_unfinished(self, run: Progress) -> None:
        """Record the best evaluation, if it is better than all iterations, when the search ends within an iteration.

        A run that goes on from a checkpoint does so from its last complete iteration.

        Args:
            run: The run.

        Raises:
            Stopped: A callback asked to stop.
        """
        history = run.history
        noted = [history.rank(*each) for each in zip(history.loss, history.violation, strict=True)]
        ranked = [(history.rank(each.loss, each.violation), k) for k, each in enumerate(self._past) if not each.failed]
        if ranked and min(ranked)[0] < min(noted, default=(math.inf, math.inf)):
            here = self._past[min(ranked)[1]]
            self._problem.unknowns.set_vector(here.point.numpy())
            run.note(here.loss, here.violation)

    def at(self, point: np.ndarray, derivatives: bool = False) -> Recorded:
        """Set the unknowns to a point, and return the evaluation there.

        Args:
            point: The unknowns divided by their scales, shape (n,).
            derivatives: Whether the Jacobian is needed.

        Raises:
            ValueError: The stopped run evaluated another point at this position in the sequence of evaluations.
            RolloutError: The first rollout failed, or derivatives of a failed rollout are needed.
            GradientFailed: The derivatives failed, but not those of the first rollout.
            FloatingPointError: The derivatives of the first rollout failed.
        """
        z = torch.as_tensor(np.array(point, dtype=np.float64), device="cpu")
        last = self._past[-1] if self._past else None
        if (
            last is None
            or not torch.equal(last.point, z)
            or (derivatives and not last.failed and self._live is None and last.jacobian is None)
        ):
            last = self._next(z)
        if derivatives and last.failed:
            raise self._problem.failed(last.fault, self.iteration)
        if derivatives and last.jacobian is None:
            self._differentiate(last)
        return last

    @property
    def faults(self) -> str:
        """How many rollouts failed, and why the last of them did, as the end of a sentence; empty if none failed."""
        failed = [each.fault for each in self._past if each.failed]
        many = f"{len(failed)} of {len(self._past)} rollouts failed"
        return f"; {many}, the last one for this reason: {failed[-1]}" if failed else ""

    def rewind(self) -> None:
        """Prepare to replay all evaluations, without a rollout, for a method that begins again."""
        self._replay, self._past, self._repeats = self._past, [], False
        self._known, self.iteration = max(self._known, self.iteration), 0

    def state_dict(self) -> dict[str, Any]:
        """All recorded evaluations, and the random state before the last evaluation."""
        return {
            "before": self._before,
            "noted": self.iteration,
            "evaluations": [dict(vars(r)) for r in self._past],
            "random": self._random or self._random_states(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Prepare to replay the evaluations in `state`, a result of `state_dict`."""
        self._replay = [Recorded(**r) for r in state["evaluations"]]
        self._random, self._past, self._live, self._repeats = state["random"], [], None, True
        self._before, self._known, self.iteration = state["before"], state["noted"], 0

    def _random_states(self) -> list[dict[str, Any]]:
        return self._problem.processes.gathered(random_state())

    def _next(self, z: torch.Tensor) -> Recorded:
        if self._replay and not torch.equal(self._replay[0].point, z):
            raise ValueError(
                f"evaluation {len(self._past)} of the stopped run is at another point than now; the libraries or the "
                f"machine have changed, begin a new run without resume"
            )
        self._problem.unknowns.set_vector(z.numpy())
        replayed = self._replay.pop(0) if self._replay else None
        if replayed is not None and (self._replay or not self._repeats):
            self._past.append(replayed)
            return replayed
        if replayed is not None:
            set_random_state(self._random[self._problem.processes.rank])
        self._random = self._random_states()
        self._problem.episodes = self._before[0] + len(self._past)
        self._problem.failures = self._before[1] + sum(each.failed for each in self._past)
        lost = self._problem.lost_worlds
        self._past.append(self._evaluated(z))
        if replayed is not None:
            self._problem.lost_worlds = lost
            self._problem.compare()
        return self._past[-1]

    def _differentiate(self, here: Recorded) -> None:
        """Add the derivatives to the last evaluation, or record that it has failed."""
        try:
            here.jacobian = torch.as_tensor(self._problem.jacobian(self._live), device="cpu")
        except FloatingPointError as error:
            if len(self._past) == 1:
                raise
            self._problem.failures += 1
            self._past[-1] = _failed(here.point, here, f"its gradient: {error}")
            raise GradientFailed from error
        finally:
            self._live = None  # the graph is freed

    def _evaluated(self, z: torch.Tensor) -> Recorded:
        self._live = None
        try:
            with torch.set_grad_enabled(self._derivatives):
                now = self._live = self._problem.evaluate(self.iteration)
        except RolloutError as fault:
            if not self._past:
                raise
            return _failed(z, self._past[0], str(fault.__cause__ or fault))
        return Recorded(z, now.value, now.equality.detach().double().cpu(), now.inequality.detach().double().cpu())


def _failed(point: torch.Tensor, like: Recorded, fault: str) -> Recorded:
    """Record of an evaluation at `point` that failed because of `fault`, with constraints of the shapes of `like`."""
    none = torch.zeros_like(like.equality), torch.zeros_like(like.inequality)
    return Recorded(point, math.inf, *none, fault=fault)
