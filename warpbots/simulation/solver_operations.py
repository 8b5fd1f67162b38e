"""The computations of a solver as functions of torch tensors: control intervals, measurements, equilibria."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from warpbots.gradients import BackwardWatch, Bridge, Replay, interval
from warpbots.numerics import parallel
from warpbots.scene import Scene
from warpbots.simulation.diagnosis import Diagnosis
from warpbots.simulation.equilibrium import StaticEquilibrium
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.measurement import Measurement
from warpbots.simulation.stability_bound import ControlInterval
from warpbots.solvers import Grows, Solver

__all__ = ["SolverOperations"]

_ALL = sys.maxsize
"""A backward pass on a GPU checks for faults only at its end, so that its number of intervals is not limited."""


class SolverOperations:
    """Differentiable computations of a solver; each computation is prepared when it is first used.

    Attributes:
        inputs: Checks controls and parameters; has the model.
        time_step: The control interval and its substeps.
        diagnosis: Raises errors for failed control intervals.
        control_interval: A control interval, from a state to the state after it.
    """

    def __init__(
        self, scene: Scene, solver: Solver, time_step: ControlInterval, inputs: Inputs, fields: tuple[str, ...]
    ):
        """Prepare control intervals.

        Args:
            scene: The scene.
            solver: The solver.
            time_step: The control interval and its substeps.
            inputs: Checks controls and parameters; has the model.
            fields: Names of the fields of a state.
        """
        self._solver, self.inputs, self.time_step, self._fields = solver, inputs, time_step, fields
        single = functools.partial(self._interval, wanted=frozenset(), substeps=1, settled=False)
        self.diagnosis = Diagnosis(scene, solver, time_step, inputs, single)
        self.control_interval = self._bridge(self._fields, self._interval, self._grow)

    @functools.cached_property
    def readings(self) -> Measurement:
        """Readings of a state, for a solver that `Senses`."""
        return self._measurement(self._solver.readings, self._solver.sense)

    @functools.cached_property
    def dynamics(self) -> Measurement:
        """Equations of motion at a state, for a `Multibody` solver."""
        return self._measurement(self._solver.equations, self._solver.dynamics)

    @functools.cached_property
    def statics(self) -> StaticEquilibrium:
        """Static equilibria, for a solver with `Statics`."""

        @functools.cache
        def bridge(dt: float) -> Bridge:
            def replay(names: frozenset, wanted: frozenset) -> Replay:
                model = self.inputs.model
                return interval(self._solver, model, dt, 1, names & frozenset(model.parameters()), wanted)

            return self._bridge(self._fields, replay, self._grow)

        return StaticEquilibrium(self._solver, self.inputs.model, self.inputs, bridge)

    def _measurement(self, make: Callable[..., Any], measure: Callable[..., None]) -> Measurement:
        return Measurement(self._solver, self.inputs.model, make, measure, self._bridge, self.inputs, self.diagnosis)

    def _interval(self, names: frozenset, wanted: frozenset, substeps: int = 0, settled: bool = True) -> Replay:
        model, count = self.inputs.model, substeps or self.time_step.substeps
        replaced = names & frozenset(model.parameters())
        return interval(self._solver, model, self.time_step.length, count, replaced, wanted, settled)

    def _bridge(
        self,
        outputs: tuple[str, ...],
        make: Callable[[frozenset, frozenset], Replay],
        grow: Callable[[], bool] = lambda: False,
    ) -> Bridge:
        device = self.inputs.model.device
        watch = BackwardWatch(device, _ALL if parallel(device) else 1)
        return Bridge(outputs, make, self._solver.lost_gradient, watch, grow)

    def _grow(self) -> bool:
        """Enlarge arrays of the model that were too small in the last steps; returns whether any array was."""
        grown = self._solver.grown(self.inputs.model) if isinstance(self._solver, Grows) else None
        if grown is not None:
            self.inputs.model = grown
        return grown is not None
