"""Checks of numbers and arrays, shared by the constructors of shapes."""

from typing import Any

import numpy as np

from warpbots.scene.record import SceneError

__all__ = ["assign", "finite_array", "positive", "refuse_bad_indices", "refuse_unused"]


def assign(instance: Any, **values: Any) -> None:
    """Set attributes of a frozen dataclass `instance`, for use in its constructor."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def finite_array(value: Any, what: str, ndim: int, dtype: type = np.float64) -> np.ndarray:
    """Convert `value` to a read-only array of finite numbers with `ndim` dimensions.

    Raises:
        SceneError: The array is empty, has another number of dimensions, or contains fractions instead of integers.
    """
    given = np.asarray(value)
    if given.ndim != ndim or given.size == 0:
        raise SceneError(f"{what} must be a non-empty array of {ndim} dimensions, got shape {given.shape}")
    if dtype is np.int64 and (broken := (given != np.round(given)) | (np.abs(given) > 2**53)).any():
        bad = tuple(int(i) for i in np.argwhere(broken)[0])
        raise SceneError(f"{what} must be whole numbers, got {given[bad]} at index {bad}")
    array = np.array(given, dtype=dtype)
    array.flags.writeable = False
    return array


def positive(value: float, what: str) -> float:
    """Return `value` if it is positive.

    Raises:
        SceneError: `value` is not positive.
    """
    if value <= 0.0:
        raise SceneError(f"{what} must be a positive number, got {value:g}")
    return value


def refuse_bad_indices(elements: np.ndarray, count: int, shape: str, field: str) -> None:
    """Raise an error if an element has the index of a vertex that does not exist, or has an index twice.

    Args:
        elements: Vertex indices of each element, shape (m, corners).
        count: Number of vertices.
        shape: Name of the shape, for messages.
        field: Name of the field of the shape that holds the elements, for messages.

    Raises:
        SceneError: An index does not exist, or an element has an index twice.
    """
    if elements.min() < 0 or elements.max() >= count:
        raise SceneError(
            f"{shape}.{field} must index vertices 0 to {count - 1}, got {elements.min()} to {elements.max()}"
        )
    ordered = np.sort(elements, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise SceneError(
            f"{shape}.{field}: {len(twice)} of {len(elements)} have a vertex twice; the first is {twice[0]} with "
            f"{elements[twice[0]].tolist()}; remove them"
        )


def refuse_unused(vertices: np.ndarray, elements: np.ndarray, shape: str, element: str) -> None:
    """Raise an error if a vertex belongs to no element.

    Args:
        vertices: Vertex positions [m], shape (n, dim).
        elements: Vertex indices of each element, shape (m, corners).
        shape: Name of the shape, for messages.
        element: Word for an element in messages.

    Raises:
        SceneError: A vertex belongs to no element.
    """
    loose = np.setdiff1d(np.arange(len(vertices)), elements)
    if len(loose):
        raise SceneError(
            f"{shape}: {len(loose)} of {len(vertices)} vertices belong to no {element}, the first is {loose[0]} at "
            f"{vertices[loose[0]].round(6).tolist()} m; remove them"
        )
