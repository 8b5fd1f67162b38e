"""Where the cables of a scene are tied to matter, for every solver that knows them."""

import numpy as np
import warp as wp
from scipy.spatial import cKDTree

from warpbots.actuators import cable_arrays
from warpbots.math import real
from warpbots.scene import Cable, Scene, SceneError

__all__ = ["cables_of"]


def cables_of(
    scene: Scene, position: np.ndarray, reach: float, device: wp.Device, what: str, option: str
) -> tuple[object, int, int]:
    """The cables of `scene` as a Warp struct, their number and the number of their waypoints.

    Args:
        scene: Has the cables.
        position: Matter at rest that they can be tied to [m], shape (n, dim).
        reach: Largest distance of a waypoint from matter [m].
        device: Device of the arrays.
        what: What matter is made of, in the singular, for people.
        option: The option of the solver that makes it finer, for people.

    Raises:
        SceneError: A waypoint is too far from all matter, or two in a row are tied to the same.
    """
    tree = cKDTree(position)
    routes, channels, rest, stiffness = [], [], [], []
    for channel, cable in enumerate(scene.actuators):
        if not isinstance(cable, Cable):
            continue
        distance, particle = tree.query(np.array(cable.waypoints))
        if distance.max() > reach:
            i = int(distance.argmax())
            raise SceneError(
                f"Cable {cable.name!r}: waypoint {i} at {cable.waypoints[i]} is {distance[i]:.4g} m from the nearest "
                f"matter, more than {reach:g} m; move it into a body"
            )
        if (particle[1:] == particle[:-1]).any():
            i = int((particle[1:] == particle[:-1]).argmax())
            raise SceneError(
                f"Cable {cable.name!r}: waypoints {i} and {i + 1} are tied to the same {what}; space them farther "
                f"apart, or use a smaller {option}"
            )
        route = position[particle]
        length = float(np.linalg.norm(np.diff(route, axis=0), axis=1).sum())
        routes.append(particle)
        channels.append(channel)
        rest.append(length if cable.rest_length is None else cable.rest_length)
        stiffness.append(cable.stiffness)
    sizes = [len(r) for r in routes]
    cables = cable_arrays()()
    cables.start = wp.array(np.concatenate([[0], np.cumsum(sizes)]), dtype=int, device=device)
    cables.particle = wp.array(np.concatenate([*routes, []]), dtype=int, device=device)
    cables.cable = wp.array(np.repeat(np.arange(len(sizes)), sizes), dtype=int, device=device)
    cables.channel = wp.array(channels, dtype=int, device=device)
    cables.stiffness = wp.array(stiffness, dtype=real, device=device)
    cables.rest_length = wp.array(rest, dtype=real, device=device)
    return cables, len(sizes), sum(sizes)
