"""Results that a solver computes from a state, under torch: readings or equations of motion."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch

from warpbots.gradients import Bridge, Replay, Segment, Share, SharedReplay, Watch, reading
from warpbots.simulation.diagnosis import Diagnosis
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.world_shares import WorldShares
from warpbots.solvers import Model, Solver

__all__ = ["Measurement"]


class Measurement:
    """Computes results from a state, differentiably, and returns them in a dataclass of the solver."""

    def __init__(
        self,
        solver: Solver,
        make: Callable[..., Any],
        measure: Callable[..., None],
        bridge: Callable[[tuple[str, ...], Callable[[frozenset, frozenset], Replay]], Bridge],
        inputs: Inputs,
        diagnosis: Diagnosis,
        shares: WorldShares,
    ):
        """Prepare the measurement; `of` computes the results at a state.

        Args:
            solver: The solver.
            make: Allocates the arrays of the results, such as `Senses.readings`.
            measure: Writes the results to these arrays, such as `Senses.sense`.
            bridge: Makes a `Bridge` from the names of the results and a function that makes replays.
            inputs: Checks controls and parameters; has the model.
            diagnosis: Raises the error with its message if a control is out of range.
            shares: The shares of the worlds that threads measure.
        """

        def replay(names: frozenset, wanted: frozenset) -> Replay | SharedReplay:
            replaced = names & frozenset(inputs.model.parameters())

            def of_share(model: Model, share: Share) -> Replay:
                return reading(solver, model, make, measure, replaced, wanted, share)

            return shares.replay(of_share)

        model = inputs.model
        results = make(model)
        self._kind, self._device, self._inputs, self._diagnosis = type(results), model.device, inputs, diagnosis
        self._bridge = bridge(_names(results), replay)

    def of(self, state: Any, control: torch.Tensor | None, parameters: dict[str, torch.Tensor]) -> Any:
        """The results at a state.

        Args:
            state: The state.
            control: Control signal; None for no control.
            parameters: Tensors instead of the model's parameters, by name.

        Raises:
            ValueError: A control or a parameter has the wrong shape or an illegal value.
        """
        given = self._inputs.no_control if control is None else self._inputs.control(control)
        fields = {name: getattr(state, name) for name in _names(state)}
        inputs = fields | {"control": given} | self._inputs.parameters(parameters)
        outputs, marks = self._bridge.run(inputs, Segment(self._bridge, keep=False), 0)
        if control is not None:
            Watch(self._device, 1).note(marks, functools.partial(self._diagnosis.refuse, inputs, 0, {}, None))
        return self._kind(**outputs)


def _names(results: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(results))
