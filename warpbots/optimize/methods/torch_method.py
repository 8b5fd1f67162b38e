"""Torch optimisers as a method for `warpbots.minimize`."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from warpbots.optimize.methods.augmented_lagrangian import AugmentedLagrangian, Multipliers
from warpbots.optimize.methods.smoothing import Smoothing
from warpbots.optimize.problem import Evaluation, Problem, Spent
from warpbots.optimize.run import LIMIT, Ending, Progress
from warpbots.scene.field_types import checked, shown

__all__ = ["Torch", "TorchSearch"]

_Scheduler = torch.optim.lr_scheduler.LRScheduler


class Torch:
    """Method that takes one step of a torch optimiser in each iteration.

    Optimisers that evaluate the loss several times in a step, such as `torch.optim.LBFGS`, are supported. LBFGS stops
    when the gradient is below 1e-7 in the units of the loss, so scale the loss to order one.

    Torch optimisers cannot repeat a step with a smaller length: if a rollout fails, the search ends with an error, and
    the unknowns are set to their best values.
    """

    @checked
    def __init__(
        self,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
        *,
        max_norm: float | None = None,
        project: Callable[[], None] | None = None,
        scheduler: Callable[[torch.optim.Optimizer], _Scheduler] | None = None,
        constraints: AugmentedLagrangian | None = None,
        smoothing: Smoothing | None = None,
        **options: Any,
    ):
        """Choose an optimiser.

        Args:
            optimizer: Class (or function) that makes a torch optimiser from tensors and `options`.
            max_norm: Gradients are clipped to this norm before each step, so that one chaotic rollout cannot move the
                unknowns far away; None for no clipping. The history has the norms before clipping.
            project: Function that enforces limits on the unknowns other than their bounds; it is called after every
                step.
            scheduler: Function that takes the optimiser and returns a scheduler of the learning rate, such as
                ``lambda rule: torch.optim.lr_scheduler.StepLR(rule, 50)``; the scheduler advances after every step.
            constraints: Settings for the enforcement of constraints; None for problems without constraints.
            smoothing: Perturbations of the unknowns over which the loss is averaged; None for no perturbations.
            options: Options of `optimizer`, such as ``lr=1e-2``.
        """
        if max_norm is not None and max_norm <= 0.0:
            raise ValueError(f"Torch: max_norm must be positive, or None for no clipping, got {max_norm:g}")
        self._optimizer, self._project, self._scheduler = optimizer, project, scheduler
        self._options = {n: value.item() if isinstance(value, np.generic) else value for n, value in options.items()}
        self._max_norm, self._constraints, self._smoothing = max_norm, constraints, smoothing

    @property
    def constrained(self) -> bool:
        """Whether the method can take constraints."""
        return self._constraints is not None

    @property
    def smoothed(self) -> bool:
        """Whether the loss is averaged over perturbed unknowns."""
        return self._smoothing is not None

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""
        parts = {
            "constraints": self._constraints,
            "smoothing": self._smoothing,
            "scheduler": self._scheduler,
            "project": self._project,
        }
        return {"optimizer": self._optimizer, **self._options, "max_norm": self._max_norm} | {
            name: part for name, part in parts.items() if part is not None
        }

    def search(self, problem: Problem) -> "TorchSearch":
        """Make a search for the minimum of `problem` by this optimiser.

        Raises:
            ValueError: The optimiser refuses its options, or cannot keep the bounds of an unknown.
        """
        most = min(torch.finfo(leaf.dtype).max for leaf in problem.unknowns.leaves)
        for name, value in self._options.items():
            if isinstance(value, float) and not abs(value) <= most:
                raise ValueError(
                    f"methods.Torch: option {name} must be a number that the unknowns can hold, at most {most:.3g} in "
                    f"magnitude, got {value:g}"
                )
        try:
            rule = self._optimizer(problem.unknowns.leaves, **self._options)
        except (TypeError, ValueError) as fault:
            raise ValueError(
                f"methods.Torch: optimizer {shown(self._optimizer)} does not take the unknowns with the options "
                f"{self._options}: {fault}"
            ) from fault
        if not isinstance(rule, torch.optim.Optimizer):
            raise ValueError(f"methods.Torch: optimizer must make a torch.optim.Optimizer, got {shown(rule)}")
        if isinstance(rule, torch.optim.LBFGS) and problem.unknowns.bounded:
            raise ValueError(
                "methods.Torch: torch.optim.LBFGS cannot keep bounds; use methods.SciPy('L-BFGS-B'), or a "
                "warpbots.Bounded instead of a warpbots.Unknown with bounds"
            )
        scheduler = None if self._scheduler is None else self._scheduler(rule)
        multipliers = None if self._constraints is None else Multipliers(self._constraints)
        return TorchSearch(problem, rule, scheduler, multipliers, self._smoothing, self._max_norm, self._project)


class TorchSearch:
    """A search for the minimum of a problem by a torch optimiser.

    Attributes:
        rule: The torch optimiser.
    """

    def __init__(
        self,
        problem: Problem,
        rule: torch.optim.Optimizer,
        scheduler: _Scheduler | None,
        multipliers: Multipliers | None,
        smoothing: Smoothing | None,
        max_norm: float | None,
        project: Callable[[], None] | None,
    ):
        self._problem, self.rule, self._scheduler, self._multipliers = problem, rule, scheduler, multipliers
        self._smoothing = smoothing
        self._max_norm, self._project = math.inf if max_norm is None else max_norm, project

    def run(self, run: Progress) -> Ending:
        """Take steps until all iterations of `run` are done or the optimiser has ended (`Search.run`)."""
        self._problem.confirm()
        run.save()
        for iteration in range(run.done, run.iterations):
            self._step(run, iteration)
            run.complete()
        with torch.no_grad():
            last = self._evaluate(run.iterations)
            run.note(last.value, last.violation)
        return LIMIT

    def state_dict(self) -> dict[str, Any]:
        """State of the search, for a checkpoint (`Search.state_dict`)."""
        parts = {"optimizer": self.rule, "scheduler": self._scheduler, "multipliers": self._multipliers}
        return {name: part.state_dict() for name, part in parts.items() if part is not None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned (`Search.load_state_dict`)."""
        parts = {"optimizer": self.rule, "scheduler": self._scheduler, "multipliers": self._multipliers}
        for name, part in parts.items():
            if part is not None:
                part.load_state_dict(state[name])

    def _evaluate(self, iteration: int) -> Evaluation:
        """Evaluate the problem; if gradients are enabled in torch, add the gradient to the ``grad`` of the unknowns."""
        if self._smoothing is not None:
            return self._smoothed(iteration, self._smoothing)
        now = self._problem.evaluate(iteration)
        if torch.is_grad_enabled():
            self._merit(now).backward()
        return now

    def _smoothed(self, iteration: int, smoothing: Smoothing) -> Evaluation:
        """Evaluate the problem at perturbed unknowns, and return and store means of loss, constraints and gradient."""
        seen, unknowns, slopes = [], self._problem.unknowns, torch.is_grad_enabled()
        for directions, sign in smoothing.perturbed(unknowns):
            with torch.set_grad_enabled(slopes and smoothing.order == 1):
                now = self._problem.evaluate(iteration)
                merit = self._merit(now) / smoothing.samples
            if merit.requires_grad:
                merit.backward()
            elif slopes:
                unknowns.add_gradient(directions, sign * merit.item() / smoothing.deviation)
            seen.append(now)
        loss, equality, inequality = (
            torch.stack([getattr(now, name).detach() for now in seen]).mean(dim=0)
            for name in ("loss", "equality", "inequality")
        )
        return Evaluation(loss, loss.item(), equality, inequality)

    def _merit(self, now: Evaluation) -> torch.Tensor:
        """The scalar to minimise: the loss or the augmented Lagrangian; losses of several starts are summed."""
        return now.loss.sum() if self._multipliers is None else self._multipliers.merit(now)

    def _note_unfinished(self, run: Progress, evaluations: list[Evaluation], points: list[list[torch.Tensor]]) -> None:
        """Record the best evaluation of a step that the limit of episodes ended, if it is not the first, the start."""
        ranks = [run.history.rank(now.value, now.violation) for now in evaluations]
        if ranks and (best := ranks.index(min(ranks))):
            self._problem.unknowns.assign(points[best])
            run.note(evaluations[best].value, evaluations[best].violation)

    def _step(self, run: Progress, iteration: int) -> None:
        unknowns, rule, multipliers = self._problem.unknowns, self.rule, self._multipliers
        evaluations: list[Evaluation] = []
        points: list[list[torch.Tensor]] = []  # values of the unknowns in each evaluation

        def closure() -> torch.Tensor:
            rule.zero_grad()
            unknowns.from_leaves()
            now = self._evaluate(iteration)
            self._problem.average_gradients()
            if iteration == 0 and not evaluations:
                self._problem.check_paths([t.grad for t in unknowns.tensors])
            unknowns.gradients_to_leaves()
            norm = unknowns.clip_leaf_gradients(self._max_norm, self._problem.starts)
            if not evaluations:  # the first evaluation has the unknowns of the start of the iteration
                run.note(now.value, now.violation, norm)
            evaluations.append(now)
            points.append(self._problem.last["unknowns"])
            return self._merit(now).detach()

        try:
            rule.step(closure)
        except Spent:
            if self._smoothing is None:
                self._note_unfinished(run, evaluations, points)
            raise
        unknowns.from_leaves()
        if self._project is not None:
            with torch.no_grad():
                self._project()
        unknowns.to_leaves()
        if multipliers is not None and multipliers.after(iteration, evaluations[-1]):
            rule.state.clear()  # momentum and curvature belong to the former multipliers
        if isinstance(self._scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self._scheduler.step(evaluations[0].value)
        elif self._scheduler is not None:
            self._scheduler.step()
