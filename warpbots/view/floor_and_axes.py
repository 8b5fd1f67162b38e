"""Draws the surroundings of a robot: axes in metres, obstacles in 2D, the floor in 3D."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Shape
from warpbots.view.camera import Camera
from warpbots.view.figure_layout import ACROSS, STEPS, UP, label_place, labelled, ticks_along
from warpbots.view.palette import GOAL, GROUND, GROUND_EDGE, QUIET
from warpbots.view.ruler import ruler, upright_edge

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["draw_floor", "draw_goals", "draw_section", "flat_axes"]

_NARROW = 0.2  # margin of a picture in which no numbers have room [inch]
_SAMPLES = 480  # along the longer side of the window


def flat_axes(ax: "Axes") -> None:
    """Give the axes of a 2D scene an unobtrusive style: few ticks, in metres, no box."""
    from matplotlib.ticker import MaxNLocator

    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=QUIET, linewidth=0.7)
    ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=8, width=0.7, length=3)
    place, figure = ax.get_position(), ax.figure.get_size_inches()
    sizes = place.width * figure[0], place.height * figure[1]
    for name, axis, length, spacing in zip("xy", (ax.xaxis, ax.yaxis), sizes, (ACROSS, UP), strict=True):
        axis.set_major_locator(MaxNLocator(ticks_along(length, spacing), steps=STEPS))
        axis.set_label_text(f"{name} [m]", color=QUIET, fontsize=8)
    if place.x0 * figure[0] < _NARROW:
        ax.tick_params(labelleft=False, labelbottom=False)
        ax.set(xlabel=None, ylabel=None)


def draw_section(
    ax: "Axes", shape: Shape, camera: Camera, color: tuple = GROUND, edge: tuple = GROUND_EDGE, order: float = 0.0
) -> "list[Artist]":
    """Draw a 2D solid as a filled area, clipped to the window of the camera; returns the matplotlib artists.

    Args:
        ax: Axes to draw on.
        shape: The solid.
        camera: The view.
        color: Red, green and blue of the area in [0, 1].
        edge: Red, green and blue of its outline.
        order: Place among the artists of the axes: higher ones hide lower ones.
    """
    lower, upper = camera.window
    spacing = float((upper - lower).max()) / _SAMPLES
    x, y = (np.linspace(a, b, max(2, round((b - a) / spacing))) for a, b in zip(lower, upper, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    distance = signed_distance(shape, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    if distance.min() >= 0.0:
        return []
    area = ax.contourf(x, y, distance, levels=[distance.min() - spacing, 0.0], colors=[color], zorder=order)
    if distance.max() <= 0.0:
        return [area]
    return [area, ax.contour(x, y, distance, levels=[0.0], colors=[edge], linewidths=1.0, zorder=order + 1.0)]


def draw_floor(ax: "Axes", camera: Camera, solid: bool) -> None:
    """Draw a grid in metres on the lower face of the camera's box, and labels along the edges of `ruler`.

    Args:
        ax: Axes to draw on.
        camera: A 3D view.
        solid: Whether the scene has a floor at the height of this face; the face is then filled.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon

    ax.set_axis_off()
    (x0, y0, z), (x1, y1, _) = camera.box
    rim = camera.project(np.array([[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]]))
    fill = GROUND if solid else "none"
    ax.add_patch(Polygon(rim, facecolor=fill, edgecolor=GROUND_EDGE, lw=0.8, zorder=0, clip_on=False))
    ticks = ruler(camera)
    lines = [camera.project(np.stack(ends)) for ends in (upright_edge(camera), *((t.at, t.far) for t in ticks))]
    ax.add_collection(LineCollection(lines, colors=[(*GROUND_EDGE, 0.55)], linewidths=0.6, zorder=1), autolim=False)
    for tick in labelled(camera, ax):
        offset, side = label_place(camera, tick)
        ax.annotate(
            tick.text, camera.project(tick.at), xytext=offset, textcoords="offset points", ha=side, va="top",
            color=QUIET, fontsize=7, zorder=1, annotation_clip=False,
        )  # fmt: skip


def draw_goals(ax: "Axes", camera: Camera, goals: np.ndarray, named: bool = True) -> None:
    """Mark points by rings with crosses, in front of everything; in 3D a line leads down to the lower face of the box.

    Args:
        ax: Axes to draw on.
        camera: The view.
        goals: The points [m], shape (n, dim).
        named: Whether the word "goal" stands beside the first point.
    """
    at = camera.project(goals)
    ax.plot(*at.T, "o", ms=10.0, mfc="none", mec=GOAL, mew=1.4, zorder=4.5)
    ax.plot(*at.T, "+", ms=6.0, mec=GOAL, mew=1.2, zorder=4.5)
    if goals.shape[1] == 3:
        below = camera.project(np.column_stack([goals[:, :2], np.full(len(goals), camera.box[0][2])]))
        for ends in zip(at, below, strict=True):
            ax.plot(*np.transpose(ends), color=GOAL, lw=0.8, ls=(0, (2, 2)), zorder=4.4)
    if named:
        ax.annotate(
            "goal", at[0], xytext=(8.0, 4.0), textcoords="offset points", color=GOAL, fontsize=8, zorder=4.5,
            annotation_clip=False,
        )  # fmt: skip
