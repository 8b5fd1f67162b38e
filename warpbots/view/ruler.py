"""Rulers: ticks with round numbers of metres along the edges of a view."""

import dataclasses

import numpy as np

from warpbots.view.camera import Camera

__all__ = ["Tick", "ruler", "tick_distance", "upright_edge"]


@dataclasses.dataclass(frozen=True)
class Tick:
    """A tick of a ruler.

    Attributes:
        text: The number at the tick; for the last tick of an edge, the number with the unit and the name of the axis.
        at: Position of the tick [m], on the edge closer to the viewer, shape (dim,).
        far: End, on the opposite edge, of the grid line that begins at the tick and crosses the floor [m], shape
            (dim,); `at` if there is no such line.
        outward: Direction from the edge out of the view, shape (dim,).
    """

    text: str
    at: np.ndarray
    far: np.ndarray
    outward: np.ndarray


def tick_distance(camera: Camera) -> float:
    """Distance between the ticks along the horizontal edges of a view, a round number of metres."""
    lower, upper = camera.box
    return _round_step(float((upper - lower)[:2].max()), 6)


def ruler(camera: Camera) -> list[Tick]:
    """Ticks along the edges of a view.

    In 2D these are the lower and the left edge; in 3D the near edges of the floor, and `upright_edge`.
    """
    lower, upper = camera.box
    step, ticks = tick_distance(camera), []
    for axis in range(2):
        across = 1 - axis
        near, far = lower[across], upper[across]
        if len(camera.axes) == 3 and camera.axes[2][across] > 0.0:
            near, far = far, near
        start, end = np.array([lower, lower])
        start[across], end[across] = near, far
        ticks += _along(axis, step, camera, start, end, np.sign(near - far) * np.eye(len(lower))[across])
    if len(camera.axes) == 3:
        base, top = upright_edge(camera)
        if top[2] - base[2] < 1.02 * step:
            step = _round_step(float(top[2] - base[2]), 2)
        ticks += _along(2, step, camera, base, base, -camera.axes[0])
    return ticks


def upright_edge(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end [m] of the upright edge of a 3D view that is seen farthest to the left."""
    (x0, y0, low), (x1, y1, high) = camera.box
    corners = np.array([[x, y, low] for x in (x0, x1) for y in (y0, y1)])
    base = corners[np.argmin(corners @ camera.axes[0])]
    return base, np.array([base[0], base[1], high])


def _along(
    axis: int, step: float, camera: Camera, start: np.ndarray, end: np.ndarray, outward: np.ndarray
) -> list[Tick]:
    """Ticks in the direction of an axis; their lines lead from the edge through `start` to the edge through `end`."""
    low, high = (corner[axis] for corner in camera.box)
    values = step * np.arange(np.ceil(low / step + 0.02), np.floor(high / step - 0.02) + 1.0)
    ticks = []
    for i, value in enumerate(values):
        at, far = start.copy(), end.copy()
        at[axis] = far[axis] = value
        unit = f" m  ({'xyz'[axis]})" if i == len(values) - 1 else ""
        ticks.append(Tick(f"{round(value / step) * step + 0.0:.10g}{unit}", at, far, outward))
    return ticks


def _round_step(length: float, intervals: int) -> float:
    """A round number [m] that divides a length into at most `intervals` intervals."""
    from matplotlib.ticker import MaxNLocator

    values = MaxNLocator(intervals, steps=[1, 2, 5, 10]).tick_values(0.0, length)
    return float(values[1] - values[0])
