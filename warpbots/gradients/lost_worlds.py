"""Worlds of a batch that cannot go on, and how rollouts and searches learn of them."""

import contextlib
import dataclasses
from collections.abc import Iterator
from contextvars import ContextVar

import torch

from warpbots.user_warning import warn_user

__all__ = ["FIELD", "Losses", "LostWorldWarning", "FailurePoint", "counting_losses", "known_losses"]

FIELD = "lost"
"""Field of a state with 1 for each lost world, of solvers that stop a world that cannot go on."""

_counts: ContextVar[tuple["_Count", ...]] = ContextVar("counts", default=())
_known: ContextVar[bool] = ContextVar("known", default=False)


@dataclasses.dataclass(frozen=True)
class FailurePoint:
    """When and where a simulation could not go on.

    Attributes:
        step: Number of the control interval in its rollout; 0 in a single step.
        substep: Number of the solver step in the control interval.
        time: Time since the start of the rollout [s].
        world: The world; None if it is not known.
        field: The field of the state that is not finite; None if the solver found no step.
        index: Index of the first invalid entry of the field in that world.
        position: Position of the point of matter of this entry before the step [m]; None if the entry belongs to no
            point.
    """

    step: int
    substep: int
    time: float
    world: int | None = None
    field: str | None = None
    index: tuple[int, ...] | None = None
    position: tuple[float, ...] | None = None


class LostWorldWarning(UserWarning):
    """A world of a batch could not go on; the others did. The message says when, where and why.

    Attributes:
        worlds: The worlds that were lost.
        place: When and where the first of them was lost.
    """

    def __init__(self, message: str, worlds: tuple[int, ...] = (), place: FailurePoint | None = None):
        """`message` says when, where and why."""
        super().__init__(message)
        self.worlds, self.place = worlds, place


@dataclasses.dataclass
class _Count:
    worlds: int = 0


@contextlib.contextmanager
def counting_losses() -> Iterator[_Count]:
    """Count the worlds that simulations lose within this context."""
    count = _Count()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


@contextlib.contextmanager
def known_losses() -> Iterator[None]:
    """Context of a motion that is simulated again: its lost worlds have been reported and counted before."""
    token = _known.set(True)
    try:
        yield
    finally:
        _known.reset(token)


class Losses:
    """When each world of a rollout was lost.

    Attributes:
        interval: Control interval in which a world was lost, -1 for a world that was not, shape (worlds,), int.
    """

    def __init__(self, worlds: int):
        self.interval = torch.full((worlds,), -1)

    def note(self, lost: torch.Tensor, fault: tuple[FailurePoint, str]) -> None:
        """Note worlds that an interval has lost, and warn.

        Args:
            lost: Whether a world was lost in it, shape (worlds,), bool.
            fault: When and where, and a sentence that also says why.
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
