"""Interpolation of the fields of a scene to elements other than those for which the fields were made."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Field, Scene, SceneError, SoftBody

__all__ = ["interpolated", "resampled"]

_AGREE = 0.1
"""Largest change of the corners of a body since a field was made, relative to its extent, plus two element sizes."""

_FLAT = 1e-6
"""Ratio of the extents along two axes below which points count as flat along the axis with the smaller extent."""


def resampled(field: Field, places: np.ndarray, body_of: np.ndarray, scene: Scene) -> tuple[np.ndarray, float]:
    """Interpolate a field from the centres of its elements to the centres of other elements.

    Interpolation is linear within the convex hull of the centres; outside of it, the nearest value is taken. Each body
    is interpolated by itself, because materials of bodies that touch may differ by orders of magnitude.

    Args:
        field: The field.
        places: Vertices of the elements that need values [m], shape (n, k, dim).
        body_of: Index in the scene of the body of each of these elements, shape (n,).
        scene: The scene of the bodies.

    Returns:
        Values, shape (n, ...), and their error. For the error, the values are interpolated back to the elements of the
        field, and the root mean square of the difference is divided by the root mean square of the field.

    Raises:
        SceneError: The field was made for bodies of another shape, or at another place.
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
    """Index in the scene of the soft body that contains each point, or is nearest to it, shape (n,)."""
    numbers = np.array([i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)])
    if len(numbers) == 1:
        return np.full(len(points), numbers[0])
    return numbers[np.argmin([signed_distance(scene.bodies[i].shape, points) for i in numbers], axis=0)]


def _refuse_other(field: Field, body: str, old: np.ndarray, new: np.ndarray) -> None:
    """Raise if the elements of a body do not have about the bounding box of the elements for which the field was made.

    Args:
        field: The field.
        body: Name of the body.
        old: Vertices of the elements for which the field was made [m], shape (n, k, dim).
        new: Vertices of the elements of the model [m], shape (m, k, dim).
    """
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
    """Lower and upper corner of the bounding box of elements [m], each of shape (dim,)."""
    return places.min(axis=(0, 1)), places.max(axis=(0, 1))


def _spacing(places: np.ndarray) -> float:
    """Approximate distance between elements [m]."""
    lower, upper = _box(places)
    edges = (upper - lower)[upper > lower]
    return float((edges.prod() / len(places)) ** (1.0 / len(edges))) if len(edges) else 0.0


def interpolated(points: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Interpolate values at points: linearly within the Delaunay simplices of the points, outside by the nearest value.

    Args:
        points: Positions of the values [m], shape (n, dim).
        values: Values, shape (n, ...).
        at: Positions at which to interpolate [m], shape (m, dim).

    Returns:
        Values, shape (m, ...).
    """
    from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
    from scipy.spatial import Delaunay

    found = NearestNDInterpolator(points, values)(at)
    middle = points.mean(axis=0)
    _, size, axes = np.linalg.svd(points - middle, full_matrices=False)
    axes = axes[size > _FLAT * size[0]]  # elements of a sheet lie in a plane: interpolate within it
    if len(axes) > 1 and len(points) > len(axes):
        simplices = Delaunay((points - middle) @ axes.T)
        flat = (at - middle) @ axes.T
        inside = simplices.find_simplex(flat) >= 0
        found[inside] = LinearNDInterpolator(simplices, values)(flat[inside])
    return found
