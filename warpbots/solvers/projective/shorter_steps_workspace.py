"""Arrays of the shorter steps that replace a step that fails, and of how each step was taken."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.numerics import vector
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.projective.halved_components import Boxes
from warpbots.solvers.projective.step_clock import StepClock, step_clock
from warpbots.solvers.projective.topology import MeshTopology
from warpbots.solvers.solver import State

__all__ = ["ShorterStepsWorkspace", "StepPath", "Taken"]


@dataclasses.dataclass(frozen=True)
class Taken:
    """How a step was taken, as its adjoint needs it.

    Attributes:
        outcome: Outcome of the step, see `StepClock`, shape (worlds,).
        unusual: Number of worlds that were halved or lost, shape (1,).
        members: 1 for a component that was halved or lost, shape (worlds * components,).
    """

    outcome: wp.array
    unusual: wp.array
    members: wp.array


@dataclasses.dataclass(frozen=True)
class StepPath:
    """All shorter steps that replaced one; each array has a slot for each shorter step.

    Attributes:
        states: Arrays of `ProjectiveState.motion` before each shorter step, and at the end.
        steps: Levels of the shorter steps, shape (slots, worlds), and the arrays of `StepEnd` after each shorter step.
    """

    states: list[wp.array]
    steps: list[wp.array]


@dataclasses.dataclass(frozen=True)
class ShorterStepsWorkspace:
    """Arrays of shorter steps.

    Attributes:
        topology: The tables from which the sizes follow.
    """

    topology: MeshTopology

    def _zeros(self, count: int, dtype: type) -> wp.array:
        return wp.zeros(self.topology.sizes.worlds * count, dtype=dtype, device=self.topology.device)

    @functools.cached_property
    def clock(self) -> StepClock:
        """Progress of worlds that take shorter steps."""
        return step_clock(self.topology.sizes.worlds, len(self.topology.components), self.topology.device)

    @functools.cached_property
    def boxes(self) -> Boxes:
        """Boxes of components."""
        boxes, count = Boxes(), len(self.topology.components)
        boxes.lower, boxes.upper = (self._zeros(count, vector(3)) for _ in range(2))
        return boxes

    @functools.cached_property
    def members(self) -> tuple[wp.array, ...]:
        """1 for nodes, joint coordinates, joint velocities and worlds that take shorter steps; last, 1 for other nodes.

        Five arrays; each has all worlds in one row.
        """
        counts = [component.size for component in self.topology.state_components]
        return tuple(self._zeros(count, int) for count in (*counts, 1, counts[0]))

    @functools.cached_property
    def _shorter(self) -> dict:
        return {}

    def scratch(self, like: State, gradient: bool) -> list[State]:
        """Three states with the shapes of `like`, with gradients or without, for shorter steps."""
        if gradient not in self._shorter:
            states = [like.mapped(lambda a: wp.zeros_like(a, requires_grad=gradient)) for _ in range(3)]
            self._shorter[gradient] = states
        return self._shorter[gradient]

    def last_start(self) -> dict[str, np.ndarray]:
        """Fields of the states in which the last shorter steps began, as NumPy arrays."""
        return {name: array.numpy() for name, array in vars(self._shorter[False][0]).items()}

    def path(self, like: State, halvings: int, ends: list[wp.array]) -> StepPath:
        """Storage for the shorter steps of a step with up to `halvings` halvings, for its adjoint.

        Args:
            like: A state.
            halvings: Largest number of halvings.
            ends: Arrays of the `StepEnd` of a shorter step.
        """
        name, slots = f"path of {halvings}", 2**halvings
        if name not in self._shorter:
            self._shorter[name] = StepPath(
                [_slots(slots + 1, array) for array in like.motion()],
                [_slots(slots, self.clock.taken), *(_slots(slots, a) for a in ends)],
            )
        return self._shorter[name]

    @functools.cached_property
    def _outcomes(self) -> AdjointCache:
        return AdjointCache()

    def taken(self, state_out: State) -> Taken | None:
        """Record of how the step to `state_out` was taken, for its adjoint; None if there is no adjoint."""
        if not state_out.position.requires_grad:
            return None
        return self._outcomes.of(
            state_out,
            lambda: Taken(*(wp.zeros_like(getattr(self.clock, name)) for name in ("outcome", "unusual", "members"))),
        )


def _slots(count: int, like: wp.array) -> wp.array:
    """An array with room for `count` copies of `like`."""
    return wp.zeros((count, *like.shape), dtype=like.dtype, device=like.device)
