"""A recorded motion: a trajectory whose states are stored, because forces and parameters changed on the way."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from warpbots.scene.field_types import checked
from warpbots.trajectory import TensorState_co, Trajectory

__all__ = ["Recording", "recorded"]


@dataclasses.dataclass(frozen=True, repr=False)
class Recording(Trajectory[TensorState_co]):
    """A trajectory with stored states, for films, files and curves.

    During a recording, bodies may be pulled and parameters may change. Such a motion cannot be simulated again from its
    start, controls and parameters. Its `parameters` are those at the end.

    Attributes:
        moments: States after each control interval.
    """

    moments: tuple[TensorState_co, ...] = ()

    @checked
    def states(self, every: int = 1) -> Iterator[tuple[float, TensorState_co]]:
        """Times [s] and states: at the start, after every `every` control intervals, and at the end."""
        if every < 1:
            raise ValueError(f"states: every must be at least 1, got {every}")
        yield 0.0, self.start
        for i, state in enumerate(self.moments, 1):
            if i % every == 0 or i == self.steps:
                yield i * self.control_interval, state

    def __reduce__(self) -> tuple:
        kind, arguments = super().__reduce__()
        return kind, (*arguments, self.moments)


def recorded(
    simulation: Any, states: list[Any], controls: list[torch.Tensor], parameters: dict[str, torch.Tensor]
) -> Recording[Any]:
    """The recording of `states`, one more than `controls`.

    Args:
        simulation: The simulation.
        states: The state at the start and after each control interval.
        controls: Control signals in these intervals, each of shape (worlds, channels).
        parameters: Tensors that replace parameters of the model at the end, by name.
    """
    kept = [state.mapped(lambda field: field.detach().clone()) for state in states]
    return Recording(
        simulation=simulation,
        start=kept[0],
        final=kept[-1],
        control=torch.stack(controls, dim=1).detach(),
        observation=None,
        parameters=parameters,
        lost=torch.full((simulation.worlds,), -1, dtype=torch.int64),
        moments=tuple(kept[1:]),
    )
