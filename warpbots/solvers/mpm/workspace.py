"""Arrays that a step of MPM fills anew."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.numerics import CHUNKS, NODE, Copies, matrix, parallel, real, vector
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.cable_forces import CableWorkspace
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.matter_readings import MatterTerms, matter_terms, moment_type
from warpbots.solvers.mpm.shared_grid import PARTS
from warpbots.solvers.solver import State

__all__ = ["ConstituentLoad", "FlowAdjoint", "Gathered", "HeldForces", "Retained", "MPMWorkspace"]


@dataclasses.dataclass(frozen=True)
class Gathered:
    """Momentum and mass of each grid node, summed over the particles around it.

    Only active pencils are written and read.

    Attributes:
        active: 1 for each pencil that is in the stencil of a particle, else 0, shape (worlds * pencils,), int.
        momentum: Momentum [kg m/s] and mass [kg] of each node, shape (worlds * nodes,).
    """

    active: wp.array
    momentum: wp.array


@dataclasses.dataclass(frozen=True)
class ConstituentLoad:
    """Stress and energy that fibres and Maxwell branches add to each particle, in arrays with gradients.

    Attributes:
        stress: Kirchhoff stress of the fibres and branches of each particle [Pa], shape (worlds, n_particles), matrix.
        energy: Energy of the fibres and branches of each particle, per rest volume [Pa], shape (worlds, n_particles).
    """

    stress: wp.array
    energy: wp.array


@dataclasses.dataclass(frozen=True)
class FlowAdjoint:
    """Gradients with respect to the motion of a step before plastic flow and relaxation.

    Attributes:
        velocity_gradient_adj: Gradient with respect to the velocity gradient C [s times loss], shape (worlds,
            n_particles), matrix.
        deformation_adj: Gradient with respect to the deformation gradient F before the flow [loss], shape (worlds,
            n_particles), matrix. It is always zero, because the gradient with respect to F at the start of the step
            already includes this contribution.
    """

    velocity_gradient_adj: wp.array
    deformation_adj: wp.array


@dataclasses.dataclass(frozen=True)
class Retained:
    """Motion of fluid particles that the grid does not resolve, see `retained_motion`.

    Attributes:
        momentum: Momentum [kg m/s] and mass [kg] of the fluids at each node, shape (worlds * nodes,).
        velocity: Residual r of the velocity of each fluid particle [m/s], shape (n_fluid,), vector.
        spin: Residual R of each fluid particle: the skew part of the residual of its velocity gradient [1/s], shape
            (n_fluid,), matrix.
        before_velocity: Velocities of all particles before the residual was added [m/s], shape (worlds, particles),
            vector.
        before_gradient: Velocity gradients before the residual was added [1/s], shape (worlds, particles), matrix.
    """

    momentum: wp.array
    velocity: wp.array
    spin: wp.array
    before_velocity: wp.array
    before_gradient: wp.array


@dataclasses.dataclass(frozen=True)
class HeldForces:
    """Forces and torques on constraints, in 3D.

    Attributes:
        before: Velocities of the nodes before each constraint acts [m/s], one of shape (worlds * nodes,) for each.
        force: Force on each constraint [N], shape (worlds, n_constraints), vector.
        torque: Torque on each constraint about the origin [N m], shape (worlds, n_constraints), vector.
        force_adj: Gradient with respect to `force`, shape (worlds, n_constraints), vector.
        torque_adj: Gradient with respect to `torque`, shape (worlds, n_constraints), vector.
    """

    before: list[wp.array]
    force: wp.array
    torque: wp.array
    force_adj: wp.array
    torque_adj: wp.array


@dataclasses.dataclass(frozen=True)
class MPMWorkspace:
    """Arrays that a step fills anew, mainly grids; between steps most of their content is meaningless.

    Only the active pencils of a grid are written and read: the pencils in the stencil of a particle.

    Attributes:
        nodes: Number of nodes of all worlds.
        pencils: Number of pencils of all worlds.
        dim: 2 or 3.
        worlds: Number of worlds.
        particles: Number of particles of one world.
        n_fluid: Number of fluid particles of all worlds that no constraint holds.
        n_cables: Number of cables of one world.
        n_waypoints: Number of waypoints of all cables of one world.
        n_contacts: Number of contacts of the nodes of one world, including all nodes for each obstacle that moves.
        n_moving: Number of obstacles that move.
        n_constraints: Number of constraints.
        n_planes: Number of planes of nodes across the first axis, of all worlds.
        n_constants: Largest number of constants of a law besides E and nu.
        device: Device of the arrays.
    """

    nodes: int
    pencils: int
    dim: int
    worlds: int
    particles: int
    n_fluid: int
    n_cables: int
    n_waypoints: int
    n_contacts: int
    n_moving: int
    n_constraints: int
    n_planes: int
    n_constants: int
    device: wp.Device

    @functools.cached_property
    def copies(self) -> Copies:
        """Several copies of each array to which all threads of an adjoint add."""
        return Copies.of(self.device)

    @functools.cached_property
    def signal_copies(self) -> Copies:
        """Copies of the control signals, on a CPU one for each chunk of particles, of which each thread has some."""
        return self.copies if parallel(self.device) else Copies(self.device, CHUNKS)

    @functools.cached_property
    def particles_of_plane(self) -> wp.array:
        """Sampled particles around each plane of the grid across its first axis, shape (worlds * planes,), int."""
        return wp.zeros(self.n_planes, dtype=int, device=self.device)

    @functools.cached_property
    def planes(self) -> wp.array:
        """First plane of each part of the grid, and number of planes of all worlds, shape (PARTS + 1,), int."""
        return wp.zeros(PARTS + 1, dtype=int, device=self.device)

    @functools.cached_property
    def every_particle(self) -> wp.array:
        """Indices of all particles of a world, 0, 1, ..., shape (particles,), int."""
        return device_array(np.arange(self.particles), self.device, int)

    @functools.cached_property
    def no_load(self) -> wp.array:
        """Zero loads [N], shape (worlds, particles), vector; a model whose `load` is this array object has no loads."""
        return wp.zeros((self.worlds, self.particles), dtype=vector(self.dim), device=self.device)

    def _grid(self) -> wp.array:
        return wp.zeros(self.nodes, dtype=NODE, device=self.device)

    def gathered(self, state_out: State) -> Gathered:
        """Momentum and mass on the grid in the step that ends in `state_out`.

        If `keeps(state_out)`, the arrays belong to this step alone, so that the adjoint of the step can read their
        content. Otherwise all steps share one pair of arrays: if no gradients are required, or if the arrays are larger
        than the state, as in a wide domain.
        """
        if not self.keeps(state_out):
            return self._shared
        return self._kept.of(state_out, self._gathered)

    def keeps(self, state_out: State) -> bool:
        """Whether the arrays `gathered` of the step that ends in `state_out` are still filled when its adjoint runs."""
        return state_out.position.requires_grad and 16 * self.nodes <= sum(a.capacity for a in state_out.fields())

    def _gathered(self) -> Gathered:
        return Gathered(wp.zeros(self.pencils, dtype=int, device=self.device), self._grid())

    @functools.cached_property
    def _shared(self) -> Gathered:
        return self._gathered()

    @functools.cached_property
    def _kept(self) -> AdjointCache:
        return AdjointCache()

    @functools.cached_property
    def velocity(self) -> wp.array:
        """Velocity of each node after gravity and contact [m/s], shape (worlds * nodes,)."""
        return self._grid()

    @functools.cached_property
    def before(self) -> wp.array:
        """Velocities of nodes before contact with each obstacle that moves [m/s], shape (n_moving, worlds * nodes)."""
        return wp.zeros((self.n_moving, self.nodes), dtype=NODE, device=self.device)

    @functools.cached_property
    def pinched(self) -> wp.array:
        """1 for each world in which a node is in contact with opposite faces, else 0, shape (worlds,), int."""
        return wp.zeros(self.worlds, dtype=int, device=self.device)

    @functools.cached_property
    def no_samples(self) -> wp.array:
        """Gradient with respect to the samples of obstacles that move, which is not used, shape (0, 0)."""
        return wp.zeros((0, 0), dtype=wp.float64, device=self.device)

    @functools.cached_property
    def momentum_adj(self) -> wp.array:
        """Gradient with respect to the momentum and mass of each node, shape (worlds * nodes,)."""
        return self._grid()

    @functools.cached_property
    def velocity_adj(self) -> wp.array:
        """Gradient with respect to the velocity of each node, shape (worlds * nodes,)."""
        return self._grid()

    @functools.cached_property
    def measured(self) -> Gathered:
        """Momentum and mass on the grid, from which `sense` computes the forces on obstacles."""
        return self._gathered()

    @functools.cached_property
    def contact_force(self) -> wp.array:
        """Force at each contact of a node [N], shape (worlds, n_contacts), vector."""
        return self._zeros(self.n_contacts, vector(self.dim))

    @functools.cached_property
    def contact_torque(self) -> wp.array:
        """Torque about the origin at each contact of a node [N m], shape (worlds, n_contacts): a number or a vector."""
        return self._zeros(self.n_contacts, moment_type(self.dim))

    @functools.cached_property
    def held(self) -> HeldForces:
        """Forces and torques on constraints."""
        shape = (self.worlds, self.n_constraints)
        wrenches = (wp.zeros(shape, dtype=wp.vec3d, device=self.device) for _ in range(4))
        return HeldForces([self._grid() for _ in range(self.n_constraints)], *wrenches)

    @functools.cached_property
    def measures(self) -> MatterTerms:
        """Energies and momenta of each particle."""
        return matter_terms(self.worlds, self.particles, self._zeros(self.particles), self.dim)

    @functools.cached_property
    def constituents(self) -> ConstituentLoad:
        """Stress and energy that fibres and branches add to each particle."""
        return ConstituentLoad(self._zeros(self.particles, matrix(self.dim)), self._zeros(self.particles))

    @functools.cached_property
    def law_constants(self) -> wp.array | None:
        """Constants of the laws of all particles, with a gradient, shape (worlds * particles, n_constants), or None."""
        shape = (self.worlds * self.particles, self.n_constants)
        return wp.zeros(shape, dtype=real, device=self.device, requires_grad=True) if self.n_constants else None

    @functools.cached_property
    def flow(self) -> FlowAdjoint:
        """Gradients with respect to the motion of a step before plastic flow and relaxation."""
        shape, mat = (self.worlds, self.particles), matrix(self.dim)
        return FlowAdjoint(*(wp.zeros(shape, dtype=mat, device=self.device) for _ in range(2)))

    @functools.cached_property
    def retained(self) -> Retained:
        """Motion of fluid particles that the grid does not resolve, see `retained_motion`."""
        vec, mat, shape = vector(self.dim), matrix(self.dim), (self.worlds, self.particles)
        residual = (wp.zeros(self.n_fluid, dtype=t, device=self.device) for t in (vec, mat))
        before = (wp.zeros(shape, dtype=t, device=self.device) for t in (vec, mat))
        return Retained(self._grid(), *residual, *before)

    def _zeros(self, count: int, dtype: type = real) -> wp.array:
        return wp.zeros((self.worlds, count), dtype=dtype, device=self.device, requires_grad=True)

    @functools.cached_property
    def cables(self) -> CableWorkspace:
        """Lengths, tensions and forces of the cables."""
        return CableWorkspace(self.worlds, self.n_cables, self.n_waypoints, vector(self.dim), self.device)
