"""Layout of several pictures of one camera on a figure, without empty space around the pictures."""

import functools
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.scene.field_types import shown
from warpbots.view.camera import Camera
from warpbots.view.ruler import Tick, ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ACROSS", "STEPS", "UP", "axes_layout", "columns_for", "label_place", "labelled", "refuse_format", "refuse_no_axes",
    "ticks_along", "width_for",
]  # fmt: skip

STEPS = [1, 2, 2.5, 5, 10]
"""Distances between ticks of flat pictures, times powers of ten."""
ACROSS, UP = 0.55, 0.24
"""Smallest distances between ticks of flat pictures along the axes, so that their numbers do not overlap [inch]."""


_TEXT = 7.0  # size of the numbers on a ruler [points]
_AWAY = 7.0  # distance of these numbers from their ticks [points]
_LEAST = (0.08, 0.12, 0.08, 0.04)  # smallest margins of a picture: left, bottom, right and top [inch]
_FLAT_LABELS = (0.22, 0.42, 0.0, 0.08)  # room for the names of the axes of a flat picture, beside the numbers [inch]
_GAP = (0.14, 0.10)  # between flat pictures, sideways and upwards [inch]
_TALLEST = 0.72  # largest height of a figure of several pictures relative to its width
_POINT = 1.0 / 72.0  # [inch]
_NUMBERED = 1.25  # smallest width of a picture with room for numbers [inch]


def label_place(camera: Camera, tick: Tick) -> tuple[np.ndarray, str]:
    """Where the number at a tick stands in a 3D picture.

    Returns:
        Offset from the tick [points], shape (2,), and the horizontal alignment: ``"left"``, ``"right"``, ``"center"``.
    """
    outward = camera.axes[:2] @ tick.outward
    away = outward / max(np.linalg.norm(outward), 1e-9)
    return _AWAY * away, "left" if away[0] > 0.3 else "right" if away[0] < -0.3 else "center"


def axes_layout(
    camera: Camera, width: float, rows: int = 1, columns: int = 1
) -> tuple[tuple[float, float], list[tuple[float, float, float, float]]]:
    """Size of a figure and positions of its axes, with room for all numbers beside the pictures.

    Args:
        camera: The view of all pictures.
        width: Width of the figure [inch].
        rows: Number of rows of pictures.
        columns: Number of columns of pictures.

    Returns:
        Width and height of the figure [inch]; and left, bottom, width and height of each picture as fractions of the
        figure, row by row from the top.
    """
    flat, w, numbers = len(camera.axes) == 2, width / columns, width / columns >= _NUMBERED
    for _ in range(4):  # the room for numbers depends on the size of the pictures
        left, bottom, right, top = _margins(camera, w) if numbers else _LEAST
        across, down = _GAP if flat else (left + right, bottom + top)
        w = max((width - left - right - (columns - 1) * across) / columns, 0.1)
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
    (_, height), _ = axes_layout(camera, size)
    width = size
    for _ in range(8):
        if height <= size * (1.0 + 1e-6):
            break
        width *= size / height
        (_, height), _ = axes_layout(camera, width)
    return width


def _margins(camera: Camera, width: float) -> tuple[float, float, float, float]:
    """Left, bottom, right and top margin [inch] of a picture that is `width` wide, for the numbers beside it."""
    if len(camera.axes) == 2:
        count = ticks_along(width / camera.aspect, UP)
        numbers = max(map(_width, _numbers(camera.window[0][1], camera.window[1][1], count)))
        left, bottom, right, top = _FLAT_LABELS
        return left + 8.0 / _TEXT * numbers + 0.06, bottom, max(right, 0.1), top
    margins = np.array(_LEAST)
    for x0, y0, x1, _ in (_label_box(camera, tick, width) for tick in ruler(camera)):
        margins = np.maximum(margins, [-x0, -y0, x1 - width, 0.0])
    return tuple(margins + 0.04)


def _label_box(camera: Camera, tick: Tick, width: float) -> tuple[float, float, float, float]:
    """Left, lower, right and upper end of the number at a tick of a 3D picture that is `width` wide [inch]."""
    offset, side = label_place(camera, tick)
    scale, size = width / float(camera.window[1][0] - camera.window[0][0]), _width(tick.text)
    x, y = scale * (camera.axes[:2] @ tick.at - camera.window[0]) + _POINT * offset
    x -= {"left": 0.0, "center": 0.5, "right": 1.0}[side] * size
    return x, y - 1.4 * _TEXT * _POINT, x + size, y


def labelled(camera: Camera, ax: "Axes") -> list[Tick]:
    """The ticks of a 3D picture whose numbers neither overlap nor leave the figure.

    Numbers with a unit, which also name the axis, come first; the others give way.
    """
    size, place = ax.figure.get_size_inches(), ax.get_position()
    left, bottom = place.x0 * size[0], place.y0 * size[1]
    taken: list[tuple[float, float, float, float]] = []
    chosen = []
    for tick in sorted(ruler(camera), key=lambda tick: " " not in tick.text):
        x0, y0, x1, y1 = _label_box(camera, tick, place.width * size[0])
        inside = left + x0 >= 0.0 and left + x1 <= size[0] and bottom + y0 >= 0.0
        if inside and all(x1 + 0.04 < u0 or u1 + 0.04 < x0 or y1 < v0 or v1 < y0 for u0, v0, u1, v1 in taken):
            taken.append((x0, y0, x1, y1))
            chosen.append(tick)
    return chosen


@functools.cache
def _width(text: str) -> float:
    """Width of a text of `_TEXT` points [inch]."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=_TEXT).get_extents().width) * _POINT


def ticks_along(length: float, spacing: float) -> int:
    """Largest number of ticks along an axis [inch] whose numbers have to be `spacing` apart [inch]; from 1 to 6."""
    return int(np.clip(length / spacing, 1, 6))


def _numbers(low: float, high: float, count: int) -> list[str]:
    """The numbers that matplotlib writes along an axis from `low` to `high` with at most `count` intervals."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    formatter, values = ScalarFormatter(), MaxNLocator(count, steps=STEPS).tick_values(low, high)
    formatter.create_dummy_axis()
    formatter.axis.set_view_interval(low, high)
    return formatter.format_ticks(values)


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
