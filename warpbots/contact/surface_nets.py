"""Triangle meshes of surfaces that are given by a signed distance alone."""

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.contact.sample_grid import refuse_flat
from warpbots.scene import Shape
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["sampled_surface", "surface_nets"]

_SAMPLE = 300.0
"""Memory of a sample during the computation of a surface [bytes]."""


def sampled_surface(shape: Shape, lower: np.ndarray, upper: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Mesh the surface of the part of a shape that lies in a box, as a closed surface.

    Details smaller than a cell are rounded or lost.

    Args:
        shape: Any 3D shape of `warpbots.scene`.
        lower: Lower corner of the box [m], shape (3,).
        upper: Upper corner of the box [m], shape (3,).
        cell: Distance between samples [m].

    Returns:
        Positions of the vertices [m], shape (n, 3), and indices of the vertices of each face, counter-clockwise seen
        from outside, shape (m, 3).

    Raises:
        SceneError: The shape has no extent, or its samples do not fit into memory.
    """
    refuse_flat(shape)
    low, high = shape.bounds
    low, high = np.maximum(low, lower), np.minimum(high, upper)
    counts = np.ceil((high - low) / cell) + 4.0
    refuse_excess(counts.prod(), _SAMPLE, f"{type(shape).__name__}: samples of its distance", "use larger cells")
    counts = counts.astype(int)
    axes = [a - 1.5 * cell + cell * np.arange(n) for a, n in zip(low, counts, strict=True)]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cut = np.maximum(lower - lattice, lattice - upper).max(axis=1)  # the solid ends with a face where the box ends
    distance = np.maximum(signed_distance(shape, lattice), cut).reshape(counts)
    return surface_nets(distance, np.array([a[0] for a in axes]), cell)


def surface_nets(distance: np.ndarray, origin: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Mesh the surface on which samples on a grid interpolate to zero (Gibson 1998).

    The mesh has one vertex in each cell that the surface crosses, and one quad for each grid edge that it crosses.

    Args:
        distance: Samples of a signed distance, positive on the border of the grid, shape (n_x, n_y, n_z).
        origin: Position of the first sample [m], shape (3,).
        cell: Distance between samples [m].

    Returns:
        Positions of the vertices [m], shape (n, 3), and indices of the vertices of each face, counter-clockwise seen
        from outside, shape (m, 3).
    """
    inside = distance < 0.0
    corners = list(np.ndindex(2, 2, 2))
    part = lambda c: tuple(slice(o, n - 1 + o) for o, n in zip(c, distance.shape, strict=True))  # noqa: E731
    count = sum(inside[part(c)].astype(int) for c in corners)
    crossed = (count > 0) & (count < 8)
    total, hits = np.zeros((*crossed.shape, 3)), np.zeros(crossed.shape)
    for a in range(3):
        for c in (c for c in corners if c[a] == 0):
            end = tuple(np.array(c) + np.eye(3, dtype=int)[a])
            d0, d1 = distance[part(c)], distance[part(end)]
            cut = (d0 < 0.0) != (d1 < 0.0)
            t = np.where(cut, d0 / np.where(cut, d0 - d1, 1.0), 0.0)
            total += np.where(cut[..., None], np.array(c) + t[..., None] * np.eye(3)[a], 0.0)
            hits += cut
    number = np.full(crossed.shape, -1)
    number[crossed] = np.arange(crossed.sum())
    where = np.argwhere(crossed) + total[crossed] / hits[crossed][:, None]
    return origin + cell * where, np.concatenate([_quads(inside, number, a) for a in range(3)])


def _quads(inside: np.ndarray, number: np.ndarray, axis: int) -> np.ndarray:
    """Two triangles for each grid edge along `axis` that has one end inside the surface and the other end outside."""
    inside, number = np.moveaxis(inside, axis, 0), np.moveaxis(number, axis, 0)
    first, second = inside[:-1, 1:-1, 1:-1], inside[1:, 1:-1, 1:-1]
    k = np.argwhere(first != second)
    a, b, c, d = (number[k[:, 0], k[:, 1] + i, k[:, 2] + j] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    flip = second[tuple(k.T)] ^ (axis == 1)  # moving axis 1 to the front changes the handedness
    b, d = np.where(flip, d, b), np.where(flip, b, d)
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
