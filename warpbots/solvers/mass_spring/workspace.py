"""Arrays that a step of masses and springs fills anew."""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import NODE, Copies, real, vector
from warpbots.solvers.adjoint_cache import Kept
from warpbots.solvers.mass_spring.cable_forces import CableScratch
from warpbots.solvers.mass_spring.motors import MotorScratch
from warpbots.solvers.solver import State

__all__ = ["Scratch"]


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Arrays that a step fills anew; between steps most of their content means nothing.

    Attributes:
        dim: 2 or 3.
        masses: Masses of all worlds.
        springs: Springs of one world.
        stages: Stages of the scheme.
        worlds: Number of worlds.
        signals: Number of signals of the actuators.
        motor_count: Number of motors.
        cable_count: Number of cables.
        waypoints: Waypoints of all cables.
        device: Device of the arrays.
    """

    dim: int
    masses: int
    springs: int
    stages: int
    worlds: int
    signals: int
    motor_count: int
    cable_count: int
    waypoints: int
    device: wp.Device

    @functools.cached_property
    def copies(self) -> Copies:
        """Copies of what all threads of an adjoint add to."""
        return Copies.of(self.device)

    def force(self, state_out: State) -> wp.array:
        """Forces [N] at all stages of the step that ends in `state_out`, shape (stages * worlds * n_masses,).

        If a gradient will be wanted they belong to that state, and the adjoint of the step finds them.
        """
        if not state_out.position.requires_grad:
            return self.spare
        return self._kept.of(state_out, lambda: self._nodes(self.stages))

    @functools.cached_property
    def _kept(self) -> Kept:
        return Kept()

    def _nodes(self, stages: int = 1) -> wp.array:
        return wp.zeros(stages * self.masses, dtype=NODE, device=self.device)

    @functools.cached_property
    def spare(self) -> wp.array:
        """Forces that nobody will ask for, shape (stages * worlds * n_masses,)."""
        return self._nodes(self.stages)

    @functools.cached_property
    def force_adj(self) -> wp.array:
        """Gradient to the forces of all stages, shape (stages * worlds * n_masses,)."""
        return self._nodes(self.stages)

    @functools.cached_property
    def x(self) -> wp.array:
        """Positions of a stage [m], shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def v(self) -> wp.array:
        """Velocities of a stage [m/s], shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def x_adj(self) -> wp.array:
        """Gradient to `x`, shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def v_adj(self) -> wp.array:
        """Gradient to `v`, shape (worlds * n_masses,)."""
        return self._nodes()

    @functools.cached_property
    def free(self) -> list[wp.array]:
        """Positions [m] and velocities [m/s] at the end of a step that nothing stops, (worlds * n_masses,), vector."""
        return self._moving()

    @functools.cached_property
    def free_adj(self) -> list[wp.array]:
        """Gradients to `free`, shape (worlds * n_masses,), vector."""
        return self._moving()

    @functools.cached_property
    def ended_adj(self) -> list[wp.array]:
        """Gradients to position and velocity before constraints, shape (worlds * n_masses,), vector."""
        return self._moving()

    def _moving(self) -> list[wp.array]:
        return [wp.zeros(self.masses, dtype=vector(self.dim), device=self.device) for _ in range(2)]

    @functools.cached_property
    def free_time(self) -> wp.array:
        """Time at the end of such a step [s], which nobody asks for, shape (worlds,)."""
        return wp.zeros(self.worlds, dtype=wp.float64, device=self.device)

    @functools.cached_property
    def point(self) -> wp.array:
        """Positions of a stage in single precision [m], shape (worlds * n_masses,), vector."""
        return wp.zeros(self.masses, dtype=wp.vec3, device=self.device)

    @functools.cached_property
    def grid(self) -> wp.HashGrid:
        """Which masses are near which."""
        return wp.HashGrid(128, 128, 128, device=self.device)

    @functools.cached_property
    def signal(self) -> wp.array:
        """Signals of the actuators, shape (worlds, n_signals), with a gradient."""
        return wp.zeros((self.worlds, self.signals), dtype=real, device=self.device, requires_grad=True)

    @functools.cached_property
    def rest_length(self) -> wp.array:
        """Lengths at rest under the signals [m], shape (worlds, n_springs), with a gradient."""
        return self._per_spring(requires_grad=True)

    @functools.cached_property
    def worn_length(self) -> wp.array:
        """Lengths at rest of springs that have set [m], shape (worlds, n_springs), with a gradient."""
        return self._per_spring(requires_grad=True)

    @functools.cached_property
    def plastic_adj(self) -> wp.array:
        """Gradient to the plastic strains at the end, shape (worlds, n_springs)."""
        return self._per_spring()

    @functools.cached_property
    def broken_adj(self) -> wp.array:
        """Gradient to the broken springs at the end, shape (worlds, n_springs)."""
        return self._per_spring()

    @functools.cached_property
    def motors(self) -> MotorScratch:
        """Sums over the sides of motors."""
        return MotorScratch(self.worlds, self.motor_count, self.device)

    @functools.cached_property
    def cables(self) -> CableScratch:
        """Lengths, tensions and forces of the cables."""
        return CableScratch(self.worlds, self.cable_count, self.waypoints, self.device)

    def _per_spring(self, requires_grad: bool = False) -> wp.array:
        shape = (self.worlds, self.springs)
        return wp.zeros(shape, dtype=real, device=self.device, requires_grad=requires_grad)
