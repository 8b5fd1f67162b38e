"""Layout of pictures of one camera on a figure, without empty space around them."""

import math

from warpbots.view.camera import Camera

__all__ = ["axes_layout", "columns_for", "width_for"]

_FLAT = (0.56, 0.42, 0.10, 0.08)  # left, bottom, right and top margin [inch]: room for ticks and their labels
_SPACE = (0.08, 0.20, 0.42, 0.04)
_GAP = (0.14, 0.10)  # between pictures, sideways and upwards [inch]
_TALLEST = 0.72  # largest height of a figure of several pictures over its width


def axes_layout(
    camera: Camera, width: float, rows: int = 1, columns: int = 1
) -> tuple[tuple[float, float], list[tuple[float, float, float, float]]]:
    """Size of a figure and positions of its axes.

    Args:
        camera: The view of all pictures.
        width: Width of the figure [inch].
        rows: Rows of pictures.
        columns: Columns of pictures.

    Returns:
        Width and height of the figure [inch], and left, bottom, width and height of each picture as fractions of the
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
    """Width [inch] of a figure of one picture whose longer side is `size` [inch]."""
    left, bottom, right, top = _FLAT if len(camera.axes) == 2 else _SPACE
    return min(size, left + right + camera.aspect * (size - bottom - top))


def columns_for(camera: Camera, width: float, count: int) -> int:
    """Number of columns with the largest pictures on a figure that is not too tall; full rows are preferred."""

    def scale(columns: int) -> float:
        rows = math.ceil(count / columns)
        (_, height), places = axes_layout(camera, width, rows, columns)
        ragged = 0.75 if count % columns else 1.0
        return ragged * places[0][2] * min(1.0, _TALLEST * width / height)

    return max(range(1, count + 1), key=scale)
