"""Which nodes constraints hold, and along which normals, on the host."""

import numpy as np

from warpbots.scene import Scene, SceneError

__all__ = ["anchored_in", "frames_in", "normals_of"]

_MOST = 4000
"""Largest number of normals, whose compliances are a dense matrix."""


def normals_of(scene: Scene, regions: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
    """Orthonormal directions in which constraints hold nodes, each of shape (1, 2 or 3, 3).

    A node in the regions of several constraints obeys all of them.

    Args:
        scene: The scene.
        regions: For every region, which nodes are in the region, each of shape (n_nodes,), bool.

    Raises:
        SceneError: Lines and planes hold more nodes than the dense matrix of their compliances has room for.
    """
    held: dict[int, list[np.ndarray]] = {}
    for constraint in scene.constraints:
        n = np.eye(3)
        if constraint.direction is not None:
            n = np.array([constraint.direction])
            n = n if constraint.freedom == "plane" else np.eye(3) - n.T @ n
        for i in np.flatnonzero(regions[constraint.region]):
            held.setdefault(int(i), []).append(n)
    normals = {i: _basis(np.concatenate(n)) for i, n in sorted(held.items())}
    count = sum(len(n) for n in normals.values() if len(n) < 3)
    if count > _MOST:
        raise SceneError(
            f"Constraints: lines and planes hold nodes in {count} directions, of which ProjectiveDynamics takes up to "
            f"{_MOST}; make their regions smaller, or use a larger ProjectiveDynamics(cell_size=...)"
        )
    return normals


def anchored_in(scene: Scene, regions: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Which of `count` nodes a constraint holds at a point, rather than on a line or plane, shape (count,), bool."""
    held = (regions[c.region] for c in scene.constraints if c.direction is None)
    return np.logical_or.reduce([np.zeros(count, dtype=bool), *held])


def frames_in(scene: Scene, regions: dict[str, np.ndarray], of_constraint: np.ndarray, count: int) -> np.ndarray:
    """Index of the frame that moves the constraint of each of `count` nodes, -1 for none, shape (count,), int.

    Args:
        scene: The scene; a constraint that moves shares no node with another one.
        regions: For every region, which nodes are in the region, each of shape (count,), bool.
        of_constraint: Index of the frame of each constraint, -1 for one that does not move, shape (n_constraints,).
        count: Number of nodes.
    """
    frame = np.full(count, -1)
    for constraint, own in zip(scene.constraints, of_constraint, strict=True):
        if own >= 0:
            frame[regions[constraint.region]] = own
    return frame


def _basis(directions: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the space that `directions` span; without rounding for coordinate axes."""
    _, size, basis = np.linalg.svd(directions)
    rank = int((size > 1e-6).sum())
    basis = basis[:rank]
    return np.where(np.abs(basis) < 1e-12, 0.0, basis) if rank < 3 else np.eye(3)
