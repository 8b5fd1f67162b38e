"""Threads that run tasks at the same time."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from warpbots.interrupts import interrupts_deferred

__all__ = ["at_once", "together"]

T = TypeVar("T")
_team: list[ThreadPoolExecutor] = []
_meeting: dict[int, ThreadPoolExecutor] = {}
"""Threads of `together`, by their number."""

_room = [threading.Lock()]
"""Lock of the threads of `together`."""


def at_once(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Results of tasks, of which this thread runs the first and other threads run the others at the same time.

    An exception, such as an interrupt from the keyboard, is raised after all tasks have ended.
    """
    if not _team:
        _team.append(_threads(os.cpu_count() or 1))
    return _run(_team[0], tasks, lambda: None)


def together(tasks: Sequence[Callable[[], T]], call_off: Callable[[], None]) -> list[T]:
    """`at_once` for tasks that wait for one another: each has a thread, and no other such tasks run meanwhile.

    Args:
        tasks: The tasks.
        call_off: Function after which the tasks wait no longer; it is called when one of them fails.
    """

    def guarded(task: Callable[[], T]) -> T:
        try:
            return task()
        except BaseException:
            call_off()
            raise

    with _room[0]:
        others = len(tasks) - 1
        if others not in _meeting:
            _meeting[others] = _threads(others)
        return _run(_meeting[others], [lambda task=task: guarded(task) for task in tasks], call_off)


def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=count, thread_name_prefix="warpbots")


def _run(team: ThreadPoolExecutor, tasks: Sequence[Callable[[], T]], call_off: Callable[[], None]) -> list[T]:
    others: list[Future[T]] = []
    with interrupts_deferred():
        try:
            others.extend(team.submit(task) for task in tasks[1:])
            first = tasks[0]()
        except BaseException:
            call_off()
            raise
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]


def _begin_again() -> None:
    """Forget threads and locks of the process of which this one is a copy."""
    _room[:] = [threading.Lock()]
    _team.clear()
    _meeting.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_begin_again)
