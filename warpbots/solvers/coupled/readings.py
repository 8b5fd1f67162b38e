"""Readings of matter and rigid bodies together."""

import dataclasses
from collections.abc import Callable

from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.mass_spring.measurements import MassSpringReadings
from warpbots.solvers.mpm.measurements import MPMReadings

__all__ = ["CoupledReadings", "MPMBodiesReadings", "MassSpringBodiesReadings"]


@dataclasses.dataclass(frozen=True, eq=False)
class CoupledReadings(ArrayFields[Array]):
    """The part of the readings of matter and rigid bodies that only rigid bodies have.

    Rigid bodies are measured in double precision, as by `Articulated`.

    Attributes:
        position: Origin of the frame of each rigid body [m], shape (worlds, n_bodies), vector.
        rotation: Axes of the frame of each rigid body, as columns [1], shape (worlds, n_bodies), matrix.
        velocity: Velocity of the origin of the frame of each rigid body [m/s], shape (worlds, n_bodies), vector.
        angular_velocity: Angular velocity of each rigid body [rad/s], shape (worlds, n_bodies), vector.
        center: Centre of mass of each rigid body [m], shape (worlds, n_bodies), vector.
        body_kinetic_energy: Kinetic energy of each rigid body, without rotors [J], shape (worlds, n_bodies).
        body_potential_energy: Potential energy of each rigid body in the field of gravity [J], shape (worlds,
            n_bodies).
        body_momentum: Momentum of each rigid body [kg m/s], shape (worlds, n_bodies), vector.
        body_angular_momentum: Angular momentum of each rigid body about the origin [kg m^2/s], shape (worlds,
            n_bodies), vector.
        torque: Torque or force of each motor [N m or N], shape (worlds, n_motors).
        matter_force: Force of matter on each rigid body, as the mean over a step of `contact_interval` of the
            model of the matter that starts in this state [N], shape (worlds, n_bodies), vector.
        matter_torque: Torque of these forces about the origin [N m], shape (worlds, n_bodies), vector.
        obstacle_force: Force of rigid bodies on each obstacle [N], shape (worlds, n_obstacles), vector.
        obstacle_torque: Torque of these forces about the origin [N m], shape (worlds, n_obstacles), vector.
    """

    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array
    center: Array
    body_kinetic_energy: Array
    body_potential_energy: Array
    body_momentum: Array
    body_angular_momentum: Array
    torque: Array
    matter_force: Array
    matter_torque: Array
    obstacle_force: Array
    obstacle_torque: Array


@dataclasses.dataclass(frozen=True, eq=False)
class MPMBodiesReadings(CoupledReadings[Array], MPMReadings[Array]):
    """Measurements of particles and rigid bodies; energies and momenta are sums over the matter and all rigid bodies.

    `contact_force` and `contact_torque` are those of matter on obstacles.
    """

    def mapped(self, make: Callable[[Array], Other]) -> "MPMBodiesReadings[Other]":
        """A copy with `make` applied to each field."""
        return MPMBodiesReadings(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringBodiesReadings(CoupledReadings[Array], MassSpringReadings[Array]):
    """Measurements of masses, springs and rigid bodies; energies and momenta are sums over matter and rigid bodies.

    `contact_force` and `contact_torque` are those of matter on obstacles.
    """

    def mapped(self, make: Callable[[Array], Other]) -> "MassSpringBodiesReadings[Other]":
        """A copy with `make` applied to each field."""
        return MassSpringBodiesReadings(*map(make, self.fields()))
