"""Worlds of a batch that cannot go on: warnings, records for rollouts, and counts for searches."""

import contextlib
import dataclasses
from collections.abc import Iterator
from contextvars import ContextVar

import torch

from warpbots.user_warning import warn_user

__all__ = ["FIELD", "Losses", "LostWorldWarning", "FailurePoint", "counting_losses", "known_losses"]

FIELD = "lost"
"""Name of a field of the state, 1 for lost worlds and 0 for others; only some solvers can stop single worlds."""

_counts: ContextVar[tuple["_Count", ...]] = ContextVar("counts", default=())
_known: ContextVar[bool] = ContextVar("known", default=False)


@dataclasses.dataclass(frozen=True)
class FailurePoint:
    """Time and place at which a simulation could not go on.

    Attributes:
        step: Index of the control interval in the rollout; 0 if a single interval was simulated.
        substep: Index of the solver step in the control interval.
        time: Time since the start of the rollout [s].
        world: Index of the world; None if the world is not known.
        field: Name of the field of the state that is not finite; None if all fields are finite, for example if the
            solver found no solution for a step.
        index: Index, within the world, of the first entry of this field that is not finite.
        position: Position, before the step, of the point of matter to which this entry belongs [m]; None if the entry
            belongs to no point.
    """

    step: int
    substep: int
    time: float
    world: int | None = None
    field: str | None = None
    index: tuple[int, ...] | None = None
    position: tuple[float, ...] | None = None


class LostWorldWarning(UserWarning):
    """Some worlds of a batch could not go on, while the other worlds did. The message says when, where and why.

    Attributes:
        worlds: Indices of the worlds that were lost.
        place: Time and place at which the first of these worlds was lost.
    """

    def __init__(self, message: str, worlds: tuple[int, ...] = (), place: FailurePoint | None = None):
        """Create the warning; `message` says when, where and why the worlds were lost."""
        super().__init__(message)
        self.worlds, self.place = worlds, place


@dataclasses.dataclass
class _Count:
    worlds: int = 0


@contextlib.contextmanager
def counting_losses() -> Iterator[_Count]:
    """Context that counts the worlds that simulations lose.

    Yields:
        An object whose attribute ``worlds`` is the number of worlds lost so far.
    """
    count = _Count()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


@contextlib.contextmanager
def known_losses() -> Iterator[None]:
    """Context in which lost worlds are neither reported nor counted, because a motion is simulated a second time."""
    token = _known.set(True)
    try:
        yield
    finally:
        _known.reset(token)


class Losses:
    """The control interval in which each world of a rollout was lost.

    Attributes:
        interval: Index of the control interval in which each world was lost, or -1 if the world was not lost, shape
            (worlds,), int.
    """

    def __init__(self, worlds: int):
        self.interval = torch.full((worlds,), -1)

    def note(self, lost: torch.Tensor, fault: tuple[FailurePoint, str]) -> None:
        """Record the worlds that were lost in one interval, and warn.

        Args:
            lost: Whether each world was lost in the interval, shape (worlds,), bool.
            fault: Time and place at which the first world was lost, and a sentence that says when, where and why.
        """
        place, why = fault
        self.interval[lost.cpu()] = place.step
        if _known.get():
            return
        for count in _counts.get():
            count.worlds += int(lost.sum())
        worlds = tuple(torch.nonzero(lost).reshape(-1).tolist())
        which = f"world{'s' * (len(worlds) > 1)} {', '.join(map(str, worlds))} of {len(lost)}"
        message = f"lost {which}, which stay as they were; the others go on: {why}"
        warn_user(LostWorldWarning(message, worlds, place))
