"""What the MPM solver simulates (`MPMModel`) and what moves (`MPMState`)."""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import NODE, Copies, real, struct_of, vector
from warpbots.scene import Scene
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.mpm.arrays import constitution_arrays, motion_arrays
from warpbots.solvers.mpm.grid import Contacts, Grid
from warpbots.solvers.mpm.particles import Particles
from warpbots.solvers.solver import Parameter

__all__ = ["Group", "MPMModel", "MPMState", "Scratch"]

_INFINITY = float("inf")
_PARAMETERS = {
    "youngs_modulus": Parameter("Pa", 0.0, _INFINITY, "particle", "Young's modulus"),
    "poissons_ratio": Parameter("1", -1.0, 0.5, "particle", "Poisson's ratio"),
    "density": Parameter("kg/m^dim", 0.0, _INFINITY, "particle", "mass density at rest"),
    "volume": Parameter("m^dim", 0.0, _INFINITY, "particle", "volume at rest"),
    "friction": Parameter("1", 0.0, _INFINITY, "obstacle", "Coulomb coefficient", inclusive=True),
    "gravity": Parameter("m/s^2", -_INFINITY, _INFINITY, "component", "gravitational acceleration"),
}


@dataclasses.dataclass(frozen=True)
class Group:
    """Consecutive particles of one constitutive law.

    Attributes:
        law: Name of the law.
        incompressibility: Exponent of the added volumetric energy, 0 for none.
        first: Index of the first particle.
        count: Number of particles.
        rows: Their indices in the arrays of all worlds, shape (worlds * count,).
    """

    law: str
    incompressibility: int
    first: int
    count: int
    rows: wp.array


@dataclasses.dataclass(frozen=True)
class Gathered:
    """What the particles have given to the grid. Only active pencils are ever written and read.

    Attributes:
        active: Whether a particle touches each pencil, shape (worlds * pencils,).
        momentum: Momentum [kg m/s] and mass [kg] of each node, shape (worlds * nodes,).
    """

    active: wp.array
    momentum: wp.array


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Arrays that a step fills anew, grids above all; between steps most of their content means nothing.

    Only the active pencils of a grid are ever written and read: those that a particle touches.

    Attributes:
        nodes: Nodes of all worlds.
        pencils: Pencils of all worlds.
        dim: 2 or 3.
        worlds: Number of worlds.
        waypoints: Waypoints of all cables of one world.
        cables: Cables of one world.
        device: Device of the arrays.
    """

    nodes: int
    pencils: int
    dim: int
    worlds: int
    waypoints: int
    cables: int
    device: wp.Device

    @functools.cached_property
    def copies(self) -> Copies:
        """Copies of what all threads of an adjoint add to."""
        return Copies.of(self.device)

    def _grid(self) -> wp.array:
        return wp.zeros(self.nodes, dtype=NODE, device=self.device)

    def gathered(self, state_out: "MPMState") -> Gathered:
        """Where the step that ends in `state_out` gathers momentum.

        If a gradient will be wanted the arrays belong to that state, and the adjoint of the step finds them filled;
        unless they are larger than the state, as in a wide domain: then all steps share one pair. See `keeps`.
        """
        if not self.keeps(state_out):
            return self._shared
        return self._kept.of(state_out, self._gathered)

    def keeps(self, state_out: "MPMState") -> bool:
        """Whether what was gathered for `state_out` is still there when the adjoint of its step runs."""
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
    def momentum_adj(self) -> wp.array:
        """Gradient to `momentum`, shape (worlds * nodes,)."""
        return self._grid()

    @functools.cached_property
    def velocity_adj(self) -> wp.array:
        """Gradient to `velocity`, shape (worlds * nodes,)."""
        return self._grid()

    @functools.cached_property
    def length(self) -> wp.array:
        """Length of each cable's route [m], shape (worlds, n_cables), with a gradient."""
        return wp.zeros((self.worlds, self.cables), dtype=real, device=self.device, requires_grad=True)

    @functools.cached_property
    def tension(self) -> wp.array:
        """Tension of each cable [N], shape (worlds, n_cables), with a gradient."""
        return wp.zeros((self.worlds, self.cables), dtype=real, device=self.device, requires_grad=True)

    @functools.cached_property
    def force(self) -> wp.array:
        """Force at each waypoint [N], shape (worlds, n_waypoints), with a gradient."""
        shape = (self.worlds, self.waypoints)
        return wp.zeros(shape, dtype=vector(self.dim), device=self.device, requires_grad=True)


@dataclasses.dataclass(frozen=True, eq=False)
class MPMState:
    """Particles in motion. A velocity gradient and a deformation gradient go with each, as APIC and MLS-MPM need.

    Attributes:
        position: Positions [m], shape (worlds, n_particles), vector.
        velocity: Velocities [m/s], shape (worlds, n_particles), vector.
        velocity_gradient: The affine field C of APIC [1/s], shape (worlds, n_particles), matrix.
        deformation: Deformation gradients F [1], shape (worlds, n_particles), matrix.
    """

    position: wp.array
    velocity: wp.array
    velocity_gradient: wp.array
    deformation: wp.array

    def fields(self) -> list[wp.array]:
        """All arrays, in the order of the attributes."""
        return [self.position, self.velocity, self.velocity_gradient, self.deformation]

    @functools.cached_property
    def motion(self) -> object:
        """The arrays as a Warp struct."""
        return struct_of(motion_arrays(self.position.dtype._length_), self.fields())

    @functools.cached_property
    def motion_adj(self) -> object:
        """The arrays' gradients as a Warp struct."""
        return struct_of(motion_arrays(self.position.dtype._length_), [a.grad for a in self.fields()])


@dataclasses.dataclass(frozen=True)
class MPMModel:
    """A scene as arrays. A changed copy is made with `dataclasses.replace`.

    Attributes:
        scene: What was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        particles: All matter of one world at rest, on the host.
        groups: Which particles follow which law.
        grid: The background grid of one world.
        youngs_modulus: Young's modulus [Pa], shape (worlds, n_particles).
        poissons_ratio: Poisson's ratio [1], shape (worlds, n_particles).
        density: Density at rest [kg/m^dim], shape (worlds, n_particles).
        volume: Volume at rest [m^dim], shape (worlds, n_particles).
        friction: Coulomb coefficients [1], shape (worlds, n_obstacles).
        gravity: Gravitational acceleration [m/s^2], shape (worlds,), vector.
        geometry: The grid, as a Warp struct.
        contacts: Nodes in obstacles.
        actuation: Stress actuators of particles, as a Warp struct.
        cables: Cables, as a Warp struct.
        scratch: Grids that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    particles: Particles
    groups: tuple[Group, ...]
    grid: Grid
    youngs_modulus: wp.array
    poissons_ratio: wp.array
    density: wp.array
    volume: wp.array
    friction: wp.array
    gravity: wp.array
    geometry: object
    contacts: Contacts
    actuation: object
    cables: object
    scratch: Scratch

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.scene.dim

    scalar = real
    """Warp scalar of control signals."""

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator."""
        return len(self.scene.actuators)

    def parameters(self) -> dict[str, Parameter]:
        """What can be differentiated: field name -> unit, range and meaning.

        Friction is none of it where no obstacle has the condition ``"friction"``: it would have no effect.
        """
        rough = any(o.condition == "friction" for o in self.scene.obstacles)
        return {name: spec for name, spec in _PARAMETERS.items() if name != "friction" or rough}

    @functools.cached_property
    def material(self) -> object:
        """Constants of the particles as a Warp struct."""
        return struct_of(constitution_arrays(), self._constitution())

    @functools.cached_property
    def material_adj(self) -> object:
        """Their gradients as a Warp struct; null where none is wanted."""
        return struct_of(constitution_arrays(), [a.grad for a in self._constitution()])

    def _constitution(self) -> list[wp.array]:
        return [self.youngs_modulus, self.poissons_ratio, self.density, self.volume]
