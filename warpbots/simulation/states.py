"""Check that a state belongs to a simulation."""

import dataclasses
from typing import Any

import torch

from warpbots.scene.field_types import shown, with_article

__all__ = ["StateLayout"]


class StateLayout:
    """Layout of the states of a simulation: their class, and the shapes and types of their fields."""

    def __init__(self, example: Any):
        """Take the layout from an example, which is not kept.

        Args:
            example: A state.
        """
        self._class = type(example)
        self._fields = {f.name: getattr(example, f.name).detach().to("meta") for f in dataclasses.fields(example)}

    def own(self, state: Any, what: str) -> Any:
        """Return `state` if it belongs to the simulation.

        Args:
            state: Any object.
            what: Name of the state in messages.

        Raises:
            ValueError: `state` is not a state, or belongs to another simulation.
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
