"""The scalar type of this process, and the vector and matrix types with this scalar type.

Kernels are written once against the names of this module. `real` is float32, or float64 when the environment
variable ``WARPBOTS_PRECISION`` is set to ``float64`` before warpbots is imported: Warp compiles a kernel for fixed
types, so the precision belongs to the process and not to a simulation.
"""

import os

import numpy as np
import warp as wp

__all__ = ["NODE", "index_vector", "matrix", "precision", "real", "real_numpy", "vector"]

precision = os.environ.get("WARPBOTS_PRECISION", "float32")
"""Name of the scalar type of this process: ``"float32"`` or ``"float64"``."""

if precision not in ("float32", "float64"):
    raise ValueError(
        f"WARPBOTS_PRECISION={precision!r} is not a precision; set it to 'float32' (the default) or 'float64'"
    )

real = {"float32": wp.float32, "float64": wp.float64}[precision]
"""Warp scalar type of the fields of models and states."""

real_numpy = {"float32": np.float32, "float64": np.float64}[precision]
"""NumPy scalar type of the same precision."""

_VECTORS = {
    ("float32", 2): wp.vec2f, ("float32", 3): wp.vec3f, ("float32", 4): wp.vec4f,
    ("float64", 2): wp.vec2d, ("float64", 3): wp.vec3d, ("float64", 4): wp.vec4d,
}  # fmt: skip
_MATRICES = {
    ("float32", 2): wp.mat22f, ("float32", 3): wp.mat33f,
    ("float64", 2): wp.mat22d, ("float64", 3): wp.mat33d,
}  # fmt: skip

NODE = _VECTORS[precision, 4]
"""The numbers of a grid node: momentum (or velocity) in the first components, mass in the last one.

A node has four components in 2D, too: in float32 it is then one 16-byte word, which vector instructions and vector
atomics move at once.
"""


def vector(dim: int, scalar: type = real) -> type:
    """Warp vector type with `dim` components, in the precision of this process unless `scalar` is another type."""
    return _VECTORS.get((scalar.__name__, dim)) or wp.types.vector(dim, scalar)


def matrix(dim: int) -> type:
    """Warp matrix type of shape (`dim`, `dim`), with `dim` 2 or 3, in the precision of this process."""
    return _MATRICES[precision, dim]


def index_vector(dim: int) -> type:
    """Warp vector type of `dim` 32-bit integers, for indices of cells and resolutions of grids."""
    return {2: wp.vec2i, 3: wp.vec3i}[dim]
