"""Components: nodes that elements, cables, attachments, motors, chambers or bones connect, on the host.

Components never change. Lengths that a step measures in edges, such as its tolerance and the clearance of surfaces,
refer to the edges of one component: matter elsewhere in a world has no effect on them.
"""

import dataclasses

import numpy as np

from warpbots.solvers.articulated.robot import ArticulatedRobot

__all__ = ["Components"]

_ALIKE = 1e-9
"""Relative difference below which lengths count as equal."""


@dataclasses.dataclass(frozen=True)
class Components:
    """Components of one world.

    Attributes:
        of: Component of each point; points are the nodes, then the vertices of bone surfaces; shape (points,), int.
        bones: Component of each bone, shape (n_bones,), int.
        length: Mean length of the edges of elements [m], shape (count,).
        symmetric: Whether the second derivative of each component is symmetric, shape (count,), bool.
        thin: Whether each component has triangles of sheets, shape (count,), bool.
    """

    of: np.ndarray
    bones: np.ndarray
    length: np.ndarray
    symmetric: np.ndarray
    thin: np.ndarray

    @classmethod
    def one(cls, points: int) -> "Components":
        """A world with one component."""
        of, none = np.zeros(points, dtype=int), np.zeros(0, dtype=int)
        return cls(of, none, np.ones(1), np.ones(1, dtype=bool), np.zeros(1, dtype=bool))

    def __len__(self) -> int:
        return len(self.length)

    @property
    def edge(self) -> np.ndarray:
        """Mean length of the edges of the component of each point [m], shape (points,)."""
        return self.length[self.of]

    @property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct mean edge lengths [m], and for each component the index of its length among them, shape (count,)."""
        _, first, number = np.unique(np.round(np.log(self.length) / _ALIKE), return_index=True, return_inverse=True)
        return self.length[first], number

    def of_joints(self, robot: ArticulatedRobot | None) -> tuple[np.ndarray, np.ndarray]:
        """Components of the coordinates and of the velocities of joints, shape (n_coordinates,) and (freedom,), int."""
        if robot is None:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        coordinates, velocities = (np.zeros(len(a), dtype=int) for a in (robot.start, robot.start_velocity))
        for k, joint in enumerate(robot.joints):
            coordinates[robot.coordinates[joint.name]] = velocities[robot.velocities[joint.name]] = self.bones[k]
        return coordinates, velocities
