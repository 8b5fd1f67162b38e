"""Components whose cage is a frustum with 14 handles: its 8 corners and the middles of its 6 faces."""

from collections.abc import Sequence

import numpy as np

from warpbots.design.cage import box_cage
from warpbots.design.component import Component, Hinge, Port
from warpbots.design.part import Part
from warpbots.design.section import Section
from warpbots.scene.field_types import checked

__all__ = ["box_component"]

_SIZES = ("length", "in.width", "in.height", "out.width", "out.height")
_LOW, _HIGH = (8, 0, 2, 4, 6), (9, 1, 3, 5, 7)
"""Handles of the faces at the start and at the end: middle, then corners (-y, -z), (+y, -z), (-y, +z), (+y, +z)."""
_BACK = (8, 2, 0, 6, 4)
"""The handles at the start, seen along -x."""


@checked
def box_component(
    name: str,
    length: float,
    start: Section,
    end: Section,
    parts: Sequence[Part],
    hinge: Hinge | None = None,
    along: str | None = None,
    joins: Sequence[str] = ("in", "out"),
    centered: bool = False,
) -> Component:
    """A component along x in a frustum between two cross-sections.

    The origin of the frame of the component is the middle of the start cross-section. The parts must be within the
    frustum. The sizes of the component are "length", "in.width", "in.height", "out.width" and "out.height". Handles are
    in the order of `box_cage`.

    Args:
        name: Name of the component.
        length: Length of the component [m].
        start: Cross-section at the start.
        end: Cross-section at the end.
        parts: The mesh of the component or, with a hinge, the mesh before and the mesh behind the hinge.
        hinge: The hinge of the component; None for a component with one mesh.
        along: The only dimension that can be scaled, "width" or "height", if all other sizes are standard sizes, as
            they are for a component with a hinge about y or z. None if all dimensions can be scaled.
        joins: Names of the ports of the component: "in" at the start, "out" at the end, "back" at the start for a child
            component.
        centered: Whether the origin is half-way along x instead of at the start; for root components, which have no
            port "in".

    Raises:
        ValueError: `along` or the name of a port is not one of the names above, or the component is invalid, see
            `Component`.
    """
    if along not in (None, "width", "height"):
        raise ValueError(f"Component {name!r}: along must be 'width', 'height' or None, got {along!r}")
    if unknown := [port for port in joins if port not in ("in", "out", "back")]:
        raise ValueError(f"Component {name!r}: joins must name 'in', 'out' or 'back', got {unknown[0]!r}")
    layout = np.zeros((14, 3, 5))
    for corner in range(8):
        i, j, k = corner & 1, corner >> 1 & 1, corner >> 2 & 1
        layout[corner, 0, 0] = i - 0.5 * centered
        layout[corner, 1, 1 + 2 * i], layout[corner, 2, 2 + 2 * i] = j - 0.5, k - 0.5
    cage = box_cage((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    middles = np.array([cage.handles[:8, axis] == side for axis in range(3) for side in (0.0, 1.0)])
    layout[8:] = np.einsum("fc,cas->fas", middles / 4.0, layout[:8])
    ports = {
        "in": Port(_LOW, np.eye(3), "in.width", "in.height"),
        "out": Port(_HIGH, np.eye(3), "out.width", "out.height"),
        "back": Port(_BACK, np.diag([-1.0, -1.0, 1.0]), "in.width", "in.height"),
    }
    sizes = dict(zip(_SIZES, (length, start.width, start.height, end.width, end.height), strict=True))
    fixed = frozenset(s for s in _SIZES if along and not s.endswith(along))
    tied = [(f"in.{along}", f"out.{along}")] if along else []
    return Component(name, sizes, layout, cage.faces, {port: ports[port] for port in joins}, parts, hinge, fixed, tied)
