"""Worlds of a batch that cannot go on, and how rollouts and searches come to know of them."""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

import torch

__all__ = ["FIELD", "Losses", "LostWorldWarning", "counting_losses", "known_losses"]

FIELD = "lost"
"""Field of the states of solvers that leave a world where it is when it cannot go on: 1 for such a world."""

_counts: ContextVar[tuple["_Count", ...]] = ContextVar("counts", default=())
_known: ContextVar[bool] = ContextVar("known", default=False)


class LostWorldWarning(UserWarning):
    """A world of a batch could not go on; the others did. The message says when, where and why."""


@dataclasses.dataclass
class _Count:
    worlds: int = 0


@contextlib.contextmanager
def counting_losses() -> Iterator[_Count]:
    """Count the worlds that simulations lose within it."""
    count = _Count()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


@contextlib.contextmanager
def known_losses() -> Iterator[None]:
    """Within it a motion is simulated again: what it loses has been said and counted."""
    token = _known.set(True)
    try:
        yield
    finally:
        _known.reset(token)


class Losses:
    """When each world of a rollout was lost.

    Attributes:
        interval: Control interval in which a world was lost, -1 for one that was not, shape (worlds,), int.
    """

    def __init__(self, worlds: int):
        self.interval = torch.full((worlds,), -1)

    def note(self, lost: torch.Tensor, interval: int, why: str) -> None:
        """Note worlds that an interval has lost, and warn.

        Args:
            lost: Whether a world was lost in it, shape (worlds,), bool.
            interval: Its number.
            why: When, where and why, in one sentence.
        """
        self.interval[lost.cpu()] = interval
        if _known.get():
            return
        for count in _counts.get():
            count.worlds += int(lost.sum())
        which = ", ".join(map(str, torch.nonzero(lost).reshape(-1).tolist()))
        warnings.warn(
            f"lost {'world' if lost.sum() == 1 else 'worlds'} {which} of {len(lost)}, which stay as they were; the "
            f"others go on: {why}",
            LostWorldWarning,
            stacklevel=2,
        )
