"""Palms for several fingers around an axis."""

import numpy as np

from warpbots.design.cage import Cage
from warpbots.design.component import Component, Port
from warpbots.design.hand_parts import ROOT
from warpbots.design.part import Part
from warpbots.design.section import Section
from warpbots.scene.field_types import checked

__all__ = ["star_palm"]

_SIZES = ("gap", "width", "height")


@checked
def star_palm(
    fingers: int = 3, gap: float = 20e-3, section: Section = ROOT, points: int = 24, detail: int = 2
) -> Component:
    """A palm for several fingers around an axis: a prism along z, with the origin of its frame in the middle.

    The base of the prism is a polygon of 2 n sides with equal angles. Every second side is a port, counter-clockwise
    from "finger-0" along x. The x axis of a port points outwards and its z axis points upwards. The sizes of the palm
    are the "gap" between neighbouring ports, and the "width" and "height" of the ports. The ports are at a distance

        r = width / (2 tan(pi/n)) + gap / (2 sin(pi/n))

    from the axis, so that the prism is convex whatever the sizes are.

    Args:
        fingers: Number n of ports, at least 3.
        gap: Length of the sides between the ports [m].
        section: Section of the ports.
        points: Approximate number of contact points, which are spread over the surface outside of the ports.
        detail: Number of times that each face of the cage is divided into four faces, to make the mesh.

    Raises:
        ValueError: There are fewer than three fingers, or a size is not positive.
    """
    if fingers != int(fingers) or fingers < 3:
        raise ValueError(f"star_palm: fingers must be an integer of at least 3, got {fingers!r}; `palm` is for 1 and 2")
    if not 0.0 < gap < np.inf:
        raise ValueError(f"star_palm: gap must be positive [m], got {gap:g}")
    if detail != int(detail) or detail < 0:
        raise ValueError(f"star_palm: detail must be an integer of at least 0, got {detail!r}")
    sizes = dict(zip(_SIZES, (gap, section.width, section.height), strict=True))
    layout, faces = _layout(fingers), _faces(fingers)
    ports = {f"finger-{k}": _port(k, fingers) for k in range(fingers)}
    part = _part(Cage(layout @ list(sizes.values()), faces), ports, points, detail)
    return Component("palm", sizes, layout, faces, ports, (part,))


def _layout(n: int) -> np.ndarray:
    """The field `layout` of the component [1].

    Handles are in the order: lower corners, upper corners, middles of the sides, middle of the bottom, middle of the
    top.

    Side k is between corners k and k + 1; sides with an even number are ports.
    """
    angle = np.pi / n * np.arange(2 * n)
    outward = np.stack([np.cos(angle), np.sin(angle), np.zeros(2 * n)], axis=1)
    side = np.stack([-np.sin(angle), np.cos(angle), np.zeros(2 * n)], axis=1)
    even = np.arange(2 * n) % 2 == 0
    near, far = 0.5 / np.tan(np.pi / n), 0.5 / np.sin(np.pi / n)
    distance = np.stack([np.where(even, far, near), np.where(even, near, far), np.zeros(2 * n)], axis=1)
    middles = outward[:, :, None] * distance[:, None]
    lengths = np.stack([~even, even, np.zeros(2 * n)], axis=1)
    corners = middles - 0.5 * side[:, :, None] * lengths[:, None]
    up = np.zeros((3, 3))
    up[2, 2] = 0.5
    return np.concatenate([corners - up, corners + up, middles, [-up, up]])


def _faces(n: int) -> np.ndarray:
    """Faces of the cage: four triangles around the middle of each side, and one fan each for the bottom and the top."""
    found = []
    for k in range(2 * n):
        after = (k + 1) % (2 * n)
        ring = (k, after, 2 * n + after, 2 * n + k)
        found += [(ring[i], ring[(i + 1) % 4], 4 * n + k) for i in range(4)]
        found += [(after, k, 6 * n), (2 * n + k, 2 * n + after, 6 * n + 1)]
    return np.array(found)


def _port(k: int, n: int) -> Port:
    angle = 2.0 * np.pi / n * k
    c, s = np.cos(angle), np.sin(angle)
    first, after = 2 * k, 2 * k + 1
    handles = (4 * n + first, first, after, 2 * n + first, 2 * n + after)
    return Port(handles, np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), "width", "height")


def _part(cage: Cage, ports: dict[str, Port], points: int, detail: int) -> Part:
    """The part of the palm: the surface of the cage with finer faces; faces on ports are not exposed."""
    from trimesh.remesh import subdivide

    vertices, faces = cage.handles, cage.faces
    exposed = np.ones(len(faces), dtype=bool)
    for port in ports.values():
        exposed &= ~np.isin(faces, port.handles).all(axis=1)
    for _ in range(detail):
        vertices, faces, halves = subdivide(vertices, faces, return_index=True)
        exposed = _inherited(exposed, halves, len(faces))
    return Part(np.array(vertices), np.array(faces), exposed, points)


def _inherited(exposed: np.ndarray, pieces: dict[int, np.ndarray], count: int) -> np.ndarray:
    """The value of each new face: the entry of `exposed` for the face from which the new face was cut."""
    found = np.zeros(count, dtype=bool)
    for face, own in pieces.items():
        found[own] = exposed[face]
    return found
