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

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies."""

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joint of each body."""

    @property
    def coordinates(self) -> dict[str, slice]:
        """Where the coordinates of a joint are in a state's `q`, by its name."""

    @property
    def velocities(self) -> dict[str, slice]:
        """Where its velocities are in `qd`, likewise."""

    @property
    def contact_points(self) -> tuple[np.ndarray, ...] | None:
        """Indices of the contact points of each body; None if contacts are not felt at points."""

    def body(self, name: str) -> int:
        """Index of a body.

        Raises:
            KeyError: There is no such body.
        """
