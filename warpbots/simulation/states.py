"""States that a simulation is given: they have to be its own."""

import dataclasses
from typing import Any

import torch

from warpbots.scene.field_types import shown, with_article

__all__ = ["StateLayout"]


class StateLayout:
    """What the states of a simulation have in common: their class, and the shapes and types of their fields."""

    def __init__(self, example: Any):
        """Of one of them, of which no memory is kept.

        Args:
            example: A state.
        """
        self._class = type(example)
        self._fields = {f.name: getattr(example, f.name).detach().to("meta") for f in dataclasses.fields(example)}

    def own(self, state: Any, what: str) -> Any:
        """The state, if it is one of the simulation.

        Args:
            state: Any object.
            what: Name of the state in messages.

        Raises:
            ValueError: It is none, or one of another simulation.
        """
        if type(state) is not self._class:
            raise ValueError(
                f"{what} must be {with_article(self._class.__name__)} of this simulation, as sim.state() or the final "
                f"of a trajectory, got {shown(state)}"
            )
        for name, own in self._fields.items():
            value = getattr(state, name)
            if not isinstance(value, torch.Tensor):
                raise ValueError(f"{what}: field {name!r} must be a torch tensor, got {shown(value)}")
            if (value.shape, value.dtype) != (own.shape, own.dtype):
                raise ValueError(
                    f"{what} is one of another simulation: field {name!r} has shape {tuple(value.shape)} and "
                    f"type {value.dtype}, and must have {tuple(own.shape)} and {own.dtype}"
                )
        return state
