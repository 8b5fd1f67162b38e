"""Resets of single worlds of a state to a new start."""

import dataclasses
from typing import Any

import torch

from warpbots.simulation.ages import chosen_worlds
from warpbots.simulation.input_validation import Inputs
from warpbots.simulation.possible_states import refuse_impossible, rows_of

__all__ = ["reset"]


def reset(state: Any, start: Any, worlds: Any, inputs: Inputs, count: int) -> Any:
    """See `Simulation.reset`.

    Args:
        state: The state of all worlds.
        start: A state from which the chosen worlds start again.
        worlds: The chosen worlds: a mask or a list of indices.
        inputs: Fits the fields of `start` to the fields of `state`.
        count: Number of worlds.
    """
    if type(start) is not type(state):
        raise ValueError(
            f"reset: start must be a state of the same solver as state, {type(state).__name__}, got "
            f"{type(start).__name__}"
        )
    fields, given = {}, {}
    for field in dataclasses.fields(state):
        now = getattr(state, field.name)
        if now.shape[0] != count:
            raise ValueError(
                f"reset: state field {field.name!r} must have a first axis of {count} worlds, got shape "
                f"{tuple(now.shape)}"
            )
        chosen = chosen_worlds(worlds, count, now.device, "reset")
        new = inputs.fit(getattr(start, field.name), now, f"reset: field {field.name!r} of start")
        fields[field.name] = torch.where(rows_of(chosen, now), new, now)
        given[field.name] = new
    refuse_impossible(given, "reset: start:", chosen)
    return type(state)(**fields)
