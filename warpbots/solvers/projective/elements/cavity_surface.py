"""The walls of cavities, on the host: a wall is the closed surface in a region that encloses a void."""

import numpy as np

from warpbots.scene import Cavity, Scene, SceneError

__all__ = ["cavities_of", "dry", "volume_of_walls"]

_REVERSED = 1e-4
"""Fraction of (area of the walls)^(3/2); with a volume below minus this, a chamber is inside out."""
_RUN = 32
"""Faces of a cavity whose share of the volume one thread adds up."""


def cavities_of(
    scene: Scene, position: np.ndarray, faces: np.ndarray, sheets: np.ndarray, regions: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Fields of `Mesh` for the cavities of a scene.

    Args:
        scene: The scene.
        position: Nodes at rest [m], shape (n, 3).
        faces: Nodes of the faces of every body, counter-clockwise seen from outside of the matter, shape (m, 3).
        sheets: Nodes of the triangles of sheets, which are also among `faces`, shape (k, 3).
        regions: For every region, which nodes are in the region, bool.

    Raises:
        SceneError: The region of a cavity has no closed surface around a void, or more than one such surface.
    """
    channels = [(c, a) for c, a in enumerate(scene.actuators) if isinstance(a, Cavity)]
    solid = ~np.isin(_keys(faces), _keys(sheets))
    walls = [_walls(cavity, position, faces, solid, regions[cavity.region]) for _, cavity in channels]
    sizes = np.array([len(w) for w in walls], dtype=int)
    first = np.cumsum(sizes) - sizes
    runs = [np.append(np.arange(a, a + n, _RUN), a + n) for a, n in zip(first, sizes, strict=True)]
    last = np.cumsum([len(r) - 1 for r in runs], dtype=int)
    gas = np.array([cavity.max_pressure is None for _, cavity in channels], dtype=bool)
    volumes = np.array([volume_of_walls(position, w) for w in walls])
    ambient = np.array([cavity.ambient_pressure for _, cavity in channels])
    return {
        "cavities": np.concatenate([np.zeros((0, 3), dtype=int), *walls]),
        "cavity": np.repeat(np.arange(len(walls)), sizes),
        "cavity_run": np.concatenate([np.zeros((0, 2), dtype=int), *(np.stack([r[:-1], r[1:]], 1) for r in runs)]),
        "cavity_runs": np.stack([np.append(0, last[:-1])[: len(last)], last], axis=1),
        "cavity_channel": np.array([c for c, _ in channels], dtype=int),
        "cavity_number": np.where(gas, np.cumsum(gas), np.cumsum(~gas)) - 1,
        "cavity_gas_ratio": np.array([cavity.max_gas_ratio or 0.0 for _, cavity in channels]),
        "cavity_least_volume": np.array([-_REVERSED * _area(position, w) ** 1.5 for w in walls]),
        "cavity_pressure": np.array([cavity.max_pressure for _, cavity in channels if cavity.max_pressure is not None]),
        "cavity_gas": (ambient * volumes)[gas],
        "ambient_pressure": ambient[gas],
    }


def dry(faces: np.ndarray, cavities: np.ndarray) -> np.ndarray:
    """Which `faces`, counter-clockwise seen from outside of the matter, are walls in `cavities`, shape (n,), bool."""
    return np.isin(_keys(faces), _keys(cavities[:, ::-1]))


def _keys(faces: np.ndarray) -> np.ndarray:
    """A key for each face that depends only on its nodes and its orientation, shape (n,)."""
    first = faces.argmin(axis=1)[:, None]
    turned = np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)
    return np.ascontiguousarray(turned.astype(np.int64)).view([("", np.int64)] * 3).reshape(-1)


def _walls(
    cavity: Cavity, position: np.ndarray, faces: np.ndarray, solid: np.ndarray, inside: np.ndarray
) -> np.ndarray:
    """Faces around a cavity, counter-clockwise seen from outside of the cavity, shape (n, 3)."""
    import trimesh

    what = f"Cavity {cavity.name!r}: region {cavity.region!r}"
    chosen = inside[faces].all(axis=1)
    faces, solid = faces[chosen], solid[chosen]
    if not len(faces):
        raise SceneError(
            f"{what} contains {inside.sum()} nodes and no face of a surface; give it a shape that encloses the void "
            f"and some matter around it"
        )
    mesh = trimesh.Trimesh(position, faces, process=False)
    part = trimesh.graph.connected_component_labels(mesh.face_adjacency, node_count=len(faces))
    trimesh.repair.fix_winding(mesh)
    found, torn = [], []
    for k in range(part.max() + 1):
        piece = mesh.faces[part == k]
        loose = _unpaired_edges(piece)
        if len(loose):
            torn.append((piece, loose))
            continue
        outwards = piece if volume_of_walls(position, piece) > 0.0 else piece[:, ::-1]
        if not np.isin(_keys(outwards), _keys(faces[solid])).any():  # for these, the void is on the other side
            found.append(outwards)
    if len(found) == 1:
        return found[0]
    if found:
        raise SceneError(
            f"{what} contains {len(found)} closed surfaces around voids, near {_places(position, found)} m; give each "
            f"a Cavity with a region of its own"
        )
    if torn:
        piece, loose = max(torn, key=lambda t: len(t[0]))
        raise SceneError(
            f"{what} contains no closed surface around a void: the largest surface in it, of {len(piece)} faces, has "
            f"{len(loose)} open edges, the first at {_place(position[loose[0]])} m; close the void there, or make the "
            f"region larger if it cuts the surface"
        )
    raise SceneError(
        f"{what} contains only the outer surface of a body, near {_places(position, [faces])} m, and no void; give "
        f"it a shape around a void, and the body a mesh with one"
    )


def _unpaired_edges(faces: np.ndarray) -> np.ndarray:
    """Edges that two adjacent faces do not traverse exactly once in each direction, shape (n, 2)."""
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges, inverse, count = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True)
    sign = np.where(directed[:, 0] < directed[:, 1], 1.0, -1.0)
    return edges[(np.bincount(inverse.reshape(-1), weights=sign) != 0.0) | (count != 2)]


def volume_of_walls(position: np.ndarray, faces: np.ndarray) -> float:
    """Volume that faces enclose, positive if they are counter-clockwise seen from outside [m^3]."""
    a, b, c = (position[faces[:, k]] - position[faces[0, 0]] for k in range(3))
    return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0)


def _area(position: np.ndarray, faces: np.ndarray) -> float:
    """Area of faces [m^2]."""
    a, b, c = (position[faces[:, k]] for k in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2.0)


def _places(position: np.ndarray, pieces: list[np.ndarray]) -> str:
    return " and ".join(_place(position[piece].reshape(-1, 3)) for piece in pieces)


def _place(points: np.ndarray) -> str:
    return "(" + ", ".join(f"{c:.4g}" for c in points.mean(axis=0)) + ")"
