"""Rigid bodies and joints of a model, for every solver: data on the host for observers, pictures and files."""

from typing import Protocol

import numpy as np

from warpbots.scene import Joint

__all__ = ["Robot"]


class Robot(Protocol):
    """Names and places of the rigid bodies of a scene and of their joints, in the order of `Scene.rigid`.

    Attributes:
        bodies: Names of the bodies.
        joints: The joint of each body.
        coordinates: Slice of the coordinates of each joint in a state's `q`, by name of the joint.
        velocities: Slice of the velocities of each joint in `qd`, by name of the joint.
        contact_points: Indices of the contact points of each body among those of `Senses.readings`; None for a robot
            whose contact forces are not reported at points.
    """

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies."""

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joint of each body."""

    @property
    def coordinates(self) -> dict[str, slice]:
        """Slice of the coordinates of each joint in a state's `q`, by name of the joint."""

    @property
    def velocities(self) -> dict[str, slice]:
        """Slice of the velocities of each joint in a state's `qd`, by name of the joint."""

    @property
    def contact_points(self) -> tuple[np.ndarray, ...] | None:
        """Indices of the contact points of each body; None if contact forces are not reported at points."""

    def body(self, name: str) -> int:
        """Index of a body.

        Raises:
            KeyError: There is no such body.
        """
