"""The step whose wrenches are the readings of a state, and the adjoint of these readings."""

import dataclasses
from typing import Any

import warp as wp

from warpbots.numerics import clear_gradients
from warpbots.solvers.projective.end_of_step import recall_step
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.shorter_steps import ShorterSteps
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.wrench_seeds import Readers, WrenchSeeds

__all__ = ["WrenchStep"]


class WrenchStep:
    """A step from a state, whose wrenches are readings of this state."""

    def __init__(
        self,
        model: ProjectiveModel,
        state: ProjectiveState,
        control: wp.array,
        readings_out: Any,
        readers: Readers,
        solver: Any,
    ):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            state: The state to measure.
            control: Control signals, shape (worlds, channels).
            readings_out: The readings, to which the arrays of the step belong.
            readers: The readings of wrenches among them.
            solver: The `ProjectiveDynamics`, whose `contact_interval` is the length of the step.
        """
        self._model, self._state, self._control, self._dt = model, state, control, solver.contact_interval
        self._out = model.workspace.sensed(readings_out, lambda: solver.state(model, requires_grad=True))
        whole = dataclasses.replace(solver, max_halvings=0)
        self._steps = ShorterSteps(model, state, control, self._out, self._dt, whole)
        self._seeds = WrenchSeeds(model, self._out, readers, self._dt)

    def run(self) -> None:
        """Take the step, and write the readings."""
        clear_gradients(self._out.fields())
        self._steps.take(beyond=True)
        end = recall_step(self._model, self._state, self._control, self._out, self._dt)
        self._seeds.measure(end, self._state.lost)

    def adjoint(self) -> None:
        """Add the gradients with respect to the state, the control and the model, from those of the readings."""
        clear_gradients(self._out.fields())
        self._steps.adjoint(self._seeds)
