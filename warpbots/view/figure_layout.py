"""Layout of several pictures of one camera on a figure, without empty space around the pictures."""

import math
import os
from pathlib import Path
from typing import Any

from warpbots.scene.field_types import shown
from warpbots.view.camera import Camera

__all__ = ["axes_layout", "columns_for", "refuse_format", "refuse_no_axes", "width_for"]

_FLAT = (0.56, 0.42, 0.10, 0.08)  # left, bottom, right and top margin [inch]: room for ticks and their labels
_SPACE = (0.08, 0.20, 0.42, 0.04)
_GAP = (0.14, 0.10)  # between pictures, sideways and upwards [inch]
_TALLEST = 0.72  # largest height of a figure of several pictures relative to its width


def axes_layout(
    camera: Camera, width: float, rows: int = 1, columns: int = 1
) -> tuple[tuple[float, float], list[tuple[float, float, float, float]]]:
    """Size of a figure and positions of its axes.

    Args:
        camera: The view of all pictures.
        width: Width of the figure [inch].
        rows: Number of rows of pictures.
        columns: Number of columns of pictures.

    Returns:
        Width and height of the figure [inch]; and left, bottom, width and height of each picture as fractions of the
        figure, row by row from the top.
    """
    left, bottom, right, top = _FLAT if len(camera.axes) == 2 else _SPACE
    across, down = _GAP if len(camera.axes) == 2 else (_SPACE[2], _SPACE[1])
    w = (width - left - right - (columns - 1) * across) / columns
    h = w / camera.aspect
    height = bottom + top + rows * h + (rows - 1) * down
    places = [
        ((left + c * (w + across)) / width, (bottom + (rows - 1 - r) * (h + down)) / height, w / width, h / height)
        for r in range(rows)
        for c in range(columns)
    ]
    return (width, height), places


def width_for(camera: Camera, size: float) -> float:
    """Width of a figure with one picture whose longer side is `size` [inch]."""
    left, bottom, right, top = _FLAT if len(camera.axes) == 2 else _SPACE
    return min(size, left + right + camera.aspect * (size - bottom - top))


def columns_for(camera: Camera, width: float, count: int) -> int:
    """Number of columns for `count` pictures on a figure of a given width.

    The result makes the pictures as large as possible without making the figure too tall; full rows are preferred.
    """

    def scale(columns: int) -> float:
        rows = math.ceil(count / columns)
        (_, height), places = axes_layout(camera, width, rows, columns)
        ragged = 0.75 if count % columns else 1.0
        return ragged * places[0][2] * min(1.0, _TALLEST * width / height)

    return max(range(1, count + 1), key=scale)


def refuse_no_axes(ax: Any, who: str) -> None:
    """Raise if `ax` is not a matplotlib axes object; `who` is the name of the caller, for the message.

    Raises:
        ValueError: `ax` is not a matplotlib axes object.
    """
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise ValueError(f"{who}: ax must be axes of matplotlib, as those of plt.subplots(), or None, got {shown(ax)}")


def refuse_format(path: str | os.PathLike, who: str) -> None:
    """Raise if matplotlib cannot write a picture to `path`, because of its ending.

    `who` is the caller, for the message.

    Raises:
        ValueError: The ending is unknown.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    ending, known = Path(path).suffix.removeprefix(".").lower(), FigureCanvasBase.get_supported_filetypes()
    if ending not in known:
        raise ValueError(f"{who}: path must end in .{', .'.join(sorted(known))}, got {str(path)!r}")
