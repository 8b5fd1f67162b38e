"""Measures of figure 2 of the soft multi-body paper, from deformed meshes only: shares no code with the solver."""

import numpy as np

__all__ = ["crossings", "depth", "elastic", "folded", "samples", "winding"]


def winding(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Winding number of a closed surface around points: 1 inside and 0 outside (van Oosterom & Strackee 1983).

    Args:
        points: Points [m], shape (n, 3).
        corners: Corners of the triangles, counter-clockwise from outside [m], shape (m, 3, 3).
    """
    a, b, c = (corners[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
    volume = (a * np.cross(b, c)).sum(axis=2)
    cosine = la * lb * lc + (a * b).sum(axis=2) * lc + (b * c).sum(axis=2) * la + (c * a).sum(axis=2) * lb
    return np.arctan2(volume, cosine).sum(axis=1) / (2.0 * np.pi)


def samples(x: np.ndarray, faces: np.ndarray, parts: int = 4) -> np.ndarray:
    """Points on a grid of every triangle with its corners and edges, shape (n, 3)."""
    i, j = (k.ravel() for k in np.mgrid[0 : parts + 1, 0 : parts + 1])
    weight = np.stack([i, j, parts - i - j], axis=1)[i + j <= parts] / parts
    return np.einsum("sk,fki->fsi", weight, x[faces]).reshape(-1, 3)


def depth(points: np.ndarray, corners: np.ndarray) -> float:
    """Depth of the deepest point below a closed surface [m]; 0 if none is inside. Arguments as for `winding`."""
    import trimesh

    inside = points[winding(points, corners) > 0.5]
    if not len(inside):
        return 0.0
    each = np.repeat(inside, len(corners), axis=0)
    nearest = trimesh.triangles.closest_point(np.tile(corners, (len(inside), 1, 1)), each)
    return float(np.linalg.norm(nearest - each, axis=1).reshape(len(inside), -1).min(axis=1).max())


def crossings(x: np.ndarray, faces: np.ndarray, others: np.ndarray) -> int:
    """Number of edges of one surface that pass through a face of another one, by the signs of volumes.

    Args:
        x: Positions of the vertices of both surfaces [m], shape (n, 3).
        faces: Vertex indices of the triangles whose edges may pass, shape (n_faces, 3).
        others: Vertex indices of the triangles through which these edges may pass, shape (n_others, 3).
    """
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    p, q = (x[edges[:, None, k]] for k in range(2))
    a, b, c = (x[others[None, :, k]] for k in range(3))

    def side(u: np.ndarray, v: np.ndarray, w: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.sign((np.cross(v - u, w - u) * (z - u)).sum(axis=2))

    first, second, third = side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)
    through = (first == second) & (second == third) & (side(a, b, c, p) != side(a, b, c, q))
    return int(through.any(axis=1).sum())


def elastic(X: np.ndarray, x: np.ndarray, simplices: np.ndarray, volume: np.ndarray, E: float, nu: float) -> float:
    """Corotated energy of tetrahedra or, in plane stress, triangles [J].

    That is the sum of V (mu |s - 1|^2 + lambda/2 (sum (s - 1))^2) over the stretches s.

    Args:
        X: Positions of the vertices at rest [m], shape (n, 3).
        x: Deformed positions of the vertices [m], shape (n, 3).
        simplices: Vertex indices of each element, shape (m, 4) or (m, 3).
        volume: Volume of each element [m^3], shape (m,).
        E: Young's modulus [Pa].
        nu: Poisson's ratio [1].
    """
    d = simplices.shape[1] - 1
    rest, now = (np.swapaxes(z[simplices[:, 1:]] - z[simplices[:, :1]], 1, 2) for z in (X, x))
    strain = np.linalg.svd(now @ np.linalg.pinv(rest), compute_uv=False)[:, :d] - 1.0
    mu, lam = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - (d - 1) * nu))
    return float(volume @ (mu * (strain**2).sum(axis=1) + 0.5 * lam * strain.sum(axis=1) ** 2))


def folded(X: np.ndarray, x: np.ndarray, hinges: np.ndarray, rigidity: float) -> float:
    """Energy of bending of a sheet that is flat at rest [J]: the sum of D / (A_2 + A_3) / 2 |sum w_i x_i|^2.

    The weights are the cotangents of Bergou et al. (2006).

    Args:
        X: Positions of the vertices at rest [m], shape (n, 3).
        x: Deformed positions of the vertices [m], shape (n, 3).
        hinges: The two ends of each inner edge and the tips of its triangles, shape (m, 4).
        rigidity: Flexural rigidity D [N m].
    """
    e, b, c = np.moveaxis(X[hinges[:, 1:]] - X[hinges[:, :1]], 1, 0)
    twice = [np.linalg.norm(np.cross(e, tip), axis=1) for tip in (b, c)]
    w = np.stack([-sum((e * t).sum(axis=1) / a for t, a in zip((b, c), twice, strict=True)),
                  *((e * e).sum(axis=1) / a for a in twice)])  # fmt: skip
    jump = np.einsum("km,mki->mi", w, x[hinges[:, 1:]] - x[hinges[:, :1]])
    return float((rigidity / sum(twice) * (jump**2).sum(axis=1)).sum())
