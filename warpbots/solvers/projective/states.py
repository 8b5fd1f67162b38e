"""States of projective dynamics."""

import dataclasses
from collections.abc import Callable

from warpbots.solvers.array_fields import Array, ArrayFields, Other

__all__ = ["NodalState", "ProjectiveState", "SkeletalState"]


@dataclasses.dataclass(frozen=True, eq=False)
class NodalState(ArrayFields[Array]):
    """Positions and velocities of nodes.

    Attributes:
        position: Positions [m], shape (worlds, n_nodes), vector.
        velocity: Velocities [m/s], shape (worlds, n_nodes), vector.
    """

    position: Array
    velocity: Array

    def mapped(self, make: Callable[[Array], Other]) -> "NodalState[Other]":
        """A copy with `make` applied to each field."""
        return NodalState(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class ProjectiveState(NodalState[Array]):
    """Positions and velocities of nodes, the time, the drives, and the record of failed steps.

    Attributes:
        time: Time since the start [s], double precision, shape (worlds,), or (worlds, 0) if nothing oscillates or
            moves as prescribed.
        travel: Coordinates of the drives of obstacles and constraints [m or rad], double precision, shape (worlds,
            n_drives).
        lost: 1 for a world in which a step failed; such a world stays as it was before that step [1], shape (worlds,).
        shorter_steps: Number of shorter steps taken so far in place of failed ones [1], shape (worlds,).
    """

    time: Array
    travel: Array
    lost: Array
    shorter_steps: Array

    def motion(self) -> list[Array]:
        """All arrays that describe motion, without the record of failed steps."""
        return [getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("lost", "shorter_steps")]

    def mapped(self, make: Callable[[Array], Other]) -> "ProjectiveState[Other]":
        """A copy with `make` applied to each field."""
        return ProjectiveState(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class SkeletalState(ProjectiveState[Array]):
    """Positions and velocities of nodes and of the joints of bones; joints are in double precision.

    Attributes:
        q: Joint coordinates in the order of `Robot.coordinates` [rad, m, or quaternions (x, y, z, w)], shape
            (worlds, n_coordinates).
        qd: Joint velocities in the order of `Robot.velocities` [rad/s or m/s], shape (worlds, n_velocities).
    """

    q: Array
    qd: Array

    def mapped(self, make: Callable[[Array], Other]) -> "SkeletalState[Other]":
        """A copy with `make` applied to each field."""
        return SkeletalState(*map(make, self.fields()))
