"""Rulers: ticks with round numbers of metres along the edges of a view."""

import dataclasses

import numpy as np

from warpbots.view.camera import Camera

__all__ = ["Tick", "ruler", "tick_distance"]


@dataclasses.dataclass(frozen=True)
class Tick:
    """A tick of a ruler.

    Attributes:
        text: The number at the tick; for the last tick of an edge, the number with the unit and the name of the axis.
        at: Position of the tick [m], on the edge closer to the viewer, shape (dim,).
        far: End, on the opposite edge, of the grid line that begins at the tick and crosses the floor [m], shape
            (dim,).
        outward: Direction from the edge out of the view, shape (dim,).
    """

    text: str
    at: np.ndarray
    far: np.ndarray
    outward: np.ndarray


def tick_distance(camera: Camera) -> float:
    """Distance between the ticks of a ruler, a round number of metres."""
    from matplotlib.ticker import MaxNLocator

    lower, upper = camera.box
    steps = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0.0, float((upper - lower)[:2].max()))
    return float(steps[1] - steps[0])


def ruler(camera: Camera) -> list[Tick]:
    """Ticks along the lower and left edge of a 2D view, or along the near edges of the floor of a 3D view."""
    lower, upper = camera.box
    step, ticks = tick_distance(camera), []
    for axis in range(2):
        across = 1 - axis
        near, far = lower[across], upper[across]
        if len(camera.axes) == 3 and camera.axes[2][across] > 0.0:
            near, far = far, near
        first, last = np.ceil(lower[axis] / step + 0.02), np.floor(upper[axis] / step - 0.02)
        values = step * np.arange(first, last + 1.0)
        for i, value in enumerate(values):
            ends = np.array([lower, lower])
            ends[:, axis], ends[:, across] = value, (near, far)
            unit = f" m  ({'xy'[axis]})" if i == len(values) - 1 else ""
            outward = np.sign(near - far) * np.eye(len(lower))[across]
            ticks.append(Tick(f"{round(value / step) * step + 0.0:.10g}{unit}", *ends, outward))
    return ticks
