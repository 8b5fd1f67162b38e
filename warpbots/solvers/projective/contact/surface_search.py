"""Surfaces of all bodies of a scene: vertices, faces and edges, and the box trees for searching them."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.pair_arrays import HitArrays

__all__ = ["PAIRS", "SurfaceSearch", "ContactSurfaces", "BoxTree", "SearchControl"]

PAIRS = ("count", "kind", "node", "side", "normal", "weight", "redundant")
"""Fields of `SurfaceSearch` that define the pairs that are contacts."""
_HITS = 3
"""Room for pairs of one search per contact: a vertex over a vertex forms a pair with each face around it."""
_FLAT = 1e-3
"""Difference of the unit normals of two faces up to which they are one plane: an edge between them has no ridge."""


@dataclasses.dataclass(frozen=True)
class ContactSurfaces:
    """Surfaces that may be in contact.

    Attributes:
        vertex: Points of the surfaces, shape (vertices,).
        face: Points at the corners of each face, shape (faces,).
        edge: Points at the ends of each edge, shape (edges,).
        flat: 1 for an edge between two faces that stay in one plane, shape (edges,).
        level: 1 for a vertex all of whose edges are flat, shape (vertices,).
    """

    vertex: wp.array
    face: wp.array
    edge: wp.array
    flat: wp.array
    level: wp.array

    @classmethod
    def of(cls, faces: np.ndarray, normals: np.ndarray, alone: np.ndarray, device: wp.Device) -> "ContactSurfaces":
        """Surfaces of bodies, and edges of obstacles.

        Args:
            faces: Corners of the faces, shape (n, 3).
            normals: Unit normals of rigid faces, 0 for other faces, shape (n, 3).
            alone: Ends of the edges without faces, shape (m, 2).
            device: Device of the arrays.
        """
        edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
        edges, of_border, count = np.unique(edges, axis=0, return_inverse=True, return_counts=True)
        total = np.zeros((len(edges), 3))
        np.add.at(total, of_border.reshape(-1), np.tile(normals, (3, 1)))
        flat = (count == 2) & (4.0 - np.square(total).sum(axis=1) <= _FLAT**2)
        vertices = np.append(np.unique(faces), np.unique(alone))
        integers = {
            "vertex": vertices,
            "level": ~np.isin(vertices, np.append(edges[~flat], alone)),
            "flat": np.append(flat, np.zeros(len(alone), dtype=bool)),
        }
        return cls(
            face=wp.array(faces.astype(np.int32), dtype=wp.vec3i, device=device),
            edge=wp.array(np.append(edges, alone, axis=0).astype(np.int32), dtype=wp.vec2i, device=device),
            **{n: wp.array(a.astype(np.int32), dtype=int, device=device) for n, a in integers.items()},
        )


@dataclasses.dataclass(frozen=True)
class BoxTree:
    """A tree of boxes around the paths of faces or edges.

    Attributes:
        bvh: The tree, with one group for each world.
        corners: Points at the corners of each face or edge, shape (n, corners).
        lower: Lower corners of the boxes [m], shape (worlds * n,).
        upper: Upper corners of the boxes [m], shape (worlds * n,).
    """

    bvh: wp.Bvh
    corners: wp.array
    lower: wp.array
    upper: wp.array

    @classmethod
    def of(cls, position: np.ndarray, corners: np.ndarray, worlds: int, device: wp.Device) -> "BoxTree":
        """A tree for faces or edges with the `corners` among points at rest `position` [m], shape (n_points, 3)."""
        x = np.tile(position[corners], (worlds, 1, 1)).astype(np.float32)
        lower, upper = (wp.array(b, dtype=wp.vec3, device=device) for b in (x.min(axis=1), x.max(axis=1)))
        world = wp.array(np.repeat(np.arange(worlds), len(corners)), dtype=int, device=device)
        bvh = wp.Bvh(lower, upper, groups=world)
        return cls(bvh, wp.array(corners.astype(np.int32), dtype=int, device=device), lower, upper)


@dataclasses.dataclass(frozen=True)
class SurfaceSearch:
    """Pairs that are contacts in this step, and the state of collision detection.

    Attributes:
        count: Number of pairs, including pairs without room, shape (worlds,).
        kind: Kind of each pair, shape (worlds * capacity,).
        node: Nodes of each pair, shape (worlds * capacity,).
        side: Sign of the normal of each pair (1 or -1), as in `PairArrays`, shape (worlds * capacity,).
        normal: Normal of each pair when its plane was last updated [1], shape (worlds * capacity,).
        weight: Weights of each pair when its plane was last updated [1], shape (worlds * capacity,).
        redundant: 1 for pairs with the same shortest connection as an earlier pair, shape (worlds * capacity,).
        check: 1 for a world in which a search is requested, shape (worlds,).
        any: 1 if a search is requested in any world, shape (1,).
        added: Number of pairs that the last search added, shape (worlds,).
        searches: Number of searches in this step at converged points, plus the first search, shape (worlds,).
        asked: 1 for a component that is searched, 0 for one that is not, and -1 for one whose step has failed, shape
            (worlds * components,).
        rounds: Number of searches of a component: the first one, and each later one that changed its contacts, shape
            (worlds * components,).
        early: Number of searches of a component before its island had converged, shape (worlds * components,).
        was: 1 for a world that was active before the last iteration, shape (worlds,).
        near: Number of pairs and nodes that make another search necessary, shape (worlds,).
        intersection: 0, or 1 plus an edge times the number of faces plus a face that it intersects, shape (worlds,).
        outgrown: Largest number of pairs of a world for which there was no room in any step, 0 for none, shape (1,).
        lost: 1 for a component with an edge that intersects a face after the last search, shape (worlds * components,).
        path: Displacements of the vertices of surfaces in the first search [m], shape (worlds * vertices,).
        hits: Pairs that become contacts after a search.
    """

    count: wp.array
    kind: wp.array
    node: wp.array
    side: wp.array
    normal: wp.array
    weight: wp.array
    redundant: wp.array
    check: wp.array
    any: wp.array
    added: wp.array
    searches: wp.array
    asked: wp.array
    rounds: wp.array
    early: wp.array
    was: wp.array
    near: wp.array
    intersection: wp.array
    outgrown: wp.array
    lost: wp.array
    path: wp.array
    hits: HitArrays

    @classmethod
    def of(cls, worlds: int, components: int, capacity: int, vertices: int, device: wp.Device) -> "SurfaceSearch":
        """Arrays for `capacity` pairs in each world, with `components` components and `vertices` surface vertices."""

        def zeros(count: int, dtype: type = int) -> wp.array:
            return wp.zeros(count, dtype=dtype, device=device)

        of_pairs = (int, wp.vec4i, real, vector(3), vector(4), int)
        pairs = [zeros(worlds * capacity, dtype) for dtype in of_pairs]
        units = worlds * components
        counts = [zeros(n) for n in (worlds, 1, worlds, worlds, units, units, units, worlds, worlds)]
        lost = zeros(worlds, wp.int64), zeros(1), zeros(units)
        hits = HitArrays()
        hits.room = _HITS * capacity
        for name, variable in HitArrays.vars.items():
            if name != "room":
                count = worlds if name == "count" else worlds * hits.room
                setattr(hits, name, zeros(count, variable.type.dtype))
        return cls(zeros(worlds), *pairs, *counts, *lost, zeros(worlds * vertices, NODE), hits)


@wp.struct
class SearchControl:
    """Which components to search for pairs; see `SurfaceSearch`.

    check: 1 for a world in which a search is requested, shape (worlds,).
    searches: Number of earlier searches in this step, shape (worlds,).
    asked: 1 for a component that is searched, -1 for one whose step has failed, shape (worlds * components,).
    rounds: Number of searches that changed the contacts of a component, shape (worlds * components,).
    lost: 1 for a component with an edge that intersects a face, shape (worlds * components,).
    left: Moves of a component that are still to be shortened, see `SecondAttempt`, shape (worlds * components,).
    free: Fraction of the path of a component that is free of collisions, shape (worlds * components,).
    """

    check: wp.array[int]
    searches: wp.array[int]
    asked: wp.array[int]
    rounds: wp.array[int]
    lost: wp.array[int]
    left: wp.array[int]
    free: wp.array[real]
