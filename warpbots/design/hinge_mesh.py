"""Meshes of hinges: a clevis, whose two cheeks hold an axle, and a tongue between the cheeks."""

import math

import numpy as np

from warpbots.design.grid_mesh import check_grid
from warpbots.design.part import Part
from warpbots.design.section import Section

__all__ = ["hinge_meshes"]

_SLIT = 0.3e-3
"""Clearance between faces that move past each other [m]."""
_WEB = 1.2e-3
"""Least thickness of the blocks behind the eyes [m]."""
_EYE = 2e-3
"""Smallest radius of an eye [m]."""
_TONGUE = 0.4
"""Thickness of the tongue relative to the height of the hinge [1]."""
_BESIDE = 0.7
"""Position of the vertices between the two sides of a cheek, relative to the half height [1]."""


def hinge_meshes(
    what: str,
    length: float,
    axis_at: float,
    start: Section,
    end: Section,
    points: tuple[int, int] = (0, 0),
    detail: int = 1,
) -> tuple[tuple[Part, Part], float]:
    """Clevis and tongue of a hinge that lies along x and turns about z, and the angle at which they collide [rad].

    Cheeks and tongue end in half cylinders around the axis, called eyes, so that only the blocks behind the eyes limit
    the angle. Blocks with the half widths a and b at a distance r from the axis collide at the angle pi - 2 atan(min(a,
    b) / r). The eyes are as large as the two cross-sections permit.

    Args:
        what: Name of the component in messages.
        length: Length of the hinge [m].
        axis_at: Distance of the hinge axis from the start of the hinge [m].
        start: Cross-section at the start.
        end: Cross-section at the end.
        points: Numbers of contact points of clevis and tongue.
        detail: Factor by which the grids of the meshes are refined.

    Raises:
        ValueError: A size is not positive, or there is no room for the eyes or for the tongue.
    """
    check_grid(what, length, detail)
    radius = _eye_radius(what, length, axis_at, start, end)
    faces = axis_at - radius, axis_at + radius
    ends = [0.0, length]
    height = float(np.interp(faces, ends, [start.height, end.height]).min()) / 2.0
    widths = np.interp(faces, ends, [start.width, end.width]) / 2.0
    slit = _TONGUE * height
    if not slit >= 2.0 * _SLIT:
        raise ValueError(
            f"{what}: its size along the axis must be at least {4e3 * _SLIT / _TONGUE:g} mm for its tongue, got "
            f"{2e3 * height:.4g} mm"
        )
    beside = np.array([_BESIDE * height, height])

    def part(origin: float, face: float, half: float, cheeks: bool, count: int) -> Part:
        across = half * np.linspace(-1.0, 1.0, 2 * detail + 1)
        levels = np.concatenate([-beside[::-1], across, beside])
        held = (np.abs(levels[1:] + levels[:-1]) > 2.0 * half) == cheeks
        nodes, filled = _eye_on_block(origin, face, axis_at, radius - _SLIT, levels, held, detail)
        outer = np.interp(nodes[..., 0], ends, [start.width / 2.0, end.width / 2.0])
        nodes[:, 0, :, 1], nodes[:, -1, :, 1] = -outer[:, 0], outer[:, -1]
        heights = [start.height / 2.0, height, height, end.height / 2.0]
        nodes[..., 2] *= np.interp(nodes[..., 0], [0.0, *faces, length], heights) / height
        hidden = ((0, origin), (0, face), (2, -half), (2, half))
        return Part.of_cells(nodes, filled, hidden, count)

    clevis = part(0.0, faces[0], slit, True, points[0])
    tongue = part(length, faces[1], slit - _SLIT, False, points[1])
    return (clevis, tongue), math.pi - 2.0 * math.atan(float(widths.min()) / radius)


def _eye_radius(what: str, length: float, axis_at: float, start: Section, end: Section) -> float:
    """Largest possible radius of the eyes [m], which is also the distance of the blocks from the axis."""
    radius = min(0.5 * start.width, 0.5 * end.width, axis_at - _WEB, length - axis_at - _WEB)
    if not radius >= _EYE:
        raise ValueError(
            f"{what}: there is no room for eyes of {1e3 * _EYE:g} mm around its axis: it must be at least "
            f"{1e3 * (_EYE + _WEB):g} mm from both ends and {1e3 * _EYE:g} mm from both sides, got "
            f"{1e3 * axis_at:.4g} mm of {1e3 * length:.4g} mm and widths of {1e3 * start.width:.4g} and "
            f"{1e3 * end.width:.4g} mm"
        )
    return radius


def _eye_on_block(
    origin: float, face: float, axis_at: float, radius: float, levels: np.ndarray, held: np.ndarray, detail: int
) -> tuple[np.ndarray, np.ndarray]:
    """Grid of a block between two planes of constant x, with a half cylinder about z attached to one of these planes.

    Args:
        origin: Start of the block along x [m].
        face: Start of the half cylinder along x [m].
        axis_at: Position of the axis of the half cylinder along x [m].
        radius: Radius of the half cylinder [m].
        levels: Heights of the nodes along z [m], shape (k + 1,).
        held: For each layer between two levels, whether the half cylinder fills it, shape (k,), bool.
        detail: Factor by which the grid is refined.

    Returns:
        Nodes [m], shape (i + 1, j + 1, k + 1, 3), and whether each cell is filled, shape (i, j, k), bool. The first and
        the last nodes along axis 1 have y = 0.
    """
    outward = math.copysign(1.0, face - origin)
    y = -radius * np.cos(np.linspace(0.0, np.pi, 8 * detail + 1))
    end = axis_at + outward * np.sqrt(np.maximum(radius**2 - y**2, 0.0))
    block = np.linspace(origin, face, max(2, round(abs(face - origin) / 4e-3)) * detail + 1)
    s = np.linspace(0.0, 1.0, 4 * detail + 1)[1:, None]
    x = np.concatenate([np.repeat(block[:, None], len(y), axis=1), face + s * (end - face)])
    x = np.concatenate([x[:, :1], x, x[:, -1:]], axis=1)
    x[len(block) :, [0, -1]] = face
    nodes = np.stack(np.broadcast_arrays(x[..., None], np.pad(y, 1)[:, None], levels), axis=-1)
    filled = np.ones(np.array(nodes.shape[:3]) - 1, dtype=bool)
    filled[len(block) - 1 :] = held
    filled[len(block) - 1 :, [0, -1]] = False
    forward = slice(None, None, int(outward))
    return np.array(nodes[forward]), filled[forward]
