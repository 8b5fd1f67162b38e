"""Surfaces of all bodies of a scene: vertices, faces and edges, and the trees that search them."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.detection import HitArrays

__all__ = ["PAIRS", "Search", "Surface"]

PAIRS = ("count", "kind", "node", "side", "normal", "weight")
"""Fields of `Search` that say which pairs are contacts."""
_HITS = 3
"""Pairs that there is room for in one search, for each contact: a vertex over a vertex meets all faces around it."""


@dataclasses.dataclass(frozen=True)
class Surface:
    """Surfaces of nodes and shells that may meet, with a tree for the ways of faces and one for those of edges.

    Attributes:
        vertex: Nodes of surfaces, shape (vertices,).
        face: Nodes of the faces, shape (faces,).
        edge: Nodes of the edges, shape (edges,).
        trees: For faces and for edges the tree, the nodes of the corners, shape (n, corners), and both corners of the
            boxes of all worlds, shape (worlds * n,).
    """

    vertex: wp.array
    face: wp.array
    edge: wp.array
    trees: tuple[tuple[wp.Bvh, wp.array, tuple[wp.array, wp.array]], ...]

    @classmethod
    def of(cls, position: np.ndarray, faces: np.ndarray, worlds: int, device: wp.Device) -> "Surface":
        """Surfaces with these faces, shape (n, 3), of points at rest [m], shape (n_points, 3)."""
        faces = faces.astype(np.int32)
        edges = np.unique(
            np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1), axis=0
        )

        def tree(corners: np.ndarray) -> tuple:
            x = np.tile(position[corners], (worlds, 1, 1)).astype(np.float32)
            boxes = tuple(wp.array(b, dtype=wp.vec3, device=device) for b in (x.min(axis=1), x.max(axis=1)))
            world = wp.array(np.repeat(np.arange(worlds), len(corners)), dtype=int, device=device)
            return wp.Bvh(*boxes, groups=world), wp.array(corners, dtype=int, device=device), boxes

        return cls(
            wp.array(np.unique(faces), dtype=int, device=device),
            wp.array(faces, dtype=wp.vec3i, device=device),
            wp.array(edges, dtype=wp.vec2i, device=device),
            (tree(faces), tree(edges)),
        )


@dataclasses.dataclass(frozen=True)
class Search:
    """Pairs that are contacts in this step, and where the search for more stands.

    Attributes:
        count: Number of pairs, those without room among them, shape (worlds,).
        kind: Their kinds, shape (worlds * capacity,).
        node: Their nodes, likewise.
        side: Their sides, likewise.
        normal: Their normals when they were last looked at, likewise.
        weight: Their weights then, likewise.
        check: 1 where a search is asked for, shape (worlds,).
        any: 1 if one is asked for anywhere, shape (1,).
        found: Number of pairs that the last search added, shape (worlds,).
        rounds: Number of searches in this step, shape (worlds,).
        was: Worlds that were active before the last correction, shape (worlds,).
        near: Number of pairs and nodes that forbid to spare the last search, shape (worlds,).
        crossing: 0, or 1 and an edge times the number of faces and a face that it runs through, shape (worlds,).
        lost: 1 where the last search left an edge in a face, shape (worlds,).
        aim: Displacements of the vertices of surfaces in the first search [m], shape (worlds * vertices,).
        hits: Pairs that a search makes contacts of.
    """

    count: wp.array
    kind: wp.array
    node: wp.array
    side: wp.array
    normal: wp.array
    weight: wp.array
    check: wp.array
    any: wp.array
    found: wp.array
    rounds: wp.array
    was: wp.array
    near: wp.array
    crossing: wp.array
    lost: wp.array
    aim: wp.array
    hits: HitArrays

    @classmethod
    def of(cls, worlds: int, capacity: int, vertices: int, device: wp.Device) -> "Search":
        """Arrays for `capacity` pairs a world, of surfaces with so many vertices."""

        def zeros(count: int, dtype: type = int) -> wp.array:
            return wp.zeros(count, dtype=dtype, device=device)

        of_pairs = (int, wp.vec4i, real, vector(3), vector(4))
        pairs = [zeros(worlds * capacity, dtype) for dtype in of_pairs]
        counts = [zeros(n) for n in (worlds, 1, worlds, worlds, worlds, worlds)]
        lost = zeros(worlds, wp.int64), zeros(worlds)
        hits = HitArrays()
        hits.room = _HITS * capacity
        for name, variable in HitArrays.vars.items():
            if name != "room":
                count = worlds if name == "count" else worlds * hits.room
                setattr(hits, name, zeros(count, variable.type.dtype))
        return cls(zeros(worlds), *pairs, *counts, *lost, zeros(worlds * vertices, NODE), hits)
