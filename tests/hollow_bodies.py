"""Hollow bodies for tests: thick spheres, fingers with a chamber, balloons."""

from collections.abc import Sequence

import numpy as np

from warpbots.meshing import tetrahedra
from warpbots.scene import Box, Sheet, TetMesh

RADII = (0.02, 0.03)
"""Inner and outer radius of the thick spheres [m]."""


def icosphere(parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit sphere and its faces, counter-clockwise from outside: a divided icosahedron."""
    g = (1.0 + 5.0**0.5) / 2.0
    corners = np.array([(a, b * g, 0.0) for a in (-1, 1) for b in (-1, 1)])
    corners = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)])
    far = np.linalg.norm(corners[:, None] - corners, axis=2) > 2.1
    sides = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if not far[np.ix_((i, j, k), (i, j, k))].any()
    ]
    points, faces, number = [], [], {}

    def at(weights: dict[int, int]) -> int:
        key = tuple(sorted((i, w) for i, w in weights.items() if w))
        if key not in number:
            number[key] = len(points)
            points.append(sum(w * corners[i] for i, w in key))
        return number[key]

    for i, j, k in sides:
        if np.linalg.det(corners[[i, j, k]]) < 0.0:
            j, k = k, j
        for a in range(parts):
            for b in range(parts - a):
                first, second, third = ({i: parts - p - q, j: p, k: q} for p, q in ((a, b), (a + 1, b), (a, b + 1)))
                faces.append((at(first), at(second), at(third)))
                if a + b < parts - 1:
                    faces.append((at(second), at({i: parts - a - b - 2, j: a + 1, k: b + 1}), at(third)))
    x = np.array(points)
    return x / np.linalg.norm(x, axis=1, keepdims=True), np.array(faces)


def thick_sphere(parts: int, layers: int, radii: tuple[float, float] = RADII) -> TetMesh:
    """A ball with a spherical void in its middle, in layers of prisms of three tetrahedra."""
    x, faces = icosphere(parts)
    shells = [r * x for r in np.linspace(*radii, layers + 1)]
    faces = np.sort(faces, axis=1)  # neighbours then cut the side between them alike
    tets = []
    for k in range(layers):
        a, b, c = (faces[:, i] + k * len(x) for i in range(3))
        d, e, f = (i + len(x) for i in (a, b, c))
        tets += [np.stack(t, axis=1) for t in ((a, b, c, f), (a, b, f, e), (a, e, f, d))]
    return TetMesh.oriented(np.concatenate(shells), np.concatenate(tets))


def hollow_box(size: tuple[float, ...], voids: Sequence[Box], cell: float) -> TetMesh:
    """A box from the origin without the cells in some others."""
    mesh = tetrahedra(Box((0.0, 0.0, 0.0), size), cell)
    center = mesh.vertices[mesh.tets].mean(axis=1)
    empty = [((center > v.lower) & (center < v.upper)).all(axis=1) for v in voids]
    tets = mesh.tets[~np.any(empty, axis=0)]
    used, number = np.unique(tets, return_inverse=True)
    return TetMesh(mesh.vertices[used], number.reshape(tets.shape))


def balloon(parts: int, radius: float, thickness: float) -> Sheet:
    """A sphere of cloth."""
    x, faces = icosphere(parts)
    return Sheet(radius * x, faces, thickness)
