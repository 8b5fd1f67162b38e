"""The computations of a solver as functions of torch tensors: control intervals, measurements, equilibria."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from warpbots.gradients import BackwardWatch, Bridge, Replay, Share, SharedReplay, Tensors, interval
from warpbots.numerics import parallel
from warpbots.scene import Scene
from warpbots.simulation.diagnosis import Diagnosis
from warpbots.simulation.equilibrium import StaticEquilibrium
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.measurement import Measurement
from warpbots.simulation.stability_bound import ControlInterval
from warpbots.simulation.world_shares import WorldShares
from warpbots.solvers import DiagnosesGradients, Model, SensesSteps, Solver

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
        shares: The shares of the worlds that threads simulate.
    """

    def __init__(
        self,
        scene: Scene,
        solver: Solver,
        time_step: ControlInterval,
        inputs: Inputs,
        fields: tuple[str, ...],
        shares: WorldShares,
    ):
        """Prepare control intervals.

        Args:
            scene: The scene.
            solver: The solver.
            time_step: The control interval and its substeps.
            inputs: Checks controls and parameters; has the model.
            fields: Names of the fields of a state.
            shares: The shares of the worlds that threads simulate.
        """
        self.shares = shares
        self._solver, self.inputs, self.time_step, self._fields = solver, inputs, time_step, fields
        self._bridges: list[Bridge] = []
        self.diagnosis = Diagnosis(scene, solver, time_step, inputs, self._one_substep)
        self.control_interval = self._bridge(self._fields, self._interval, self._renew)

    @functools.cached_property
    def readings(self) -> Measurement:
        """Readings of a state, for a solver that `Senses`."""
        return self._measurement(self._solver.readings, self._solver.sense)

    @functools.cached_property
    def cheap_readings(self) -> Measurement:
        """Readings of a state without those for which the solver takes a step."""
        if not isinstance(self._solver, SensesSteps):
            return self.readings
        solver = self._solver.without_steps()
        return self._measurement(solver.readings, solver.sense)

    @functools.cached_property
    def dynamics(self) -> Measurement:
        """Equations of motion at a state, for a `Multibody` solver."""
        return self._measurement(self._solver.equations, self._solver.dynamics)

    @functools.cached_property
    def statics(self) -> StaticEquilibrium:
        """Static equilibria, for a solver with `Statics`."""

        @functools.cache
        def bridge(dt: float) -> Bridge:
            def replay(names: frozenset, wanted: frozenset) -> Replay | SharedReplay:
                return self._shared(dt, 1, names, wanted)

            return self._bridge(self._fields, replay, self._renew)

        return StaticEquilibrium(self._solver, self.inputs.model, self.inputs, bridge)

    def _measurement(self, make: Callable[..., Any], measure: Callable[..., None]) -> Measurement:
        bridge = functools.partial(self._bridge, renew=self._renew)
        return Measurement(self._solver, make, measure, bridge, self.inputs, self.diagnosis, self.shares)

    def _interval(self, names: frozenset, wanted: frozenset) -> Replay | SharedReplay:
        return self._shared(self.time_step.length, self.time_step.substeps, names, wanted)

    def _shared(self, dt: float, substeps: int, names: frozenset, wanted: frozenset) -> Replay | SharedReplay:
        replaced = names & frozenset(self.inputs.model.parameters())

        def of_share(model: Model, share: Share) -> Replay:
            return interval(self._solver, model, dt, substeps, replaced, wanted, True, share)

        return self.shares.replay(of_share)

    def _one_substep(self, names: frozenset) -> Callable[[Tensors], Tensors]:
        """A function from the inputs of a substep, named `names`, to the state after it.

        It computes all worlds with the model of the simulation, not with models of shares, because a solver explains a
        failure from the model of its last step.
        """
        replaced, length = names & frozenset(self.inputs.model.parameters()), self.time_step.length

        def replay() -> Replay:
            return interval(self._solver, self.inputs.model, length, 1, replaced, frozenset(), False)

        current = replay()

        def run(given: Tensors) -> Tensors:
            nonlocal current
            after, _ = current.run(given)
            while self.shares.grown_alone():
                current = replay()
                after, _ = current.run(given)
            return after

        return run

    def _bridge(
        self,
        outputs: tuple[str, ...],
        make: Callable[[frozenset, frozenset], Replay],
        renew: Callable[[float], bool] = lambda seconds: False,
    ) -> Bridge:
        device = self.inputs.model.device
        watch = BackwardWatch(device, _ALL if parallel(device) else 1)
        self._bridges.append(Bridge(outputs, make, self._lost_gradient, watch, renew))
        return self._bridges[-1]

    def _lost_gradient(self) -> str:
        """Why a gradient became infinite or NaN within a control interval, and the remedy, as the end of a sentence."""
        solver, substeps = self._solver, self.time_step.substeps
        if isinstance(solver, DiagnosesGradients):
            for model, first in self.shares.firsts:
                if why := solver.gradient_diagnosis(model, first, substeps):
                    return why
        return solver.lost_gradient

    def _renew(self, seconds: float) -> bool:
        """Enlarge models that had too little memory, and divide worlds among threads if a pass takes long [s].

        Returns:
            Whether replays that were made before are not to be used any more.
        """
        renewed = self.shares.grown() or self.shares.divided(seconds)
        if renewed:
            for bridge in self._bridges:
                bridge.forget()
        return renewed
