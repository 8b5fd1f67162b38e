"""Shorter steps in the worlds in which a step fails, and the adjoint of these steps.

A step that fails is replaced by two steps of half its length. Each of these is halved in turn if it fails, down to a
limit. Every world counts its own time, in units of the shortest step, so that worlds do not depend on one another. The
next step of a world is the longest step that recursive halving would take at the time of this world.

The adjoint repeats the shorter steps, bit by bit the same, and then goes back through them one by one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from warpbots.numerics import clear_gradients, copy, if_then, launch, rarely, real, while_loop
from warpbots.solvers.projective import halved_components, islands, step_clock
from warpbots.solvers.projective.contact.closed_gaps import find_buried_kernel, find_closed_kernel
from warpbots.solvers.projective.implicit_step import implicit_step
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.prescribed_step import PrescribedStep
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.step_adjoint import step_adjoint
from warpbots.solvers.projective.step_clock import HALVED, LOST
from warpbots.solvers.projective.wrench_seeds import WrenchSeeds
from warpbots.solvers.world_rows import add_rows, copy_rows, load_rows, store_rows

__all__ = ["ShorterSteps"]

_LATE = 1e-6
"""Time after the end of a prescribed motion at which a step may still end [steps]."""
_PATIENCE = 0.25
"""Fraction of `max_iterations` after which a step is halved, if it can be halved."""


class ShorterSteps:
    """A step of all worlds, divided into shorter steps in worlds in which this is necessary."""

    def __init__(
        self,
        model: ProjectiveModel,
        state: ProjectiveState,
        control: wp.array,
        state_out: ProjectiveState,
        dt: float,
        solver: Any,
    ):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            state: The state at the start; not changed.
            control: Control signals, shape (worlds, channels).
            state_out: The state to write; different arrays from `state`.
            dt: Length of the step [s].
            solver: The `ProjectiveDynamics` with the tolerance and the limits of a step.
        """
        self._model, self._state, self._control, self._out, self._dt = model, state, control, state_out, dt
        self._solver, self._halvings = solver, solver.max_halvings
        workspace = model.workspace.shorter
        self._clock, self._device = workspace.clock, model.device
        self._islands, self._boxes = model.matrices.islands, workspace.boxes
        self._nodes, self._members = model.topology.sizes.nodes, workspace.members
        self._bounded = self._islands.count > 1 and model.topology.sizes.capacity > 0
        self._taken = workspace.taken(state_out)

    def _each(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        launch(kernel, self._model.worlds, inputs, outputs, self._device)

    def _length(self, level: int) -> float:
        return self._dt / 2**level

    def take(self, beyond: bool = False) -> None:
        """Take the step, or shorter ones; worlds in which the shortest steps fail stay as they are and are lost.

        So are worlds in which a prescribed motion ends before the step, unless the step may go `beyond` its end, where
        the last pose stays.
        """
        clock, state, out = self._clock, self._state, self._out
        self._each(step_clock.begin_kernel, [state.lost], [self._islands, clock])
        if np.isfinite(self._model.frames.end) and not beyond:
            inputs = [wp.float64(self._model.frames.end + _LATE * self._dt), wp.float64(self._dt), state.time]
            self._each(step_clock.end_of_motion_kernel, inputs, [clock])
        self._forbid_impossible()
        clock.unusual.zero_()
        ended = self._step(state, out, 0)
        self._each(step_clock.judge_kernel, [self._halvings, *ended], [clock])
        rarely(clock.unusual, self._take_shorter)
        self._each(step_clock.end_kernel, [clock, state.lost, state.shorter_steps], [out.lost, out.shorter_steps])
        if self._taken is not None:
            copy(self._taken.outcome, clock.outcome)
            copy(self._taken.unusual, clock.unusual)
            copy(self._taken.members, clock.members)

    def _forbid_impossible(self) -> None:
        """Skip the step, in each world, if at its end obstacles meet at a node, or an obstacle contains a held node."""
        model, nodes, x = self._model, self._nodes, self._state.position.flatten()
        if not model.may_close:
            return
        PrescribedStep(model, self._state, self._control, self._dt)
        topology, (held, allowed) = model.matrices.of(self._dt).contact, model.topology.held_surface
        obstacles, closed, buried = (
            [model.obstacles, model.frames.solids],
            model.workspace.closed,
            model.workspace.buried,
        )
        for found in (closed, buried):
            found.fill_(nodes)
        inputs, each = [topology, *obstacles, nodes, x], (model.worlds, len(model.topology.candidates))
        launch(find_closed_kernel, each, inputs, [self._clock.where, closed], self._device)
        inputs, each = [model.nodes, *obstacles, held, allowed, x], (model.worlds, held.size)
        launch(find_buried_kernel, each, inputs, [self._clock.where, buried], self._device)

    def _step(
        self, state: ProjectiveState, out: ProjectiveState, level: int
    ) -> tuple[IterationState, wp.array, wp.array]:
        """Take a step of a level in chosen worlds; returns how it ended, and where there was no room for contacts."""
        h, where = self._length(level), self._clock.where
        limit = self._solver.max_iterations
        if level < self._halvings:
            limit = max(1, int(_PATIENCE * limit))
        limits = self._solver.tolerance_of(h), limit
        implicit_step(self._model, state, self._control, out, h, where, *limits)
        matrix = self._model.matrices.of(h)
        return matrix.iteration.progress, matrix.compliance.missing, self._model.workspace.contact.search.outgrown

    def _take_shorter(self) -> None:
        here, there, _ = self._model.workspace.shorter.scratch(self._state, gradient=False)
        self._each_component(halved_components.choose_members_kernel, [self._islands], [self._clock])
        if self._bounded:
            ends = [a.flatten() for a in (self._state.position, self._state.velocity, self._out.position)]
            inputs = [self._islands, self._nodes, real(self._dt), *ends]
            self._each_component(halved_components.box_kernel, inputs, [self._boxes])
            self._each(halved_components.join_kernel, [self._islands, self._boxes], [self._clock])
        self._take_shorter_steps(here, there)
        self._copy(here.motion(), self._out.motion())
        self._choose(LOST)
        copy_rows(self._clock.where, self._state.motion(), self._out.motion())

    def _each_component(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        launch(kernel, (self._model.worlds, self._islands.count), inputs, outputs, self._device)

    def _copy(self, source: list[wp.array | None], destination: list[wp.array]) -> None:
        """Copy the entries of components that take shorter steps; without a source, set them to zero."""
        *of_state, of_worlds, of_others = self._members
        worlds = self._model.worlds
        for component, mask in zip(self._model.topology.state_components, of_state, strict=True):
            inputs = [self._islands, component, self._clock]
            launch(halved_components.members_kernel, (worlds, component.size), inputs, [mask], self._device)
        of_nodes, of_coordinates, of_velocities = of_state
        launch(halved_components.others_kernel, of_nodes.size, [of_nodes], [of_others], self._device)
        self._each(islands.worlds_kernel, [self._islands, self._clock.members], [of_worlds])
        owners = [of_nodes, of_nodes, of_worlds, of_worlds, of_coordinates, of_velocities]
        for owner, a, b in zip(owners, source, destination, strict=False):
            copy_rows(owner, [a], [b])

    def _choose(self, *outcomes: int) -> None:
        first, last = outcomes[0], outcomes[-1]
        self._each(step_clock.choose_kernel, [int(first), int(last)], [self._clock])

    def _take_shorter_steps(
        self, here: ProjectiveState, there: ProjectiveState, kept: Callable[[int], None] | None = None
    ) -> None:
        """Take the shorter steps from the start to the end of the step, in worlds that take them.

        Args:
            here: The state before each shorter step; after the last one, the state at the end of the step.
            there: The state after each shorter step.
            kept: Function that is called after each step with its level.
        """
        clock = self._clock
        for level in range(1, self._halvings + 1):
            self._model.matrices.of(self._length(level))  # no allocation while a loop is captured
        for a, b in zip(self._state.motion(), here.motion(), strict=True):
            copy(b, a)
        clock.any.zero_()
        self._each(step_clock.begin_shorter_kernel, [], [self._islands, clock])

        def at_level(level: int) -> Callable[[], None]:
            def step() -> None:
                ended = self._step(here, there, level)
                if self._bounded:
                    inputs = [self._islands, self._nodes, there.position.flatten(), self._boxes, clock]
                    dim, outputs = (self._model.worlds, self._nodes), [self._islands.strayed]
                    launch(halved_components.stray_kernel, dim, inputs, outputs, self._device)
                self._each(step_clock.advance_kernel, [level, self._halvings, *ended], [self._islands, clock])
                for a, b in zip(there.motion(), here.motion(), strict=True):
                    copy(b, a)
                copy_rows(clock.again, self._state.motion(), here.motion())
                if kept is not None:
                    kept(level)

            return step

        def pass_levels() -> None:
            for level in range(1, self._halvings + 1):
                clock.here.zero_()
                self._each(step_clock.at_level_kernel, [level], [clock])
                if_then(clock.here, at_level(level))

        while_loop(clock.any, pass_levels)

    def adjoint(self, wrenches: WrenchSeeds | None = None) -> None:
        """Pass the gradient at the end of the step back; clears it in components that were halved or lost.

        Args:
            wrenches: Gradients of wrenches on obstacles, constraints and rigid bodies in the step; None without any.
        """
        taken = self._taken
        rarely(taken.unusual, self._hide)
        self._step_adjoint(self._state, self._out, 0, wrenches)
        rarely(taken.unusual, self._go_back)

    def _step_adjoint(
        self, state: ProjectiveState, out: ProjectiveState, level: int, wrenches: WrenchSeeds | None = None
    ) -> None:
        limits = self._solver.tolerance, self._solver.max_iterations
        whole = level == 0 and wrenches is None
        step_adjoint(self._model, state, self._control, out, self._length(level), *limits, wrenches, whole)

    def _hide(self) -> None:
        """Let halved or lost components rest: the adjoint of the full step sees a valid state with zero gradient."""
        out, saved = self._out.motion(), self._saved()
        self._recall()
        clear_gradients(saved)
        self._copy(out, saved)
        self._copy(_gradients(out), _gradients(saved))
        self._copy(self._state.motion(), out)
        self._copy([None] * len(out), _gradients(out))
        copy_rows(self._members[0], [None], [self._out.velocity])

    def _recall(self) -> None:
        """Restore which components took shorter steps, or were lost with their world."""
        copy(self._clock.outcome, self._taken.outcome)
        copy(self._clock.members, self._taken.members)

    def _saved(self) -> list[wp.array]:
        """Buffer for the end of the step and its gradient."""
        return self._model.workspace.shorter.scratch(self._state, gradient=True)[2].motion()

    def _go_back(self) -> None:
        """Pass gradients of halved worlds back through shorter steps, and of lost worlds straight to the start."""
        clock, workspace, out, saved = self._clock, self._model.workspace, self._out.motion(), self._saved()
        here, there, _ = workspace.shorter.scratch(self._state, gradient=True)
        self._recall()
        end = workspace.end(there)
        ends = [] if end is None else end.arrays()
        path, resting = workspace.shorter.path(self._state, self._halvings, ends), self._members[-1]

        def keep(level: int) -> None:
            store_rows(clock.took, clock.before, [clock.taken, *ends], path.steps)
            store_rows(clock.took, clock.steps, there.motion(), path.states)

        clock.steps.zero_()
        store_rows(workspace.everywhere, clock.steps, self._state.motion(), path.states)
        self._take_shorter_steps(here, there, keep)
        self._rest(here, there, ends)
        clock.any.zero_()
        self._each(step_clock.turn_kernel, [], [clock])

        def at_level(level: int) -> Callable[[], None]:
            def step() -> None:
                load_rows(clock.where, clock.before, path.states, here.motion())
                load_rows(clock.where, clock.steps, path.states, there.motion())
                load_rows(clock.where, clock.before, path.steps[1:], ends)
                clear_gradients([*here.motion(), *there.motion()])
                copy_rows(clock.where, _gradients(saved), _gradients(there.motion()))
                copy_rows(resting, [None], [there.velocity])
                self._step_adjoint(here, there, level)
                copy_rows(clock.where, _gradients(here.motion()), _gradients(saved))
                self._each(step_clock.step_back_kernel, [], [clock])

            return step

        def pass_levels() -> None:
            for level in range(1, self._halvings + 1):
                clock.here.zero_()
                self._each(step_clock.back_at_level_kernel, [level, path.steps[0]], [clock])
                if_then(clock.here, at_level(level))

        while_loop(clock.any, pass_levels)
        self._choose(HALVED, LOST)
        add_rows(clock.where, _gradients(saved), _gradients(self._state.motion()))
        self._copy(saved, out)

    def _rest(self, here: ProjectiveState, there: ProjectiveState, ends: list[wp.array]) -> None:
        """Write valid states for worlds that take no part in the adjoint of a shorter step."""
        for state in (here, there):
            for a, b in zip(self._state.motion(), state.motion(), strict=True):
                copy(b, a)
        there.velocity.zero_()
        for array in ends:
            array.zero_()


def _gradients(arrays: list[wp.array]) -> list[wp.array]:
    return [array.grad for array in arrays]
