"""Interface to the rigid bodies and joints of a model: data on the host for observers, pictures and files."""

from typing import Protocol

import numpy as np

from warpbots.scene import Joint

__all__ = ["Robot"]


class Robot(Protocol):
    """The rigid bodies of a model and their joints, in the order of `Scene.rigid`.

    Attributes:
        bodies: Names of the bodies.
        joints: The joint of each body.
        coordinates: Slice of field `q` of a state that has the coordinates of a joint, by name of the joint.
        velocities: Slice of field `qd` of a state that has the velocities of a joint, by name of the joint.
        contact_points: Indices of the contact points of each body among all contact points of `Senses.readings`; None
            if contact forces are not reported at points.
    """

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies."""

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joint of each body."""

    @property
    def coordinates(self) -> dict[str, slice]:
        """Slice of field `q` of a state that has the coordinates of a joint, by name of the joint."""

    @property
    def velocities(self) -> dict[str, slice]:
        """Slice of field `qd` of a state that has the velocities of a joint, by name of the joint."""

    @property
    def contact_points(self) -> tuple[np.ndarray, ...] | None:
        """Indices of the contact points of each body; None if contact forces are not reported at points."""

    def body(self, name: str) -> int:
        """Index of a body.

        Raises:
            KeyError: There is no such body.
        """
