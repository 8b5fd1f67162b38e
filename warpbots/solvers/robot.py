"""Rigid bodies and joints of a model, for every solver: what observers, pictures and files ask it for, on the host."""

from typing import Protocol

import numpy as np

from warpbots.scene import Joint

__all__ = ["Robot"]


class Robot(Protocol):
    """Names and places of the rigid bodies of a scene and of their joints, in the order of `Scene.rigid`.

    Attributes:
        bodies: Names of the bodies.
        joints: The joint of each body.
        coordinates: Where the coordinates of a joint are in a state's `q`, by its name.
        velocities: Where its velocities are in `qd`, likewise.
        contact_points: Indices of the contact points of each body among those of `Senses.readings`; None for a robot
            whose contacts are not felt at points.
    """

    bodies: tuple[str, ...]
    joints: tuple[Joint, ...]
    coordinates: dict[str, slice]
    velocities: dict[str, slice]
    contact_points: tuple[np.ndarray, ...] | None

    def body(self, name: str) -> int:
        """Index of a body.

        Raises:
            KeyError: There is no such body.
        """
