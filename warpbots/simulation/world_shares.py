"""Division of the worlds of a simulation, or of its only world, among threads."""

import itertools
import math
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from warpbots.gradients import Replay, Share, SharedReplay
from warpbots.numerics import parallel
from warpbots.simulation.input_validation import Inputs
from warpbots.solvers import Grows, Model, Solver

__all__ = ["WorldShares", "threads_of"]


_LONG = 2e-3
"""Time of a pass from which on threads are worth their overhead [s]."""


def threads_of(wanted: int | None, worlds: int, device: wp.Device) -> int:
    """Number of threads for a simulation.

    Args:
        wanted: Number that the user asked for; None for `usual_threads`, but not more than worlds if there are several.
        worlds: Number of worlds.
        device: Device of the simulation.

    Raises:
        ValueError: `wanted` is not positive, above a number of worlds that is not 1, or above 1 on a GPU.
    """
    alone = parallel(device)
    if wanted is None:
        usual = 1 if alone else usual_threads()
        return usual if worlds == 1 else min(worlds, usual)
    if wanted < 1:
        raise ValueError(f"Simulation: threads must be at least 1, or None for all cores, got {wanted}")
    if wanted > worlds > 1:
        raise ValueError(
            f"Simulation: threads must be at most the number of worlds, {worlds}, because each thread simulates whole "
            f"worlds if there are several, got {wanted}"
        )
    if alone and wanted > 1:
        raise ValueError(f"Simulation: threads are for a CPU, and {device} simulates all worlds at once; got {wanted}")
    return wanted


def usual_threads() -> int:
    """Number of cores that this process may use, or the number in the environment variable ``WARPBOTS_THREADS``.

    Raises:
        ValueError: The environment variable is not a positive integer.
    """
    wanted = os.environ.get("WARPBOTS_THREADS")
    if wanted is not None:
        if not (wanted.isascii() and wanted.isdigit() and int(wanted) > 0):
            raise ValueError(f"the environment variable WARPBOTS_THREADS must be a positive integer, got {wanted!r}")
        return int(wanted)
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which cores a process may use
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _quota()))


def _quota() -> int:
    """Cores whose time the container of this process may use; no limit is a large number."""
    try:
        time, period = pathlib.Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.ceil(int(time) / int(period))
    except (OSError, ValueError):  # no control groups, or "max"
        return sys.maxsize


class WorldShares:
    """Shares of consecutive worlds, each with a model of its own, so that threads simulate them at the same time.

    With one share, its model is the model of the simulation. If there is only one world, threads share its launches
    (`Slices`).

    Attributes:
        threads: Largest number of threads.
        sizes: Number of worlds of each share.
    """

    def __init__(self, solver: Solver, inputs: Inputs, threads: int, always: bool, build: Callable[[int], Model]):
        """Divide the worlds; models are built when they are first needed.

        Args:
            solver: The solver.
            inputs: Has the model of all worlds.
            threads: Largest number of threads; at most the number of worlds if there are several.
            always: Whether to divide the worlds at once, not only when a pass turns out to take long.
            build: Builds the model of a number of worlds.
        """
        self._solver, self._inputs, self._build, self.threads = solver, inputs, build, threads
        self._grows = solver if isinstance(solver, Grows) else None  # every interval asks, and the question is slow
        self._most = min(threads, inputs.model.worlds)
        self._divide(self._most if always else 1)

    def _divide(self, count: int) -> None:
        worlds = self._inputs.model.worlds
        self.sizes = [worlds // count + (k < worlds % count) for k in range(count)]
        each = self.threads if worlds == 1 else 1
        self._shares = [Share(first, each) for first in itertools.accumulate(self.sizes[:-1], initial=0)]
        self._models: list[Model] = []

    def divided(self, seconds: float) -> bool:
        """Divide the worlds among all threads if a pass of one thread takes long; returns whether it did.

        Args:
            seconds: Time that the kernels of a pass took [s].
        """
        if seconds < _LONG or len(self.sizes) == self._most:
            return False
        self._divide(self._most)
        return True

    @property
    def models(self) -> list[Model]:
        """The model of each share."""
        if len(self.sizes) == 1:
            return [self._inputs.model]
        if not self._models:
            self._models = [self._build(size) for size in self.sizes]
        return self._models

    @property
    def firsts(self) -> list[tuple[Model, int]]:
        """The model of each share, and the index of its first world."""
        return [(model, share.first) for model, share in zip(self.models, self._shares, strict=True)]

    def replay(self, make: Callable[[Model, Share], Replay]) -> Replay | SharedReplay:
        """A replay of all worlds, from a function that makes the replay of a share."""
        replays = [make(model, share) for model, share in zip(self.models, self._shares, strict=True)]
        return replays[0] if len(replays) == 1 else SharedReplay(replays, self.sizes)

    def grown(self) -> bool:
        """Enlarge arrays of the models that were too small in the last steps; returns whether any array was."""
        if self._grows is None:
            return False
        larger = [self._grows.grown(model) for model in self.models]
        if not any(larger):
            return False
        if len(larger) == 1:
            self._inputs.model = larger[0]
        else:
            self._models = [new or old for new, old in zip(larger, self._models, strict=True)]
        return True

    def grown_alone(self) -> bool:
        """Enlarge arrays of the model of the simulation if worlds are divided and one was too small in its last steps.

        Returns:
            Whether any array was too small.
        """
        if len(self.sizes) == 1 or self._grows is None:
            return False
        larger = self._grows.grown(self._inputs.model)
        if larger is not None:
            self._inputs.model = larger
        return larger is not None

    def report(self, dt: float) -> object:
        """Report of a solver with `Reports` on the last step, of the length `dt` [s], for all worlds."""
        reports = [self._solver.report(model, dt) for model in self.models]
        return _joined(reports) if len(reports) > 1 else reports[0]


def _joined(reports: list[Any]) -> object:
    """Reports of shares as one: arrays have the worlds as first axis, and of other values the largest one counts."""
    values = {name: [vars(r)[name] for r in reports] for name in vars(reports[0])}
    return type(reports[0])(
        **{n: np.concatenate(v) if isinstance(v[0], np.ndarray) else max(v) for n, v in values.items()}
    )
