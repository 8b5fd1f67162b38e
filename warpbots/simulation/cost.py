"""Measured cost of a simulation: time and memory."""

import dataclasses
import gc
import time
import types
from collections.abc import Callable
from typing import Any

import torch
import warp as wp

from warpbots.tables import size

__all__ = ["Cost", "device_memory", "speed_of"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Measured cost of a simulation.

    Attributes:
        speed: Simulated seconds per second of computing [1]; simulated time is not multiplied by the number of worlds.
        memory: Size of all arrays of the model and of the steps, workspace included [bytes].
    """

    speed: float
    memory: int

    def __str__(self) -> str:
        return f"{self.speed:.3g} s of simulation per second of computing, {size(self.memory)} of arrays"


def speed_of(step: Callable[[Any], Any], state: Any, intervals: int, dt: float, device: wp.Device) -> float:
    """Simulated seconds per second of computing [1].

    Args:
        step: Function from a state to the state after one control interval.
        state: State at the start; two intervals run before the clock starts: the first compiles kernels, the second
            captures them.
        intervals: Number of control intervals to simulate.
        dt: Length of a control interval [s].
        device: Device of the simulation.
    """
    with torch.no_grad():
        state = step(step(state))
        wp.synchronize_device(device)
        start = time.perf_counter()
        for _ in range(intervals):
            state = step(state)
        wp.synchronize_device(device)
    return intervals * dt / (time.perf_counter() - start)


_ENDS = (type, types.ModuleType, types.FunctionType, types.MethodType, wp.Device, wp.Kernel, wp.Function)
"""Types of objects whose references `device_memory` does not follow, because they lead to the whole process."""


def device_memory(*roots: object) -> int:
    """Total size of all Warp arrays that the objects `roots` refer to, directly or through other objects [bytes]."""
    arrays, seen, ahead = {}, set(), list(roots)
    while ahead:
        thing = ahead.pop()
        if id(thing) in seen or isinstance(thing, _ENDS):
            continue
        seen.add(id(thing))
        if isinstance(thing, wp.array):
            arrays[thing.ptr] = max(thing.capacity, arrays.get(thing.ptr, 0))
            ahead.append(thing.grad)
        else:
            ahead += gc.get_referents(thing)
    return sum(arrays.values())
