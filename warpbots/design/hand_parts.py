"""Parametric parts of hands: palms, knuckles, joints, phalanges and tips.

The nominal sizes are from Xu et al. 2021 (DiffHand), whose fingers consist of these parts; the meshes are not from
there. A part lies along x, from its port "in" at the origin to its port "out"; its cage is the frustum between the two
ports. Knuckles and joints are hinges: a clevis and a tongue on an axle of standard size. Therefore they can be scaled
only along the axle (section III-A of the paper, the fabrication constraint).
"""

import numpy as np

from warpbots.design.box_component import box_component
from warpbots.design.component import Component, Hinge
from warpbots.design.grid_mesh import check_grid
from warpbots.design.hinge_mesh import hinge_meshes
from warpbots.design.part import Part
from warpbots.design.section import Section
from warpbots.scene.field_types import checked

__all__ = ["joint", "knuckle", "palm", "phalanx", "tip"]

ROOT = Section(16e-3, 32.4e-3)
"""Section in which a finger joins a palm."""
FINGER = Section(26e-3, 26e-3)
"""Section in which the parts of a finger join."""

_ROUNDING = 0.3
"""Rounding of the corners of a cross-section, from 0 for a rectangle to 0.5 for an ellipse [1]."""
_DOME = 0.1
"""Height of the dome at the end of a tip, relative to the length of the tip [1]."""


@checked
def palm(section: Section = ROOT, length: float = 7e-3, points: int = 4, detail: int = 1) -> Component:
    """A palm with its frame in the middle, for a finger at the port "out" and an optional second finger at "back".

    Args:
        section: Section of the ports.
        length: Distance between the ports [m].
        points: Number of contact points.
        detail: Factor by which the grid of the mesh is refined.
    """
    block = _block("palm", section, length, (2, 4, 6), detail) - [length / 2.0, 0.0, 0.0]
    part = Part.of_cells(block, hidden=((0, length / 2.0),), points=points)
    return box_component("palm", length, section, section, (part,), joins=("out", "back"), centered=True)


@checked
def phalanx(section: Section = FINGER, length: float = 23.4e-3, points: int = 57, detail: int = 1) -> Component:
    """A phalanx, whose long edges are rounded between its two ends.

    Args:
        section: Section of the ports.
        length: Distance between the ports [m].
        points: Number of contact points.
        detail: Factor by which the grid of the mesh is refined.
    """
    block = _block("phalanx", section, length, (6, 6, 6), detail)
    _round_edges(block, section, np.sin(np.pi * block[:, 0, 0, 0] / length) ** 2)
    part = Part.of_cells(block, hidden=((0, 0.0), (0, length)), points=points)
    return box_component("phalanx", length, section, section, (part,))


@checked
def tip(section: Section = FINGER, length: float = 22.1e-3, points: int = 54, detail: int = 1) -> Component:
    """The tip of a finger, with a rounded end.

    Args:
        section: Section of the port "in", and cross-section of the cage at the other end.
        length: Distance of the end of the tip from the port "in" [m].
        points: Number of contact points.
        detail: Factor by which the grid of the mesh is refined.
    """
    block = _block("tip", section, length, (6, 6, 6), detail)
    s = (block[:, 0, 0, 0] / length)[:, None, None]
    rim = (np.abs(block[..., 1:]) / [section.width / 2.0, section.height / 2.0]).max(axis=-1)
    block[..., 0] -= _DOME * length * s**2 * rim**4
    _round_edges(block, section, s[:, 0, 0] ** 2)
    part = Part.of_cells(block, hidden=((0, 0.0),), points=points)
    return box_component("tip", length, section, section, (part,), joins=("in",))


@checked
def joint(
    section: Section = FINGER,
    length: float = 20.6e-3,
    axis_at: float = 10.8e-3,
    points: tuple[int, int] = (8, 32),
    detail: int = 1,
) -> Component:
    """A hinge about y that bends a finger; only the width of the hinge can be scaled.

    Args:
        section: Section of the ports.
        length: Distance between the ports [m].
        axis_at: Distance of the hinge axis from the port "in" [m].
        points: Numbers of contact points of the part before and the part behind the axis.
        detail: Factor by which the grids of the two meshes are refined.
    """
    turned = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # z to y
    across = Section(section.height, section.width)
    parts, angle = hinge_meshes("joint", length, axis_at, across, across, points, detail)
    parts = tuple(part.moved(turned) for part in parts)
    hinge = Hinge((axis_at, 0.0, 0.0), (0.0, 1.0, 0.0), -angle, angle)
    return box_component("joint", length, section, section, parts, hinge, along="width")


@checked
def knuckle(
    root: Section = ROOT,
    section: Section = FINGER,
    length: float = 27.5e-3,
    axis_at: float = 11.5e-3,
    points: tuple[int, int] = (6, 8),
    detail: int = 1,
) -> Component:
    """A hinge about z that spreads fingers; only the height of the hinge can be scaled.

    Args:
        root: Section of the port "in".
        section: Section of the port "out".
        length: Distance between the ports [m].
        axis_at: Distance of the hinge axis from the port "in" [m].
        points: Numbers of contact points of the part before and the part behind the axis.
        detail: Factor by which the grids of the two meshes are refined.
    """
    parts, angle = hinge_meshes("knuckle", length, axis_at, root, section, points, detail)
    hinge = Hinge((axis_at, 0.0, 0.0), (0.0, 0.0, 1.0), -angle, angle)
    return box_component("knuckle", length, root, section, parts, hinge, along="height")


def _block(what: str, section: Section, length: float, cells: tuple[int, int, int], detail: int) -> np.ndarray:
    """Positions of the nodes of a grid in a box whose length is parallel to x [m], shape (i, j, k, 3)."""
    check_grid(what, length, detail)
    size = (length, section.width, section.height)
    start = (0.0, -section.width / 2.0, -section.height / 2.0)
    axes = [a + b * np.linspace(0.0, 1.0, detail * n + 1) for a, b, n in zip(start, size, cells, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def _round_edges(nodes: np.ndarray, section: Section, amount: np.ndarray) -> None:
    """Round the cross-sections of the grid `nodes` in place.

    With y and z in units of the half width and half height, y becomes y sqrt(1 - c z^2) and z becomes z sqrt(1 - c
    y^2); c is proportional to `amount`.
    """
    half = np.array([section.width, section.height]) / 2.0
    y, z = np.moveaxis(nodes[..., 1:] / half, -1, 0)
    c = _ROUNDING * amount[:, None, None]
    nodes[..., 1], nodes[..., 2] = half[0] * y * np.sqrt(1.0 - c * z * z), half[1] * z * np.sqrt(1.0 - c * y * y)
