"""Workspace of the mass-spring solver: arrays that every step fills anew."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.numerics import NODE, Copies, matrix, real, vector
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.cable_forces import CableWorkspace
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.solvers.mass_spring.motor_forces import MotorWorkspace
from warpbots.solvers.mass_spring.virial import Neighbours, neighbours_of
from warpbots.solvers.matter_readings import MatterTerms, matter_terms, moment_type
from warpbots.solvers.solver import State

__all__ = [
    "EndWorkspace",
    "ReadingWorkspace",
    "RestLengthWorkspace",
    "MassSpringSizes",
    "StageWorkspace",
    "MassSpringWorkspace",
]


@dataclasses.dataclass(frozen=True)
class MassSpringSizes:
    """Number of worlds, and the sizes that determine the shapes of the arrays of one world.

    Attributes:
        dim: 2 or 3.
        worlds: Number of worlds.
        masses: Number of masses of one world.
        springs: Number of springs of one world.
        stages: Number of stages of the integration scheme.
        signals: Number of signals of the actuators.
        motors: Number of motors.
        cables: Number of cables.
        waypoints: Number of waypoints of all cables.
        obstacles: Number of obstacles.
        constraints: Number of constraints.
    """

    dim: int
    worlds: int
    masses: int
    springs: int
    stages: int
    signals: int
    motors: int
    cables: int
    waypoints: int
    obstacles: int
    constraints: int


@dataclasses.dataclass(frozen=True)
class StageWorkspace:
    """Positions and velocities of the masses at a stage, and the forces on them at all stages.

    Attributes:
        sizes: Sizes of the arrays.
        device: Device of the arrays.
    """

    sizes: MassSpringSizes
    device: wp.Device

    def _nodes(self, stages: int = 1) -> wp.array:
        return wp.zeros(stages * self.sizes.worlds * self.sizes.masses, dtype=NODE, device=self.device)

    @functools.cached_property
    def x(self) -> wp.array:
        """Positions of the masses at a stage [m], shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def v(self) -> wp.array:
        """Velocities of the masses at a stage [m/s], shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def x_adj(self) -> wp.array:
        """Gradient with respect to `x`, shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def v_adj(self) -> wp.array:
        """Gradient with respect to `v`, shape (worlds * n_masses,)."""
        return self._nodes()

    def force(self, state_out: State) -> wp.array:
        """Forces [N] at all stages of the step that ends in `state_out`, shape (stages * worlds * n_masses,).

        In a step with gradients the array belongs to `state_out` alone, so that the adjoint of the step can read the
        forces.
        """
        if not state_out.position.requires_grad:
            return self.scratch
        return self._forces.of(state_out, lambda: self._nodes(self.sizes.stages))

    @functools.cached_property
    def _forces(self) -> AdjointCache:
        return AdjointCache()

    @functools.cached_property
    def scratch(self) -> wp.array:
        """Scratch array for forces of a single evaluation [N], shape (stages * worlds * n_masses,)."""
        return self._nodes(self.sizes.stages)

    @functools.cached_property
    def force_adj(self) -> wp.array:
        """Gradient with respect to the forces at all stages, shape (stages * worlds * n_masses,)."""
        return self._nodes(self.sizes.stages)

    @functools.cached_property
    def point(self) -> wp.array:
        """Positions of the masses in single precision [m], for the hash grid, shape (worlds * n_masses,), vector."""
        return wp.zeros(self.sizes.worlds * self.sizes.masses, dtype=wp.vec3, device=self.device)

    @functools.cached_property
    def grid(self) -> wp.HashGrid:
        """Hash grid of the masses, with which self-contact is detected."""
        return wp.HashGrid(128, 128, 128, device=self.device)


@dataclasses.dataclass(frozen=True)
class EndWorkspace:
    """Positions and velocities at the end of a step, before contact and constraints, with their gradients.

    Attributes:
        sizes: Sizes of the arrays.
        device: Device of the arrays.
    """

    sizes: MassSpringSizes
    device: wp.Device

    def _motion(self) -> list[wp.array]:
        count = self.sizes.worlds * self.sizes.masses
        return [wp.zeros(count, dtype=vector(self.sizes.dim), device=self.device) for _ in range(2)]

    @functools.cached_property
    def free(self) -> list[wp.array]:
        """Positions [m] and velocities [m/s] at the end of a step without contact, shape (worlds * n_masses,) each."""
        return self._motion()

    @functools.cached_property
    def free_adj(self) -> list[wp.array]:
        """Gradients with respect to the two arrays of `free`, each of shape (worlds * n_masses,), vector."""
        return self._motion()

    @functools.cached_property
    def before_constraints_adj(self) -> list[wp.array]:
        """Gradients with respect to positions and velocities before constraints, each of shape (worlds * n_masses,)."""
        return self._motion()

    @functools.cached_property
    def uncarried(self) -> list[wp.array]:
        """Positions [m] and velocities [m/s] before constraints that move, shape (worlds * n_masses,) each."""
        return self._motion()

    @functools.cached_property
    def uncarried_adj(self) -> list[wp.array]:
        """Gradients with respect to the two arrays of `uncarried`, each of shape (worlds * n_masses,), vector."""
        return self._motion()

    @functools.cached_property
    def free_time(self) -> wp.array:
        """Scratch array to which the adjoint writes a time [s] that is not read, shape (worlds,)."""
        return wp.zeros(self.sizes.worlds, dtype=wp.float64, device=self.device)


@dataclasses.dataclass(frozen=True)
class RestLengthWorkspace:
    """Rest lengths of the springs at a stage, and the actuator signals from which they are computed.

    Attributes:
        sizes: Sizes of the arrays.
        device: Device of the arrays.
    """

    sizes: MassSpringSizes
    device: wp.Device

    def _per_spring(self, requires_grad: bool = False) -> wp.array:
        shape = (self.sizes.worlds, self.sizes.springs)
        return wp.zeros(shape, dtype=real, device=self.device, requires_grad=requires_grad)

    @functools.cached_property
    def signal(self) -> wp.array:
        """Values of the signals of the actuators [1], shape (worlds, n_signals), with a gradient."""
        shape = (self.sizes.worlds, self.sizes.signals)
        return wp.zeros(shape, dtype=real, device=self.device, requires_grad=True)

    @functools.cached_property
    def driven(self) -> wp.array:
        """Rest lengths that follow from the signals, without plastic strains [m], shape (worlds, n_springs).

        The array has a gradient.
        """
        return self._per_spring(requires_grad=True)

    @functools.cached_property
    def plastic(self) -> wp.array:
        """Rest lengths that follow from the signals, with plastic strains [m], shape (worlds, n_springs).

        The array has a gradient.
        """
        return self._per_spring(requires_grad=True)

    @functools.cached_property
    def strain_adj(self) -> wp.array:
        """Gradient with respect to the plastic strains at the end of the step, shape (worlds, n_springs)."""
        return self._per_spring()

    @functools.cached_property
    def broken_adj(self) -> wp.array:
        """Gradient with respect to `MassSpringState.broken` at the end of the step, shape (worlds, n_springs)."""
        return self._per_spring()


@dataclasses.dataclass(frozen=True)
class ReadingWorkspace:
    """Contributions of each spring and each mass to readings; all arrays have gradients.

    Attributes:
        sizes: Sizes of the arrays.
        device: Device of the arrays.
        lattice: Lattice to measure.
    """

    sizes: MassSpringSizes
    device: wp.Device
    lattice: Lattice

    @functools.cached_property
    def neighbours(self) -> Neighbours:
        """The springs at each mass, each spring listed at both its ends."""
        return neighbours_of(self.lattice, self.device)

    def _terms(self, dtype: type, *shape: int) -> wp.array:
        return wp.zeros((self.sizes.worlds, *shape), dtype=dtype, device=self.device, requires_grad=True)

    @functools.cached_property
    def contact_interval(self) -> float:
        """Length of the interval over which contact forces are averaged [s].

        The interval is 1 / w with w^2 = max_i 2 sum_j k_ij / m_i. w is above the highest angular frequency of the
        lattice, so the interval is shorter than half of the stability bound.
        """
        ends, mass = self.lattice.ends.ravel(), self.lattice.mass
        stiffness = np.bincount(ends, np.repeat(self.lattice.stiffness, 2), len(mass))
        return float(1.0 / np.sqrt((2.0 * stiffness / mass).max()))

    @functools.cached_property
    def matter(self) -> MatterTerms:
        """Energies of the springs, and energies and momenta of the masses."""
        sizes = self.sizes
        return matter_terms(sizes.worlds, sizes.masses, self._terms(real, sizes.springs), sizes.dim)

    @functools.cached_property
    def contact(self) -> wp.array:
        """Force of each mass on each obstacle [N], shape (worlds, n_obstacles, n_masses), vector."""
        return self._terms(vector(self.sizes.dim), self.sizes.obstacles, self.sizes.masses)

    @functools.cached_property
    def projected(self) -> wp.array:
        """Forces on the masses, without obstacles, that constraints allow [N], shape (worlds, n_masses)."""
        return self._terms(NODE, self.sizes.masses)

    @functools.cached_property
    def started(self) -> wp.array:
        """Velocity of each mass at the start plus its change by impulses [m/s], shape (worlds, n_masses), vector."""
        return self._terms(vector(self.sizes.dim), self.sizes.masses)

    @functools.cached_property
    def free(self) -> wp.array:
        """Velocity of each mass without impulses and obstacles [m/s], shape (worlds, n_masses), vector."""
        return self._terms(vector(self.sizes.dim), self.sizes.masses)

    @functools.cached_property
    def velocity(self) -> wp.array:
        """Velocity of each mass after contact with obstacles [m/s], shape (worlds, n_masses), vector."""
        return self._terms(vector(self.sizes.dim), self.sizes.masses)

    @functools.cached_property
    def held(self) -> wp.array:
        """Force of each mass on each constraint [N], shape (worlds, n_constraints, n_masses), vector."""
        return self._terms(vector(self.sizes.dim), self.sizes.constraints, self.sizes.masses)

    @functools.cached_property
    def held_moment(self) -> wp.array:
        """Torque of each mass on each constraint about the origin [N m], shape (worlds, n_constraints, n_masses)."""
        return self._terms(moment_type(self.sizes.dim), self.sizes.constraints, self.sizes.masses)

    @functools.cached_property
    def contact_moment(self) -> wp.array:
        """Torque of each mass on each obstacle about the origin [N m], shape (worlds, n_obstacles, n_masses)."""
        return self._terms(moment_type(self.sizes.dim), self.sizes.obstacles, self.sizes.masses)

    @functools.cached_property
    def virial(self) -> wp.array:
        """Virial of each mass [J], shape (worlds, n_masses), matrix."""
        return self._terms(matrix(self.sizes.dim), self.sizes.masses)

    @functools.cached_property
    def deformation(self) -> wp.array:
        """Deformation gradient at each mass [1], shape (worlds, n_masses), matrix."""
        return self._terms(matrix(self.sizes.dim), self.sizes.masses)


@dataclasses.dataclass(frozen=True)
class MassSpringWorkspace:
    """Arrays that every step fills anew, grouped by purpose; a step reads no values of an earlier step from them.

    Attributes:
        sizes: Sizes of the arrays.
        device: Device of the arrays.
        lattice: All masses and springs of one world at rest.
    """

    sizes: MassSpringSizes
    device: wp.Device
    lattice: Lattice

    @functools.cached_property
    def copies(self) -> Copies:
        """Copies of the gradients to which many threads of an adjoint add (`warpbots.numerics.Copies`)."""
        return Copies.of(self.device)

    @functools.cached_property
    def stage(self) -> StageWorkspace:
        """Positions, velocities and forces at the stages."""
        return StageWorkspace(self.sizes, self.device)

    @functools.cached_property
    def end(self) -> EndWorkspace:
        """Motion at the end of the step, before contact and constraints."""
        return EndWorkspace(self.sizes, self.device)

    @functools.cached_property
    def rest_length(self) -> RestLengthWorkspace:
        """Rest lengths at a stage."""
        return RestLengthWorkspace(self.sizes, self.device)

    @functools.cached_property
    def reading(self) -> ReadingWorkspace:
        """Contributions of each spring and each mass to readings."""
        return ReadingWorkspace(self.sizes, self.device, self.lattice)

    @functools.cached_property
    def motors(self) -> MotorWorkspace:
        """Sums over the masses of each side of each motor."""
        return MotorWorkspace(self.sizes.worlds, self.sizes.motors, self.device)

    @functools.cached_property
    def cables(self) -> CableWorkspace:
        """Lengths, tensions and forces of the cables."""
        return CableWorkspace(self.sizes.worlds, self.sizes.cables, self.sizes.waypoints, NODE, self.device)
