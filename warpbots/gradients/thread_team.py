"""Threads that run tasks at the same time."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["at_once"]

T = TypeVar("T")
_team: list[ThreadPoolExecutor] = []


def at_once(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Results of tasks, of which this thread runs the first and other threads run the others at the same time.

    An exception, such as an interrupt from the keyboard, is raised after all tasks have ended.
    """
    if not _team:
        _team.append(ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="warpbots"))
    others = [_team[0].submit(task) for task in tasks[1:]]
    try:
        first = tasks[0]()
    finally:
        wait(others)
    return [first, *(other.result() for other in others)]


os.register_at_fork(after_in_child=_team.clear)
