"""Quasi-uniform random lattices: best-candidate points (after Mitchell 1991), joined by Delaunay tetrahedra."""

import itertools

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from warpbots.contact import normal, signed_distance
from warpbots.scene import SceneError, Shape
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.mass_spring.lattice.lattice_cells import Cells

__all__ = ["MINIMUM", "best_candidates", "scattered_cells"]

MINIMUM = 0.7
"""Least distance between chosen points [spacings].

Points near the surface are then moved onto it: in 36 lattices of 300 to 3,000 points no two were closer than 0.52.
"""

_CANDIDATES = 100
"""Candidates for every point (Cronos, "Generating a Lattice")."""

_NEAREST = 3
"""Number of neighbours whose mean distance rates a candidate."""

_GROWTH = 0.2
"""Ratio of new points to old points in a round."""

_SOFTENING = {2: 0.89, 3: 0.92}
"""Ratio of Young's modulus of a random lattice to its value for affine deformation, by dimension.

Measured on bars: in 2D 0.87, 0.90 and 0.89 with 8, 16 and 32 spacings across (+- 0.03, 0.01 and 0.003 between seeds),
in 3D 0.88, 0.91 and 0.93 with 6, 8 and 11 (+- 0.02, 0.004 and 0.001); Poisson's ratio 0.25 (0.35 in 2D). Faces at
which a bar is held are softer than the inside. Between their ends, long bars have 1.20, 1.11, 1.03 and 1.04 times the
given Young's modulus in 3D with 3, 4, 6 and 9 spacings across (+- 0.05, 0.02, 0.01 and 0.01), in 2D 0.99 to 1.02 times.
"""

_BOX = 1.5e3
"""Memory of a box of half a spacing, with its share of points and springs [bytes]."""


def scattered_cells(shape: Shape, spacing: float, seed: int, name: str) -> Cells:
    """Fill a shape with tetrahedra (in 2D triangles) between random points, one point per volume `spacing` ** dim.

    Points near the surface are moved onto it, so that the lattice fills the shape. A cell of volume V contributes the
    stiffness E V / l^2 (in 2D 16/15 E V / l^2) to its springs of length l. Summed over springs with uniformly
    distributed directions this gives the stiffness of the solid, because the mean of n_i n_j n_k n_l over all unit
    vectors n is (d_ij d_kl + d_ik d_jl + d_il d_jk) / 15, in 2D / 8, with the Kronecker delta d_ij. A random lattice
    does not deform affinely and is softer by a measured factor; the stiffness is divided by this factor.

    Args:
        shape: Shape to fill.
        spacing: Edge of the cube (square) that one point represents [m].
        seed: Seed of the random numbers.
        name: Name of the body, for messages.

    Raises:
        SceneError: Fewer points fit into the shape than one cell needs.
    """
    point = best_candidates(shape, spacing, seed)
    dim = point.shape[1]
    depth = -signed_distance(shape, point)
    near = depth < 0.5 * spacing
    point[near] += depth[near, None] * normal(shape, point[near], 0.01 * spacing)
    point = _in_order(point, spacing)
    if len(point) <= dim:
        raise SceneError(
            f"SoftBody {name!r}: only {len(point)} nodes {spacing:g} m apart fit into its shape, a lattice needs "
            f"{dim + 1}; use a smaller MassSpring(spacing=...)"
        )
    corner = Delaunay(point).simplices
    volume = np.abs(np.linalg.det(point[corner[:, 1:]] - point[corner[:, :1]])) / (2.0 if dim == 2 else 6.0)
    inside = signed_distance(shape, point[corner].mean(axis=1)) < 0.0
    solid = inside & (volume > 1e-3 * spacing**dim)  # the others are flat cells on the surface
    used, corner = np.unique(corner[solid], return_inverse=True)
    point, corner, volume = point[used], corner.reshape(-1, dim + 1), volume[solid]
    pair = np.array(list(itertools.combinations(range(dim + 1), 2)))
    length = np.linalg.norm(point[corner[:, pair[:, 1]]] - point[corner[:, pair[:, 0]]], axis=-1)
    share = {2: 16.0 / 15.0, 3: 1.0}[dim] / _SOFTENING[dim]
    return Cells(point, corner, pair, share * volume[:, None] / length**2, volume)


def best_candidates(shape: Shape, spacing: float, seed: int) -> np.ndarray:
    """Random points inside a shape [m], shape (n, dim).

    There is one point per volume `spacing` ** dim, and any two points are at least `MINIMUM` spacings apart.

    Mitchell's rule chooses the candidate that is farthest from its nearest neighbour. Here, as in Cronos, the candidate
    with the largest mean distance to its three nearest neighbours is chosen. All points of a round are chosen at once,
    each among its own candidates, and a point too close to a better point of the same round is left out. So a round
    needs a single KD-tree, while Mitchell's rule needs a new tree for each point. The price is that points are closer
    together: with 1,000 points in a cube the mean distance to the nearest neighbour is 0.87 spacings (0.93 with
    Mitchell's rule), and the smallest distance is 0.70 spacings (0.74 with Mitchell's rule).
    """
    rng = np.random.default_rng(seed)
    draw, volume = _sampler(shape, 0.5 * spacing, rng)
    count, least = round(volume / spacing ** len(shape.bounds[0])), MINIMUM * spacing
    point = draw(1)
    while len(point) < count:
        new = min(max(1, int(_GROWTH * len(point))), count - len(point))
        candidate = draw(_CANDIDATES * new)
        nearest = range(1, min(_NEAREST, len(point)) + 1)
        distance = cKDTree(point).query(candidate, k=nearest, workers=-1)[0]
        score = np.where(distance[:, 0] >= least, distance.mean(axis=1), -1.0)
        best = score.reshape(new, _CANDIDATES).argmax(axis=1) + _CANDIDATES * np.arange(new)
        best = best[np.argsort(-score[best], kind="stable")]
        best = best[score[best] > 0.0]
        if not len(best):
            break
        point = np.concatenate([point, _apart(candidate[best], least)])
    return point


def _sampler(shape: Shape, edge: float, rng: np.random.Generator) -> tuple:
    """Return a function that draws n random points inside `shape`, and the volume of the shape [m^dim].

    Space is divided into boxes with edges of length `edge` [m]. The signed distance is evaluated only for points in
    boxes that the surface may cross.
    """
    lower, upper = shape.bounds
    dim, counts = len(lower), np.maximum(1.0, np.ceil((upper - lower) / edge))
    refuse_excess(
        counts.prod(), _BOX, "MassSpring: boxes about a body", "use a larger MassSpring(spacing=...) or a smaller body"
    )
    counts = counts.astype(int)
    size = (upper - lower) / counts
    box = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, dim)
    distance = signed_distance(shape, lower + (box + 0.5) * size)
    reach = 0.5 * np.linalg.norm(size)
    box, sure = box[distance < reach], distance[distance < reach] < -reach

    def draw(n: int) -> np.ndarray:
        found = np.zeros((0, dim))
        while len(found) < n:
            b = rng.integers(len(box), size=n)
            x = lower + (box[b] + rng.random((n, dim))) * size
            doubtful = np.flatnonzero(~sure[b])
            out = doubtful[signed_distance(shape, x[doubtful]) > 0.0]
            found = np.concatenate([found, np.delete(x, out, axis=0)])
        return found[:n]

    trial = (rng.random((8, dim)) + box[~sure][:, None]) * size + lower
    inside = (signed_distance(shape, trial.reshape(-1, dim)) <= 0.0).sum() / 8.0
    return draw, float((sure.sum() + inside) * np.prod(size))


def _apart(point: np.ndarray, least: float) -> np.ndarray:
    """Go through the points in order, and drop each point closer than `least` [m] to an earlier point that was kept."""
    close = cKDTree(point).query_pairs(least, output_type="ndarray")
    stays = np.ones(len(point), dtype=bool)
    for earlier, later in close[np.lexsort(close.T[::-1])]:
        if stays[earlier]:
            stays[later] = False
    return point[stays]


def _in_order(point: np.ndarray, spacing: float) -> np.ndarray:
    """Sort the points by cubic blocks of space, so that neighbours in space are close in memory."""
    block = np.floor((point - point.min(axis=0)) / (4.0 * spacing)).astype(int)
    return point[np.lexsort([*point.T, *block.T])]
