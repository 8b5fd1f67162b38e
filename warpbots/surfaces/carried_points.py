"""Points of a body that move with the particles around them, by moving least squares (Müller et al. 2005)."""

import numpy as np

__all__ = ["CarriedPoints", "spacing_of"]

_NEIGHBORS = {2: 10, 3: 20}
_REACH = 2.6  # distance up to which particles carry a point [distances between particles]
_SOFT = 0.005  # weight of the rotation against the fit, for directions without neighbours [distances^2]
_TORN = 0.22  # deviation from an affine motion beyond which matter is torn [distances between particles]
_MOST = 3.0  # largest plausible stretch: beyond it matter has flowed, and has other neighbours


def spacing_of(volume: np.ndarray, dim: int) -> float:
    """Typical distance between particles with the given volumes [m]."""
    return float(np.median(volume)) ** (1.0 / dim)


class CarriedPoints:
    """Points that follow the best affine motion of the particles around each point.

    Rigid motions are reproduced exactly.

    A point counts as torn if no affine motion fits the particles around the point: the matter has torn, and particles
    on two sides of the point move apart.
    """

    def __init__(self, particles: np.ndarray, points: np.ndarray, spacing: float):
        """Find the particles around each point.

        Args:
            particles: Rest positions of the particles of one body [m], shape (n, dim).
            points: Rest positions of the points [m], shape (m, dim).
            spacing: Distance between particles [m].
        """
        from scipy.spatial import cKDTree

        count, dim = min(_NEIGHBORS[particles.shape[1]], len(particles)), particles.shape[1]
        distance, near = (a.reshape(len(points), count) for a in cKDTree(particles).query(points, k=count))
        reach = np.maximum(_REACH * spacing, 1.2 * distance[:, :1])
        weight = np.maximum(1.0 - (distance / reach) ** 2, 0.0) ** 2  # 0 at the distance where neighbours change
        self._near, self._weight = near, weight / weight.sum(axis=1, keepdims=True)
        self._center = np.einsum("mk,mki->mi", self._weight, particles[near])
        self._offset = particles[near] - self._center[:, None]
        self._soft = _SOFT * spacing**2
        scatter = np.einsum("mk,mki,mkj->mij", self._weight, self._offset, self._offset)
        self._inverse = np.linalg.inv(scatter + self._soft * np.eye(dim))
        self._arm, self._spacing = points - self._center, spacing

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the points at one moment, and whether each point is torn.

        Args:
            x: Positions of the particles [m], shape (n, dim).

        Returns:
            Positions of the points [m], shape (m, dim), and whether each point is torn, shape (m,), bool.
        """
        x = x.astype(np.float64)[self._near]
        center = np.einsum("mk,mki->mi", self._weight, x)
        moved = x - center[:, None]
        mixed = np.einsum("mk,mki,mkj->mij", self._weight, moved, self._offset)
        u, _, v = np.linalg.svd(mixed)
        u[:, :, -1] *= np.linalg.det(u @ v)[:, None]  # a rotation, not a reflection
        F = (mixed + self._soft * u @ v) @ self._inverse
        away = moved - np.einsum("mij,mkj->mki", F, self._offset)
        deviation = np.einsum("mk,mki,mki->m", self._weight, away, away) ** 0.5
        torn = (deviation > _TORN * self._spacing) | (np.linalg.norm(F, ord=2, axis=(1, 2)) > _MOST)
        return center + np.einsum("mij,mj->mi", F, self._arm), torn
