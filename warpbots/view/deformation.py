"""Deformation of matter around each particle, computed from positions alone; therefore it works with every solver."""

import numpy as np

__all__ = ["DeformationGradients"]

_NEIGHBORS = 9  # a particle and the ring around it
_RING = 1.8  # radius of the ring in distances between particles
_MOST = 3.0  # largest plausible stretch: beyond it matter has flowed or torn, and has other neighbours


class DeformationGradients:
    """Deformation gradients in 2D, by least squares over the neighbours of each particle at rest."""

    def __init__(self, particles: object, grains: np.ndarray):
        """Find the neighbours of each particle at rest.

        Args:
            particles: All soft matter at rest.
            grains: Whether each particle can leave its neighbours, as in sand, shape (n,), bool; such a particle is
                treated as undeformed.
        """
        from scipy.spatial import cKDTree

        X, body = particles.position, np.asarray(particles.body)
        count = min(_NEIGHBORS, len(X))
        distance, ring = (a.reshape(len(X), count) for a in cKDTree(X).query(X, k=count))
        spacing = np.sqrt(np.asarray(particles.volume))[:, None]
        near = (distance < _RING * spacing) & (body[ring] == body[:, None]) & ~grains[:, None]
        offset = np.where(near[..., None], X[ring] - X[:, None], 0.0)
        # F = (sum dx dX^T + e I) (sum dX dX^T + e I)^-1: a direction without neighbours counts as undeformed
        e = 0.05 * spacing[:, :, None] ** 2 * np.eye(2)
        inverse = np.linalg.inv(np.einsum("nki,nkj->nij", offset, offset) + e)
        self._ring, self._fit, self._rest = ring, offset @ inverse, e @ inverse

    def of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ellipse into which a disc of matter around each particle is deformed.

        Args:
            x: Positions of the particles [m], shape (n, 2).

        Returns:
            The major and the minor semi-axis of the ellipse, both divided by the radius of the disc, each of shape
            (n,), and the direction of the major axis [degrees], shape (n,).
        """
        F = np.einsum("nki,nkj->nij", x[self._ring] - x[:, None], self._fit) + self._rest
        a, b, c = (np.einsum("nk,nk->n", F[:, i], F[:, j]) for i, j in ((0, 0), (0, 1), (1, 1)))  # F F^T
        mean, spread = (a + c) / 2.0, np.hypot((a - c) / 2.0, b)
        long, short = np.sqrt(mean + spread), np.sqrt(np.maximum(mean - spread, 0.0))
        wild = long > _MOST
        long[wild] = short[wild] = 1.0
        return long, np.maximum(short, 0.3), np.degrees(np.arctan2(2.0 * b, a - c) / 2.0)
