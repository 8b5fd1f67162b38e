"""Determines the nesting of the closed surfaces of a triangle mesh, and orients them."""

import numpy as np

__all__ = ["turned"]


def turned(vertices: np.ndarray, faces: np.ndarray, inner: str) -> tuple[np.ndarray, int]:
    """The faces of a mesh, oriented counter-clockwise as seen from outside the matter.

    An outermost surface, or a surface inside a void, is oriented outwards. A surface that lies inside the matter within
    another surface and is oriented inwards bounds a void; its orientation is kept.

    Args:
        vertices: Vertex positions, shape (n, 3).
        faces: Vertex indices, shape (m, 3).
        inner: Content of a surface that lies inside the matter within another surface and is oriented outwards. The
            faces of a ``"solid"`` are left out, because there is matter already; the faces of a ``"void"`` are turned
            inwards.

    Returns:
        The faces, and the number of surfaces to which `inner` applies.
    """
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=False)
    if not mesh.is_winding_consistent:
        trimesh.repair.fix_winding(mesh)
    faces, corners = np.array(mesh.faces), np.asarray(mesh.triangles)
    shell = trimesh.graph.connected_component_labels(mesh.face_adjacency, node_count=len(faces))
    volumes = np.bincount(shell, np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])))
    volumes *= np.sign(volumes.sum()) or 1.0
    if len(volumes) == 1:
        return faces, 0
    buried = _depths(corners, shell) % 2 == 1
    alike = buried & (volumes > 0.0)
    turn = (~buried & (volumes < 0.0)) | (alike if inner == "void" else False)
    flip = turn[shell]
    faces[flip] = faces[flip, ::-1]
    return faces[~alike[shell]] if inner == "solid" else faces, int(alike.sum())


def _depths(corners: np.ndarray, shell: np.ndarray) -> np.ndarray:
    """For each closed surface, the number of other closed surfaces that enclose it, shape (n_shells,).

    Args:
        corners: Corners of the faces, shape (m, 3, 3).
        shell: Index of the surface to which each face belongs, shape (m,).
    """
    count = shell.max() + 1
    lower, upper = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(lower, shell, corners.min(axis=1))
    np.maximum.at(upper, shell, corners.max(axis=1))
    depths = np.zeros(count, dtype=int)
    for k in range(count):
        around = ((lower <= lower[k]) & (upper[k] <= upper)).all(axis=1)
        around[k] = False
        point = corners[shell == k][0].mean(axis=0)
        depths[k] = sum(abs(_winding(point, corners[shell == j])) > 0.5 for j in np.flatnonzero(around))
    return depths


def _winding(point: np.ndarray, corners: np.ndarray) -> float:
    """Winding number of a closed surface about a point, from solid angles (van Oosterom and Strackee 1983, eq. 8)."""
    a, b, c = np.moveaxis(corners - point, 1, 0)
    la, lb, lc = (np.linalg.norm(r, axis=1) for r in (a, b, c))
    triple = np.einsum("fi,fi->f", a, np.cross(b, c))
    dots = [np.einsum("fi,fi->f", p, q) * length for p, q, length in ((a, b, lc), (b, c, la), (c, a, lb))]
    return float(np.arctan2(triple, la * lb * lc + sum(dots)).sum() / (2.0 * np.pi))
