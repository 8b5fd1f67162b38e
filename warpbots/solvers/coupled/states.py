"""States of matter and rigid bodies together."""

import dataclasses
from collections.abc import Callable

from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.mass_spring.model import MassSpringState
from warpbots.solvers.mpm.model import MPMState

__all__ = ["CoupledState", "MPMBodiesState", "MassSpringBodiesState"]


@dataclasses.dataclass(frozen=True, eq=False)
class CoupledState(ArrayFields[Array]):
    """The part of a state of matter and rigid bodies that only rigid bodies have; joints are in double precision.

    Attributes:
        q: Joint coordinates in the order of `Robot.coordinates` [rad, m, or quaternions (x, y, z, w)], shape
            (worlds, n_coordinates).
        qd: Joint velocities in the order of `Robot.velocities` [rad/s or m/s], shape (worlds, n_velocities).
        last_step: Length of the step that ended in this state, 0 at the start [s], double precision, shape (worlds,),
            or (worlds, 0) if no obstacle moves.
    """

    q: Array
    qd: Array
    last_step: Array


@dataclasses.dataclass(frozen=True, eq=False)
class MPMBodiesState(CoupledState[Array], MPMState[Array]):
    """State of particles and of the joints of rigid bodies."""

    def mapped(self, make: Callable[[Array], Other]) -> "MPMBodiesState[Other]":
        """A copy with `make` applied to each field."""
        return MPMBodiesState(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringBodiesState(CoupledState[Array], MassSpringState[Array]):
    """State of masses and springs, and of the joints of rigid bodies."""

    def mapped(self, make: Callable[[Array], Other]) -> "MassSpringBodiesState[Other]":
        """A copy with `make` applied to each field."""
        return MassSpringBodiesState(*map(make, self.fields()))
