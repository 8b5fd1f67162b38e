"""Quadratic tetrahedra: ten nodes and four points of quadrature, which bend without locking."""

import numpy as np

from warpbots.solvers.projective.elements.reference_elements import EDGES, QUADRATIC_TETRAHEDRON
from warpbots.solvers.projective.elements.solid_dampers import damper_kind
from warpbots.solvers.projective.elements.solids import solid_kind

__all__ = ["DAMPED_QUADRATIC_TETS", "QUADRATIC_TETS", "with_midsides"]

QUADRATIC_TETS = solid_kind(QUADRATIC_TETRAHEDRON)
"""Quadratic tetrahedra of solids."""

DAMPED_QUADRATIC_TETS = damper_kind(QUADRATIC_TETRAHEDRON)
"""Their dampers."""


def with_midsides(x: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear tetrahedra as quadratic ones, with a node in the middle of every edge.

    Args:
        x: Positions of the corners [m], shape (n, 3).
        tets: Corners of the tetrahedra, shape (n_tets, 4), int.

    Returns:
        Positions of corners, then of midside nodes [m]; nodes of the tetrahedra, shape (n_tets, 10).
    """
    ends = np.sort(tets[:, EDGES], axis=-1).reshape(-1, 2)
    edges, number = np.unique(ends, axis=0, return_inverse=True)
    midsides = len(x) + number.reshape(len(tets), len(EDGES))
    return np.concatenate([x, x[edges].mean(axis=1)]), np.concatenate([tets, midsides], axis=1)
