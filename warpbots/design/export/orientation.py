"""Orients a part on the bed of a printer: the side with the least overhang is down, and the part fits the bed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.printer import Printer
from warpbots.design.export.solids import MM
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    import trimesh

__all__ = ["lay_down", "overhang_share", "turned_to_fit"]

_ON_BED = 0.01
"""Faces up to this height are on the bed [mm]."""

_CANDIDATES = 200
"""Largest number of sides that are tried."""

_APART = np.cos(np.radians(2.0))
"""Sides whose normals include less than 2 degrees count as one."""


@checked
def overhang_share(mesh: "trimesh.Trimesh", angle: float, up: np.ndarray | None = None) -> float:
    """Fraction of a surface that overhangs: that faces down, is tilted by more than `angle`, and is not on the bed.

    The angle of a vertical wall is 0 degrees, the angle of a ceiling is 90 degrees.

    Args:
        mesh: A closed mesh [mm].
        angle: Largest angle from the vertical of a surface that prints without supports, in [0, 90] [degrees].
        up: Upward direction of any length, shape (3,); None for z. The bed touches the lowest vertex.

    Raises:
        ValueError: `up` has no direction, or `angle` is out of its range.
    """
    if not 0.0 <= angle <= 90.0:
        raise ValueError(f"overhang_share: angle must be in [0, 90] degrees, got {angle:g}")
    upward = np.array([0.0, 0.0, 1.0]) if up is None else np.asarray(up, np.float64)
    if upward.shape != (3,) or not np.linalg.norm(upward) > 0.0:
        raise ValueError(f"overhang_share: up must be three numbers, not all zero, got {upward.tolist()}")
    return _overhang(mesh, angle, upward / np.linalg.norm(upward))[0]


def _overhang(mesh: "trimesh.Trimesh", angle: float, up: np.ndarray) -> tuple[float, float]:
    """The fraction of a surface that overhangs, and the fraction that lies on the bed; `up` is a unit vector."""
    height = mesh.vertices @ up
    bed = (height - height.min() <= _ON_BED)[mesh.faces].all(axis=1)
    hanging = mesh.face_normals @ up < -np.sin(np.radians(angle)) - 1e-9
    area = mesh.area_faces
    return float(area[hanging & ~bed].sum() / area.sum()), float(area[bed].sum() / area.sum())


def lay_down(mesh: "trimesh.Trimesh", printer: Printer, up: Sequence[float] | None = None) -> np.ndarray:
    """The pose in which a part is printed, with the lower corner of its bounding box at the origin, shape (4, 4).

    The part lies on the side of its convex hull that gives the least overhang. Overhangs that differ by less than a
    hundredth of the surface, or that are below the limit of the printer, count as equal. Among sides with equal
    overhang, the side with the largest contact with the bed is chosen; among sides with equal contact, the side on
    which the part is lowest. The 200 largest sides are tried.

    Args:
        mesh: A closed mesh [mm].
        printer: The printer.
        up: Upward direction in the frame of the mesh, shape (3,); None to search for the best side.
    """
    import trimesh

    upward = _best_up(mesh, printer) if up is None else np.asarray(up, np.float64) / np.linalg.norm(up)
    pose = trimesh.geometry.align_vectors(upward, (0.0, 0.0, 1.0))
    points = mesh.vertices @ pose[:3, :3].T
    angle, _ = turned_to_fit(points[:, :2], MM * np.array(printer.bed[:2]))
    turn = trimesh.transformations.rotation_matrix(angle, (0.0, 0.0, 1.0))
    pose = turn @ pose
    pose[:3, 3] = -(mesh.vertices @ pose[:3, :3].T).min(axis=0)
    return pose


def _best_up(mesh: "trimesh.Trimesh", printer: Printer) -> np.ndarray:
    hull = mesh.convex_hull
    best, least = np.array([0.0, 0.0, 1.0]), (np.inf, np.inf, np.inf)
    for down in _sides(hull):
        overhang, contact = _overhang(mesh, printer.overhang_angle, -down)
        rank = (
            round(100.0 * max(overhang, printer.overhang_share)),
            -round(contact, 6),
            float(np.ptp(hull.vertices @ down)),
        )
        if rank < least:
            best, least = -down, rank
    return best


def _sides(hull: "trimesh.Trimesh") -> list[np.ndarray]:
    """Normals of the largest sides of a convex hull, without nearly equal normals."""
    sides, area = hull.face_normals.copy(), hull.area_faces.copy()
    for facet, whole in zip(hull.facets, hull.facets_area, strict=True):
        area[facet] = whole
    kept: list[np.ndarray] = []
    for k in np.argsort(-area, kind="stable"):
        if len(kept) == _CANDIDATES:
            break
        if not kept or (np.array(kept) @ sides[k]).max() < _APART:
            kept.append(sides[k])
    return kept


def turned_to_fit(points: np.ndarray, bed: np.ndarray) -> tuple[float, np.ndarray]:
    """The angle about the vertical at which a part fits the bed best, and the excess of the part over the bed.

    If the smallest rectangle around the part fits the bed, the result is the angle of this rectangle, otherwise the
    angle with the largest margin.

    Args:
        points: Horizontal positions of the vertices of the part [mm], shape (n, 2).
        bed: Width and depth of the bed [mm], shape (2,).

    Returns:
        The angle [rad], and the size of the part minus the size of the bed along the axes of the bed [mm], shape (2,);
        negative along axes along which the part fits.
    """
    from scipy.optimize import minimize_scalar
    from scipy.spatial import ConvexHull

    corners = points[ConvexHull(points).vertices]

    def size(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.ptp(corners @ np.array([[c, s], [-s, c]]), axis=0)

    def excess(angle: float) -> float:
        return float((size(angle) - bed).max())

    edges = np.roll(corners, -1, axis=0) - corners
    along = -np.arctan2(edges[:, 1], edges[:, 0])
    snug = min(np.concatenate([along, along + np.pi / 2]), key=lambda a: (round(np.prod(size(a)), 6), -size(a)[0]))
    if excess(snug) <= 0.0:
        return float(snug), size(snug) - bed
    step = np.radians(0.5)
    start = min(np.arange(0.0, np.pi, step), key=excess)
    found = minimize_scalar(excess, bounds=(start - step, start + step), method="bounded", options={"xatol": 1e-9})
    best = min((float(found.x), float(start), float(snug)), key=excess)
    return best, size(best) - bed
