"""Why a step went wrong: the control interval is run again, substep by substep, to say when, where and why."""

from collections.abc import Callable

import torch

from warpbots.gradients import LOST, Found, Losses, Replay, Tensors, flaw
from warpbots.scene import Scene
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.stability_bound import TimeStep
from warpbots.solvers import Solver

__all__ = ["Diagnosis", "SimulationError"]


class SimulationError(RuntimeError):
    """A simulation left the realm of physics. The message says when, where and why."""


class Diagnosis:
    """Faults of the control intervals of a simulation, in words."""

    def __init__(
        self,
        scene: Scene,
        solver: Solver,
        time_step: TimeStep,
        inputs: Inputs,
        single: Callable[[frozenset], Replay],
    ):
        """Nothing runs yet.

        Args:
            scene: What is simulated.
            solver: The method.
            time_step: Its step.
            inputs: What its steps are given.
            single: Makes a replay of a single substep, from the names of its inputs.
        """
        self._scene, self._solver, self._time_step, self._inputs, self._single = (
            scene, solver, time_step, inputs, single
        )  # fmt: skip

    def refuse(self, given: Tensors, step: int, after: Tensors, losses: Losses | None, found: Found) -> None:
        """Raise if a control was out of its range, or the state after it is not finite, or all worlds are lost.

        Args:
            given: What the interval was given.
            step: Its number.
            after: The state after it.
            losses: Where it is noted which worlds are lost, if only some are; None where there is no state.
            found: Marks of the control, and of the state after it.

        Raises:
            ValueError: The control was out of its range.
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
        bad = {name for name, mark in zip(after, state, strict=False) if mark}
        if not bad:
            return
        now = _newly_lost(given, after)
        if bad == {LOST} and not after[LOST].all():
            if now.any():
                losses.note(now, step, self._why(given, step))
            return
        raise SimulationError(self._why(given, step))

    def _why(self, given: Tensors, step: int) -> str:
        substep, reason = self._reason({n: t.detach() for n, t in given.items()})
        time = step * self._time_step.dt + substep * self._time_step.length
        return f"control step {step}, substep {substep} (t = {time:.6g} s): {reason}"

    def _reason(self, given: Tensors) -> tuple[int, str]:
        """The substep at which a state goes wrong, and why."""
        if LOST in given and given[LOST].all():
            return 0, "all worlds had been lost before"
        single = self._single(frozenset(given))
        for substep in range(self._time_step.substeps):
            after, marks = single.run(given)
            bad = {name for name, mark in zip(after, map(flaw, marks.tolist()[1:]), strict=True) if mark}
            if bad - {LOST} or (bad and _newly_lost(given, after).any()):
                before = {n: given[n].cpu().numpy() for n in after}
                bad = {n: t.cpu().numpy() for n, t in after.items()}
                model = self._inputs.model_with({n: t for n, t in given.items() if n not in (*after, "control")})
                return substep, self._solver.diagnose(model, before, bad, self._time_step.length)
            given = given | after
        return self._time_step.substeps - 1, (
            "the state is not finite, but it is when the interval is computed again: it is at the edge of what its "
            "steps can follow; use smaller ones"
        )


def _newly_lost(before: Tensors, after: Tensors) -> torch.Tensor:
    """Which worlds are lost after but not before, shape (worlds,), bool; none where a state does not say."""
    if LOST not in after:
        return torch.zeros(1, dtype=torch.bool)
    return after[LOST].detach() > before[LOST].detach()
