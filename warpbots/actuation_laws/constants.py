"""Constants and names of the laws of stress actuators, from which kernels are made."""

import functools
import re

import warp as wp

from warpbots.actuation_laws.stress import StressFunction
from warpbots.numerics import matrix, real, vector

__all__ = ["constants_type", "made", "name_of"]

_DEFINED: dict[str, list[StressFunction]] = {}
"""Laws by name, in the order of their first use."""


def name_of(definition: StressFunction) -> str:
    """Part of the names of the Warp modules with kernels of a law; it differs even between laws of the same name."""
    word = re.sub(r"\W", "_", definition.__name__)
    known = _DEFINED.setdefault(word, [])
    if definition not in known:
        known.append(definition)
    return f"{word}_{known.index(definition) + 1}"


@functools.cache
def made(definition: StressFunction, dim: int) -> wp.Function:
    """The Warp function S(F, u, c) of a law: the stress for a deformation, a control signal and constants."""
    return definition(dim)


def constants_type(shape: tuple[int, ...]) -> type:
    """Type of the constants of a law: `real`, a vector, or a square matrix."""
    if len(shape) > 2 or len(set(shape)) > 1:
        raise TypeError(f"stress_law: constants must be a number, a vector or a square matrix, got the shape {shape}")
    return {0: lambda: real, 1: lambda: vector(*shape), 2: lambda: matrix(shape[0])}[len(shape)]()
