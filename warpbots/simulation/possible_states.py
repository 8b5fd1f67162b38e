"""Refusal of states that no motion can have, before anything runs from them."""

import math

import torch

from warpbots.gradients import LOST, Tensors

__all__ = ["MARKS", "refuse_impossible", "rows_of"]

MARKS = (LOST, "broken")
"""Fields that mark worlds or elements; a part of a spring may be broken, with a gradient."""


def refuse_impossible(fields: Tensors, what: str, worlds: torch.Tensor | None = None) -> None:
    """Raise if a number of a state is not finite, or a mark of lost worlds is neither 0 nor 1.

    Worlds that the state marks as lost may have any other numbers.

    Args:
        fields: Fields of the state by name, each of shape (worlds, ...).
        what: Name of the state in messages.
        worlds: Whether each world is examined, shape (worlds,), bool; None for all.

    Raises:
        ValueError: A number is impossible; the message names the field, the world and the entry.
    """
    if LOST in fields:
        mark = fields[LOST].detach()
        other = (mark != 0.0) & (mark != 1.0) & torch.isfinite(mark)
        other = other if worlds is None else other & rows_of(worlds, mark)
        if other.any():
            at = tuple(other.nonzero()[0].tolist())
            raise ValueError(
                f"{what} field {LOST!r} must be 1 for worlds that cannot go on and 0 for others, got "
                f"{mark[at].item():g}{_place(at)}; sim.state() returns a state to begin from"
            )
    with torch.no_grad():
        total = sum(field.sum() for field in fields.values() if field.numel())
    if math.isfinite(total):  # one pass over the numbers; their sum may overflow, so that they are examined again
        return
    for name, field in fields.items():
        wild = ~torch.isfinite(field.detach())
        for mask in (worlds, None if LOST not in fields or name == LOST else fields[LOST].detach() == 0.0):
            wild = wild if mask is None else wild & rows_of(mask, field)
        if wild.any():
            at = tuple(wild.nonzero()[0].tolist())
            raise ValueError(
                f"{what} field {name!r} must be finite, got {field[at].item():g}{_place(at)}; check where "
                f"it comes from; sim.state() returns a finite state to begin from"
            )


def rows_of(worlds: torch.Tensor, field: torch.Tensor) -> torch.Tensor:
    """The mask `worlds` with axes of length 1 appended, so that it broadcasts over `field`."""
    return worlds.view(-1, *(1,) * (field.dim() - 1))


def _place(at: tuple[int, ...]) -> str:
    """The world and the entry of a value, for messages."""
    return f" in world {at[0]}" + (f" at index {list(at[1:])}" if at[1:] else "")
