"""Diagnosis of a failed control interval: its substeps run again one by one, to find when, where and why it fails."""

import functools
from collections.abc import Callable

import numpy as np
import torch

from warpbots.gradients import LOST, FailurePoint, Found, Losses, Tensors, flaw
from warpbots.scene import Scene
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.possible_states import refuse_impossible, rows_of
from warpbots.simulation.stability_bound import ControlInterval
from warpbots.solvers import Solver

__all__ = ["Diagnosis", "SimulationError"]


class SimulationError(RuntimeError):
    """A simulation diverged or cannot go on. The message says when, where and why.

    Attributes:
        place: When and where, as a `FailurePoint`; None if the error is not about a step of a simulation.
    """

    def __init__(self, message: str, place: FailurePoint | None = None):
        """`message` says when, where and why."""
        super().__init__(message)
        self.place = place


class Diagnosis:
    """Raises errors for failed control intervals, with messages that say when, where and why."""

    def __init__(
        self,
        scene: Scene,
        solver: Solver,
        time_step: ControlInterval,
        inputs: Inputs,
        one_substep: Callable[[frozenset], Callable[[Tensors], Tensors]],
    ):
        """Store the arguments; substeps are replayed only after a fault.

        Args:
            scene: The scene.
            solver: The solver.
            time_step: The control interval and its substeps.
            inputs: Checks the inputs of the simulation.
            one_substep: Makes a function of the inputs of a substep that returns the state after it, given the names of
                the inputs.
        """
        self._scene, self._solver, self._time_step = scene, solver, time_step
        self._inputs, self._one_substep = inputs, one_substep

    def refuse(self, given: Tensors, step: int, after: Tensors, losses: Losses | None, found: Found) -> None:
        """Raise if a control was out of range, the state after the interval is not finite, or all worlds are lost.

        Args:
            given: Inputs of the interval: fields of the state before it, control and parameters.
            step: Index of the interval in the rollout.
            after: State after the interval.
            losses: Records the lost worlds if only some worlds are lost; None if `after` is empty.
            found: Results of the checks of the control, and of the fields of the state after the interval.

        Raises:
            ValueError: The control was out of its range, or the state before the first interval is not finite.
            SimulationError: The state is not finite, or all worlds are lost.
        """
        control, *state = map(flaw, found)
        if control:
            world, channel = divmod(control[0], len(self._scene.actuators))
            raise ValueError(
                f"control[{world}, {channel}] of actuator {self._scene.actuators[channel].name!r} is "
                f"{given['control'][world, channel].item():g} at control step {step}; controls must be in [-1, 1]: "
                f"bound yours with tanh, or use a controller of warpbots.controllers"
            )
        if not any(state):
            return
        if step == 0:  # `rollout` has examined its start; `step` looks at it only if the step fails, which is faster
            refuse_impossible({name: given[name] for name in after}, "step: state:")
        now = _newly_lost(given, after)
        if LOST in after and not after[LOST].all():
            if now.any():
                losses.note(now, self._fault(given, step))
            return
        place, why = self._fault(given, step)
        raise SimulationError(why, place)

    def _fault(self, given: Tensors, step: int) -> tuple[FailurePoint, str]:
        """When and where an interval fails, and a sentence with the time and the reason."""
        place, reason = self._reason({n: t.detach() for n, t in given.items()}, step)
        return place, f"control step {step}, substep {place.substep} (t = {place.time:.6g} s): {reason}"

    def _reason(self, given: Tensors, step: int) -> tuple[FailurePoint, str]:
        """When and where an interval fails, and the reason in words."""
        at = functools.partial(self._place, step)
        if LOST in given and given[LOST].all():
            return at(0, None), "all worlds had been lost before; sim.reset starts them again"
        run, known = self._one_substep(frozenset(given)), given.get(LOST)
        for substep in range(self._time_step.substeps):
            after = run(given)
            if known is not None:  # worlds that were lost before do not count
                after = {n: torch.where(rows_of(known > 0.0, t), given[n], t) for n, t in after.items()}
            finite = {n: torch.isfinite(t).reshape(len(t), -1).all(dim=1) for n, t in after.items()}
            wrong = ~torch.stack(list(finite.values())).all(dim=0) | _newly_lost(given, after)
            if wrong.any():
                before, bad = ({n: fields[n].cpu().numpy() for n in after} for fields in (given, after))
                model = self._inputs.model_with({n: t for n, t in given.items() if n not in (*after, "control")})
                with np.errstate(all="ignore"):  # numbers of a state that diverges may overflow
                    reason = self._solver.diagnose(model, before, bad, self._time_step.length)
                return at(substep, _first(int(torch.nonzero(wrong)[0, 0]), before, bad)), reason
            given = given | after
        return at(self._time_step.substeps - 1, None), (
            "the state is not finite, but it is finite when the interval is computed again: the motion is at the limit "
            "of what steps of this length can follow; use shorter steps"
        )

    def _place(self, step: int, substep: int, where: "_Where | None") -> FailurePoint:
        time = step * self._time_step.dt + substep * self._time_step.length
        return FailurePoint(step, substep, time, *(where or (None, None, None, None)))


_Where = tuple[int, str | None, tuple[int, ...] | None, tuple[float, ...] | None]


def _first(world: int, before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> _Where:
    """The first value of a world that is not finite.

    Returns:
        The world; the name of the first field with such a value; the index of the value in the field; and the position
        before the step of the point that the value belongs to [m]. The last entries are None if they do not apply.
    """
    for name, values in after.items():
        bad = np.argwhere(~np.isfinite(values[world]))
        if len(bad):
            index, points = tuple(int(i) for i in bad[0]), before.get("position")
            of_points = points is not None and values.shape[:2] == points.shape[:2]
            return world, name, index, tuple(map(float, points[world, index[0]])) if of_points else None
    return world, None, None, None


def _newly_lost(before: Tensors, after: Tensors) -> torch.Tensor:
    """Worlds that are lost in `after` but not in `before`, shape (worlds,), bool.

    If the state has no field `LOST`, the result is a single False, shape (1,).
    """
    if LOST not in after:
        return torch.zeros(1, dtype=torch.bool)
    return after[LOST].detach() > before[LOST].detach()
