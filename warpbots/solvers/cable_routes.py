"""Points of matter to which the cables of a scene are tied, for all solvers that support cables."""

from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.actuation_laws import cable_arrays
from warpbots.numerics import ROUNDING, real
from warpbots.scene import Cable, Scene, SceneError

__all__ = ["Route", "cables_of", "routes_of"]


class Route(NamedTuple):
    """A cable tied to matter.

    Attributes:
        channel: Control channel of the cable.
        points: Indices of the points of matter at the waypoints of the cable, shape (n,), int.
        stiffness: Spring constant of the cable [N/m].
        rest_length: Length of the cable without tension, at u = 0 [m].
        rounding: Largest slack, due to rounding, with which derivatives treat the cable as just taut [m].
    """

    channel: int
    points: np.ndarray
    stiffness: float
    rest_length: float
    rounding: float


def routes_of(scene: Scene, position: np.ndarray, reach: float, what: str, option: str) -> list[Route]:
    """The cables of `scene`, tied to the nearest matter.

    Args:
        scene: The scene.
        position: Rest positions of the matter to which cables can be tied [m], shape (n, dim).
        reach: Largest distance of a waypoint from matter [m].
        what: Name of a point of matter in messages, in the singular.
        option: Name of the solver option that refines it, for messages.

    Raises:
        SceneError: A waypoint is too far from all matter, or two consecutive ones are tied to the same point.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(position)
    routes = []
    for channel, cable in enumerate(scene.actuators):
        if not isinstance(cable, Cable):
            continue
        distance, nearest = tree.query(np.array(cable.waypoints))
        if distance.max() > reach:
            i = int(distance.argmax())
            raise SceneError(
                f"Cable {cable.name!r}: waypoint {i} at {cable.waypoints[i]} is {distance[i]:.4g} m from the nearest "
                f"matter, more than {reach:g} m; move it into a body"
            )
        if (nearest[1:] == nearest[:-1]).any():
            i = int((nearest[1:] == nearest[:-1]).argmax())
            raise SceneError(
                f"Cable {cable.name!r}: waypoints {i} and {i + 1} are tied to the same {what}; space them farther "
                f"apart, or use a smaller {option}"
            )
        length = float(np.linalg.norm(np.diff(position[nearest], axis=0), axis=1).sum())
        rest_length = length if cable.rest_length is None else cable.rest_length
        rounding = ROUNDING * (length + float(np.abs(position[nearest]).max()))  # coordinates are rounded, too
        routes.append(Route(channel, nearest, cable.stiffness, rest_length, rounding))
    return routes


def cables_of(
    scene: Scene, position: np.ndarray, reach: float, device: wp.Device, what: str, option: str
) -> tuple[object, int, int]:
    """The cables of `scene` as a Warp struct, their number and the number of their waypoints.

    Args:
        scene: The scene.
        position: Rest positions of the matter to which cables can be tied [m], shape (n, dim).
        reach: Largest distance of a waypoint from matter [m].
        device: Device of the arrays.
        what: Name of a point of matter in messages, in the singular.
        option: Name of the solver option that refines it, for messages.

    Raises:
        SceneError: A waypoint is too far from all matter, or two consecutive ones are tied to the same point.
    """
    routes = routes_of(scene, position, reach, what, option)
    sizes = [len(r.points) for r in routes]
    cables = cable_arrays()()
    cables.start = wp.array(np.concatenate([[0], np.cumsum(sizes)]), dtype=int, device=device)
    cables.particle = wp.array(np.concatenate([*(r.points for r in routes), []]), dtype=int, device=device)
    cables.cable = wp.array(np.repeat(np.arange(len(sizes)), sizes), dtype=int, device=device)
    cables.channel = wp.array([r.channel for r in routes], dtype=int, device=device)
    cables.stiffness = wp.array([r.stiffness for r in routes], dtype=real, device=device)
    cables.rest_length = wp.array([r.rest_length for r in routes], dtype=real, device=device)
    cables.rounding = wp.array([r.rounding for r in routes], dtype=real, device=device)
    return cables, len(sizes), sum(sizes)
