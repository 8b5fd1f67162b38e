"""An optimisation problem: unknowns, and a function that returns the loss and the constraints of one rollout."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from warpbots.gradients import counting_losses
from warpbots.optimize.processes import Processes
from warpbots.optimize.random_state import random_state, set_random_state
from warpbots.optimize.rollout_error import RolloutError, described
from warpbots.optimize.unknowns import Unknowns
from warpbots.scene.field_types import shown
from warpbots.simulation import SimulationError

__all__ = ["Evaluation", "Outcome", "Problem", "Spent"]

_SAME = 3e-4  # allowed relative difference of two evaluations: the square root of the rounding unit of float32


class Spent(Exception):
    """Raised when the limit of episodes is reached; the message says so."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Loss and constraints of one rollout, as functions of the unknowns in torch.

    Scale constraints so that a violation of 1 is a large violation, just as losses should be of order one.

    Attributes:
        loss: The number to minimise, shape ().
        equality: Equality constraints by name, as tensors of any shape; every entry must become zero.
        inequality: Inequality constraints by name, as tensors of any shape; no entry may stay positive.
    """

    loss: torch.Tensor
    equality: Mapping[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    inequality: Mapping[str, torch.Tensor] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """An outcome whose types, shapes and values have been checked.

    Attributes:
        loss: The loss as a tensor in torch's graph, shape (), or shape (starts,) for several starts at once.
        value: Value of the loss; the smallest loss of several starts.
        equality: All equality constraints in one tensor in torch's graph, shape (n_equality,).
        inequality: All inequality constraints in one tensor in torch's graph, shape (n_inequality,).
    """

    loss: torch.Tensor
    value: float
    equality: torch.Tensor
    inequality: torch.Tensor

    @property
    def violation(self) -> float:
        """The largest violation of a constraint; zero if there are no constraints."""
        return largest_violation(self.equality.detach(), self.inequality.detach())


def largest_violation(equality: torch.Tensor, inequality: torch.Tensor) -> float:
    """Largest violation: the maximum of all magnitudes of `equality`, all entries of `inequality`, and zero."""
    return torch.cat([equality.abs(), inequality, equality.new_zeros(1)]).max().item()


class Problem:
    """An optimisation problem: the unknowns, and the function to minimise.

    Attributes:
        unknowns: The unknowns.
        processes: Processes over which loss, constraints and gradients are averaged.
        starts: Number of starts that are evaluated at once; if it is above 1, the first axis of the loss and of all
            unknowns has this length.
        losses: Loss of each start in the last evaluation, shape (starts,); None before the first evaluation.
        episodes: Number of rollouts so far. An evaluation counts one rollout for each start; all processes together
            count one rollout.
        failures: Number of failed evaluations so far.
        lost_worlds: Number of lost worlds in all evaluations so far.
        limit: Largest number of episodes.
        last: Record of the last evaluation: values of the unknowns, random state before the evaluation, loss, and
            shapes of the constraints; None before the first evaluation.
    """

    def __init__(
        self,
        function: Callable[[], torch.Tensor | Outcome],
        unknowns: Unknowns,
        constrained: bool,
        processes: Processes | None = None,
        limit: float = math.inf,
    ):
        """Store the arguments; nothing is evaluated yet.

        Args:
            function: Function that returns the loss of one rollout, or the loss and the constraints.
            unknowns: The unknowns.
            constrained: Whether the method can take constraints.
            processes: Processes over which results are averaged; None for this process alone.
            limit: Largest number of episodes.
        """
        self.unknowns, self.processes = unknowns, processes or Processes()
        self.starts, self.episodes, self.failures, self.limit = 1, 0, 0, limit
        self.lost_worlds = 0
        self.losses: torch.Tensor | None = None
        self.last: dict[str, Any] | None = None
        self._function, self._constrained = function, constrained
        self._shapes: dict[str, tuple[int, ...]] | None = None
        self._expected: Mapping[str, Any] | None = None

    def evaluate(self, iteration: int) -> Evaluation:
        """Evaluate loss and constraints at the current values of the unknowns.

        Args:
            iteration: Iteration of the method, for messages.

        Raises:
            Spent: There would be more episodes than `limit`.
            RolloutError: The simulation failed, or a value is not finite, in one of the processes.
            ValueError: The loss is not a scalar, a constraint has another shape than before or does not depend on the
                unknowns, or there are constraints although the method takes none.
            TypeError: The function returned neither a tensor nor an `Outcome` of tensors.
        """
        if self.episodes + self.starts > self.limit:
            raise Spent("all episodes are spent")
        self.processes.refuse_apart(self.unknowns.vector())
        self.last = {"unknowns": [t.detach().clone() for t in self.unknowns.tensors], "random": random_state()}
        self.last |= {"loss": math.inf, "constraints": self._shapes}
        outcome, fault = None, None
        with counting_losses() as losses:
            try:
                outcome = self._checked(self._function(), iteration)
            except (SimulationError, FloatingPointError) as error:
                fault = error
        self.episodes += self.starts
        told = self.processes.gathered((None if fault is None else str(fault), losses.worlds))
        reasons = [reason for reason, _ in told if reason]
        self.lost_worlds += sum(lost for _, lost in told)
        if outcome is None or reasons:
            self.failures += 1
            raise self.failed(reasons[0], iteration) from fault
        kinds = (outcome.equality, outcome.inequality)
        equality, inequality = (
            self.processes.mean(torch.cat([c.reshape(-1) for c in kind.values()]))
            if kind
            else outcome.loss.new_zeros(0)
            for kind in kinds
        )
        loss = self.processes.mean(outcome.loss)
        self.losses = loss.detach().reshape(self.starts)
        now = Evaluation(loss, self.losses.min().item(), equality, inequality)
        self.last |= {"loss": now.value, "constraints": self._shapes}
        return now

    def kept(self) -> list[torch.Tensor]:
        """Copies of the unknowns; with several starts, each row is a copy of the start with the smallest loss."""
        if self.starts == 1 or self.losses is None:
            return [t.detach().clone() for t in self.unknowns.tensors]
        best = self.losses.argmin()
        return [t.detach()[best].expand_as(t).clone() for t in self.unknowns.tensors]

    def failed(self, reason: str, iteration: int) -> RolloutError:
        """Make the error for a rollout that failed at the current values of the unknowns."""
        names, tensors = self.unknowns.names, self.unknowns.tensors
        return RolloutError(
            f"rollout {self.episodes} of the search, in iteration {iteration}, failed with "
            f"{described(names, tensors)}: {reason}. The unknowns have the best "
            f"values before it, and resuming repeats it: give narrower bounds, a smaller scale or learning rate, or "
            f"another method or start",
            {name: tensor.detach().clone() for name, tensor in zip(names, tensors, strict=True)},
            self.episodes,
        )

    def last_of_all(self) -> dict[str, Any] | None:
        """A copy of `last` whose random state is a list of the random states of all processes."""
        return None if self.last is None else {**self.last, "random": self.processes.gathered(self.last["random"])}

    def expect(self, last: Mapping[str, Any] | None, window: int) -> None:
        """Set the evaluation that `compare` expects, which is the last evaluation of a stopped run.

        Args:
            last: Result of `last_of_all` in the stopped run, or None if nothing was evaluated.
            window: `History.window`. Losses with a window above 1 are random; then no evaluation is expected.
        """
        self._expected = None if last is None or window > 1 else last

    def confirm(self) -> None:
        """Repeat the last evaluation of a stopped run, if `expect` has set one, and compare the results.

        Afterwards the unknowns, the random state and the counts are as before.

        Raises:
            ValueError: The loss or the constraints have changed.
        """
        if (there := self._expected) is None:
            return
        here, random = [t.detach().clone() for t in self.unknowns.tensors], random_state()
        counts = self.episodes, self.failures, self.lost_worlds
        self.episodes = -self.starts  # within any limit
        self.unknowns.assign(there["unknowns"])
        set_random_state(there["random"][self.processes.rank])
        try:
            with torch.no_grad():
                self.evaluate(0)
        except RolloutError:
            pass  # the comparison sees an infinite loss
        self.compare()
        self.unknowns.assign(here)
        set_random_state(random)
        self.episodes, self.failures, self.lost_worlds = counts

    def compare(self) -> None:
        """Compare `last` with the expected evaluation of a stopped run.

        Both evaluations have the same values of the unknowns and the same random numbers.

        Raises:
            ValueError: The loss or the constraints have changed.
        """
        there, self._expected, here = self._expected, None, self.last
        if there is None:
            return
        both_failed = there["loss"] == here["loss"] == math.inf
        if both_failed or (there["constraints"] == here["constraints"] and _same(there["loss"], here["loss"])):
            return
        raise ValueError(
            f"cannot resume: with {described(self.unknowns.names, there['unknowns'])}, {_words(there)} there and "
            f"{_words(here)} here; use the loss, data and scene of that run, or begin a new one without resume (a loss "
            f"with a random generator of its own cannot be compared: set window above 1)"
        )

    def average_gradients(self) -> None:
        """Replace the gradients of the unknowns by their means over the processes."""
        tensors = self.unknowns.tensors
        for tensor, gradient in zip(tensors, self.processes.averaged([t.grad for t in tensors], tensors), strict=True):
            tensor.grad = gradient

    def check_paths(self, gradients: list[torch.Tensor | None]) -> None:
        """Raise an error if neither the loss nor a constraint depends on an unknown.

        Args:
            gradients: Gradient with respect to each unknown; None if torch's graph has no path to the unknown.

        Raises:
            ValueError: Neither the loss nor a constraint depends on an unknown.
        """
        idle = [name for name, g in zip(self.unknowns.names, gradients, strict=True) if g is None]
        if idle:
            raise ValueError(
                f"neither loss nor constraints depend on the unknown{'s' if len(idle) > 1 else ''} "
                f"{', '.join(map(repr, idle))}: no gradient path leads there; compute the loss from "
                f"{'them' if len(idle) > 1 else 'it'} in torch, without detach() or item(), or leave "
                f"{'them' if len(idle) > 1 else 'it'} out"
            )

    def jacobian(self, evaluation: Evaluation) -> np.ndarray:
        """Gradients of the loss and of the constraints with respect to the unknowns divided by their scales.

        Each row takes one backward pass through the same rollout. The rows are the loss, the equality constraints and
        the inequality constraints.

        Returns:
            The gradients, shape (1 + n_equality + n_inequality, n).
        """
        return self.gradients([evaluation.loss, *evaluation.equality, *evaluation.inequality])

    def gradients(self, rows: Sequence[torch.Tensor]) -> np.ndarray:
        """Gradients of several scalars with respect to the unknowns divided by their scales.

        Each scalar takes one backward pass; the last pass frees the graph.

        Args:
            rows: The scalars, all in the same graph of torch.

        Returns:
            The gradients, shape (rows, n).

        Raises:
            ValueError: No scalar depends on one of the unknowns.
            FloatingPointError: A backward pass failed in one of the processes, or a gradient is not finite.
        """
        tensors, found = self.unknowns.tensors, []
        for i, row in enumerate(rows):
            keep = i + 1 < len(rows)
            own, fault = [None] * len(tensors), None
            try:
                own = torch.autograd.grad(row, tensors, retain_graph=keep, allow_unused=True)
            except (SimulationError, FloatingPointError) as error:
                fault = error
            if reasons := [why for why in self.processes.gathered(None if fault is None else str(fault)) if why]:
                raise FloatingPointError(reasons[0]) from fault
            found.append(self.processes.averaged(own, tensors))
        self.check_paths([next((g for g in column if g is not None), None) for column in zip(*found, strict=True)])
        return np.stack([self.unknowns.flat_gradient(gradients) for gradients in found])

    def _checked(self, outcome: torch.Tensor | Outcome, iteration: int) -> Outcome:
        """Return the result of the function as an `Outcome`; raise an error if a type, shape or value is invalid."""
        if isinstance(outcome, torch.Tensor):
            outcome = Outcome(outcome)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"the loss must be a tensor or a warpbots.Outcome, got {type(outcome).__name__}")
        if not isinstance(outcome.loss, torch.Tensor):
            raise TypeError(f"the loss of an Outcome must be a tensor, got {shown(outcome.loss)}")
        for kind in ("equality", "inequality"):
            if not isinstance(getattr(outcome, kind), Mapping):
                raise TypeError(
                    f"{kind} of an Outcome must be a dict of tensors by name, got {shown(getattr(outcome, kind))}"
                )
        self._check_loss(outcome.loss, iteration)
        self._check_constraints(outcome, iteration)
        return outcome

    def _check_loss(self, loss: torch.Tensor, iteration: int) -> None:
        if loss.is_complex():
            raise TypeError(f"the loss must be a real number, got {loss.dtype}; take its abs() or its real part")
        if self.starts == 1 and loss.numel() != 1:
            raise ValueError(f"the loss must be one number, got a tensor of shape {tuple(loss.shape)}; take its mean()")
        if self.starts > 1 and loss.shape != (self.starts,):
            raise ValueError(
                f"the loss must be one number for each of {self.starts} starts, got a tensor of shape "
                f"{tuple(loss.shape)}; take means over all axes except that of the worlds"
            )
        if not loss.isfinite().all():
            where = "" if self.starts == 1 else f" of start {int((~loss.isfinite()).nonzero()[0, 0])}"
            value = loss.detach().reshape(-1)[~loss.isfinite().reshape(-1)][0].item()
            raise FloatingPointError(f"the loss{where} is {value} in iteration {iteration}")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise ValueError(
                f"the loss has no gradient path to any of the unknowns {', '.join(map(repr, self.unknowns.names))}; "
                f"compute it from them in torch, without detach() or item()"
            )

    def _check_constraints(self, outcome: Outcome, iteration: int) -> None:
        both = {**outcome.equality, **outcome.inequality}
        if both and not self._constrained:
            raise ValueError(
                f"the method takes no constraints, but the loss returned {', '.join(map(repr, both))}; use "
                f"methods.SciPy('SLSQP'), methods.SciPy('trust-constr') or methods.Torch(..., constraints=...)"
            )
        if len(both) < len(outcome.equality) + len(outcome.inequality):
            raise ValueError("an equality and an inequality constraint have one name; rename one of them")
        for name, value in both.items():
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"constraint {name!r} must be a tensor, got {type(value).__name__}")
            if value.is_complex():
                raise TypeError(f"constraint {name!r} must be of real numbers, got {value.dtype}; take its abs()")
            if not value.isfinite().all():
                raise FloatingPointError(f"constraint {name!r} is not finite in iteration {iteration}: {_bad(value)}")
            if torch.is_grad_enabled() and not value.requires_grad:
                raise ValueError(
                    f"constraint {name!r} has no gradient path to any unknown; compute it from them in torch, or leave "
                    f"it out"
                )
        kinds = {"equality": outcome.equality, "inequality": outcome.inequality}
        shapes = {f"{kind} {name}": tuple(c.shape) for kind, group in kinds.items() for name, c in group.items()}
        if self._shapes is None:
            self._shapes = shapes
        if shapes != self._shapes:
            raise ValueError(
                f"the constraints have the shapes {shapes} in iteration {iteration} and had {self._shapes} before; "
                f"return the same ones each time"
            )


def _same(a: float, b: float) -> bool:
    return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= _SAME * max(abs(a), abs(b)))


def _words(evaluation: Mapping[str, Any]) -> str:
    shapes = evaluation["constraints"] or {}
    constraints = "".join(f", {name} of shape {shape}" for name, shape in shapes.items())
    return f"the loss is {evaluation['loss']:.8g}{constraints}"


def _bad(value: torch.Tensor) -> str:
    bad = ~value.isfinite().reshape(-1)
    return f"{int(bad.sum())} of {value.numel()} entries, the first is {value.reshape(-1)[bad][0].item()}"
