"""Measured cost of a simulation: time and memory."""

import dataclasses
import gc
import types

import warp as wp

from warpbots.tables import size

__all__ = ["Cost", "device_memory"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Measured cost of a simulation.

    Attributes:
        speed: Simulated seconds per second of computing [1]; all worlds advance together and count once.
        memory: Size of all arrays of the model and of the steps, workspace included [bytes].
    """

    speed: float
    memory: int

    def __str__(self) -> str:
        return f"{self.speed:.3g} s of simulation per second of computing, {size(self.memory)} of arrays"


_ENDS = (type, types.ModuleType, types.FunctionType, types.MethodType, wp.Device, wp.Kernel, wp.Function)
"""Objects that are not parts of a model, but refer to everything else in the process."""


def device_memory(*roots: object) -> int:
    """Size of all Warp arrays that can be reached from some objects [bytes]."""
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
