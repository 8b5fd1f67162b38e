"""Fields of a scene on elements other than those that they were designed for."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Field, Scene, SceneError, SoftBody

__all__ = ["interpolated", "resampled"]

_AGREE = 0.1
"""Part of its size by which a body may differ from the one that a field was designed for, besides the elements."""

_FLAT = 1e-6
"""Part of their length below which points have no width."""


def resampled(field: Field, places: np.ndarray, body_of: np.ndarray, scene: Scene) -> tuple[np.ndarray, float]:
    """Values of a field between the centres of its elements: linear within their hull, the nearest ones outside.

    Bodies do not mix, whose materials may differ by orders of magnitude where they touch.

    Args:
        field: The field.
        places: Vertices of the elements that need values [m], shape (n, k, dim).
        body_of: Index in the scene of the body of each of them, shape (n,).
        scene: Has the bodies.

    Returns:
        Values, shape (n, ...), and their error: the root of the mean square by which they differ from those of the
        field where they are interpolated back to its elements, divided by that of the field.

    Raises:
        SceneError: The field was designed for bodies of another shape, or at another place.
    """
    old, new = field.centers, places.mean(axis=1)
    values, back = np.zeros((len(new), *field.values.shape[1:])), np.zeros_like(field.values)
    was_of = _nearest_body(old, scene)
    for k in np.union1d(was_of, body_of):
        here, there = was_of == k, body_of == k
        _refuse_other(field, scene.bodies[k].name, field.places[here], places[there])
        values[there] = interpolated(old[here], field.values[here], new[there])
        back[here] = interpolated(new[there], values[there], old[here])
    return values, float(np.linalg.norm(back - field.values) / max(np.linalg.norm(field.values), np.finfo(float).tiny))


def _nearest_body(points: np.ndarray, scene: Scene) -> np.ndarray:
    """Index in the scene of the soft body that each of the points is in, or nearest to, shape (n,)."""
    numbers = np.array([i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)])
    if len(numbers) == 1:
        return np.full(len(points), numbers[0])
    return numbers[np.argmin([signed_distance(scene.bodies[i].shape, points) for i in numbers], axis=0)]


def _refuse_other(field: Field, body: str, old: np.ndarray, new: np.ndarray) -> None:
    """Raise if the elements of a body do not fill the space of those that the field was designed for."""
    words = f"Field {field.name!r}: it was designed for another mesh of SoftBody {body!r}, "
    remedy = "bake it for this body again (Simulation.scene_with), or leave it out of Scene.fields"
    if not (len(old) and len(new)):
        raise SceneError(f"{words}with {len(old)} elements where this model has {len(new)}; {remedy}")
    (a, b), (c, d) = _box(old), _box(new)
    slack = _AGREE * (b - a).max() + _spacing(old) + _spacing(new)
    if max(np.abs(a - c).max(), np.abs(b - d).max()) > slack:
        raise SceneError(
            f"{words}from {a.round(6).tolist()} to {b.round(6).tolist()} m, and the elements here reach from "
            f"{c.round(6).tolist()} to {d.round(6).tolist()} m; {remedy}"
        )


def _box(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of elements [m], each of shape (dim,)."""
    return places.min(axis=(0, 1)), places.max(axis=(0, 1))


def _spacing(places: np.ndarray) -> float:
    """About how far elements are apart [m]."""
    lower, upper = _box(places)
    edges = (upper - lower)[upper > lower]
    return float((edges.prod() / len(places)) ** (1.0 / len(edges))) if len(edges) else 0.0


def interpolated(points: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values between points: linear in the simplices of these, the nearest ones outside of them.

    Args:
        points: Where the values are [m], shape (n, dim).
        values: Values, shape (n, ...).
        at: Where they are wanted [m], shape (m, dim).

    Returns:
        Values, shape (m, ...).
    """
    from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
    from scipy.spatial import Delaunay

    found = NearestNDInterpolator(points, values)(at)
    middle = points.mean(axis=0)
    _, size, axes = np.linalg.svd(points - middle, full_matrices=False)
    axes = axes[size > _FLAT * size[0]]  # elements of a sheet lie in a plane, in which they have neighbours
    if len(axes) > 1 and len(points) > len(axes):
        simplices = Delaunay((points - middle) @ axes.T)
        flat = (at - middle) @ axes.T
        inside = simplices.find_simplex(flat) >= 0
        found[inside] = LinearNDInterpolator(simplices, values)(flat[inside])
    return found
