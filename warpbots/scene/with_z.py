"""Vectors of 2D scenes as vectors in 3D."""

from collections.abc import Sequence

import numpy as np

__all__ = ["with_z"]


def with_z(x: Sequence[float] | np.ndarray, z: float = 0.0) -> np.ndarray:
    """Vectors with three components, shape (..., 3); vectors `x` with two components get `z` as their third one."""
    vectors = np.asarray(x, dtype=float)
    missing = [(0, 0)] * (vectors.ndim - 1) + [(0, 3 - vectors.shape[-1])]
    return np.pad(vectors, missing, constant_values=z)
