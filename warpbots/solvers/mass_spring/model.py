"""What the mass-spring solver simulates (`MassSpringModel`) and what moves (`MassSpringState`)."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.math import NODE, real, struct_of, vector
from warpbots.scene import Scene
from warpbots.solvers.kept import Kept
from warpbots.solvers.mass_spring.cables import CableScratch
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.solvers.mass_spring.motor import MotorScratch
from warpbots.solvers.mass_spring.restrain import FREE
from warpbots.solvers.mass_spring.springs import spring_arrays
from warpbots.solvers.mass_spring.wear import NEVER
from warpbots.solvers.solver import Parameter

__all__ = ["MassSpringModel", "MassSpringState", "Scratch"]

_INFINITY = float("inf")
_PARAMETERS = {
    "stiffness": Parameter("N/m", 0.0, _INFINITY, "spring", "spring constant"),
    "rest_length": Parameter("m", 0.0, _INFINITY, "spring", "length at rest"),
    "damping": Parameter("N s/m", 0.0, _INFINITY, "spring", "damping along the spring", inclusive=True),
    "yield_strain": Parameter("1", 0.0, _INFINITY, "spring", "strain at which the spring sets"),
    "mass": Parameter("kg", 0.0, _INFINITY, "mass", "mass"),
    "drag": Parameter("kg/s", 0.0, _INFINITY, "mass", "coefficient of drag", inclusive=True),
    "load": Parameter("N", -_INFINITY, _INFINITY, "mass", "steady force"),
    "friction": Parameter("1", 0.0, _INFINITY, "obstacle", "Coulomb coefficient", inclusive=True),
    "gravity": Parameter("m/s^2", -_INFINITY, _INFINITY, "component", "gravitational acceleration"),
    "amplitude": Parameter("1", -1.0, 1.0, "oscillation", "strain of an oscillation"),
    "frequency": Parameter("Hz", 0.0, _INFINITY, "oscillation", "frequency of an oscillation", inclusive=True),
    "torque": Parameter("N m", 0.0, _INFINITY, "motor", "torque of a motor at standstill", inclusive=True),
    "speed": Parameter("rad/s", 0.0, _INFINITY, "motor", "speed of a motor without load"),
    "phase": Parameter("rad", -_INFINITY, _INFINITY, "oscillation", "phase of an oscillation"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringState:
    """Masses in motion.

    Attributes:
        position: Positions [m], shape (worlds, n_masses), vector.
        velocity: Velocities [m/s], shape (worlds, n_masses), vector.
        time: Time since the start [s], double precision, shape (worlds,).
        plastic: Strains by which springs have set [1], shape (worlds, n_springs), or (worlds, 0) if none can set or
            break.
        broken: 1 for broken springs, 0 for the others, shape as `plastic`.
    """

    position: wp.array
    velocity: wp.array
    time: wp.array
    plastic: wp.array
    broken: wp.array

    def fields(self) -> list[wp.array]:
        """All arrays, in the order of the attributes."""
        return [self.position, self.velocity, self.time, self.plastic, self.broken]

    def moving(self) -> list[wp.array]:
        """Positions, velocities and time, all worlds in one row."""
        return [self.position.flatten(), self.velocity.flatten(), self.time]


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

    def force(self, state_out: MassSpringState) -> wp.array:
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
        return [wp.zeros(self.masses, dtype=vector(self.dim), device=self.device) for _ in range(2)]

    @functools.cached_property
    def free_adj(self) -> list[wp.array]:
        """Gradients to `free`, shape (worlds * n_masses,), vector."""
        return [wp.zeros_like(a) for a in self.free]

    @functools.cached_property
    def ended_adj(self) -> list[wp.array]:
        """Gradients to position and velocity before constraints, shape (worlds * n_masses,), vector."""
        return [wp.zeros_like(a) for a in self.free]

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


@dataclasses.dataclass(frozen=True)
class MassSpringModel:
    """A scene as arrays. A changed copy is made with `dataclasses.replace`.

    Attributes:
        scene: What was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        lattice: All masses and springs of one world at rest, on the host.
        stiffness: Spring constants [N/m], shape (worlds, n_springs).
        rest_length: Lengths at rest [m], shape (worlds, n_springs).
        damping: Damping along the springs [N s/m], shape (worlds, n_springs).
        yield_strain: Strains at which springs set [1], shape (worlds, n_springs).
        mass: Masses [kg], shape (worlds, n_masses).
        drag: Coefficients of drag [kg/s], shape (worlds, n_masses).
        load: Steady forces [N], shape (worlds, n_masses), vector.
        friction: Coulomb coefficients [1], shape (worlds, n_obstacles).
        gravity: Gravitational acceleration [m/s^2], shape (worlds,), vector.
        amplitude: Strains of the oscillations [1], shape (worlds, n_oscillations).
        frequency: Frequencies of the oscillations [Hz], shape (worlds, n_oscillations).
        phase: Phases of the oscillations at time 0 [rad], shape (worlds, n_oscillations).
        torque: Torques of the motors at standstill [N m], shape (worlds, n_motors).
        speed: Speeds of the motors without load [rad/s], shape (worlds, n_motors).
        radius: Radii of the masses [m], shape (n_masses,).
        collision: Stiffness of the masses against one another [N/m], shape (n_masses,); empty if they do not collide.
        reach: Largest distance at which masses collide [m].
        rows: Which springs hang on which mass, as a Warp struct.
        drive: Which signals drive which springs, as a Warp struct.
        wear: When springs break, as a Warp struct.
        motors: Which masses motors turn, as a Warp struct.
        cables: Cables, as a Warp struct.
        freedom: Index in `warpbots.scene.FREEDOMS` of what each mass may do, or `restrain.FREE`, shape (n_masses,).
        direction: Unit vectors of lines and normals of planes that masses are held to, shape (n_masses,), vector.
        contact: Stiffness of obstacles against each mass [N/m]; 0: they give way to nothing, shape (n_masses,).
        obstacles: Obstacles, as a Warp struct.
        scratch: Arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    lattice: Lattice
    stiffness: wp.array
    rest_length: wp.array
    damping: wp.array
    yield_strain: wp.array
    mass: wp.array
    drag: wp.array
    load: wp.array
    friction: wp.array
    gravity: wp.array
    amplitude: wp.array
    frequency: wp.array
    phase: wp.array
    torque: wp.array
    speed: wp.array
    radius: wp.array
    collision: wp.array
    reach: float
    rows: object
    drive: object
    wear: object
    motors: object
    cables: object
    freedom: wp.array
    direction: wp.array
    contact: wp.array
    obstacles: object
    scratch: Scratch

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.scene.dim

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator."""
        return len(self.scene.actuators)

    @property
    def particles(self) -> Lattice:
        """All matter at rest."""
        return self.lattice

    @functools.cached_property
    def damped(self) -> bool:
        """Whether springs have damping."""
        return bool((self.lattice.damping > 0.0).any())

    @property
    def gather(self) -> bool:
        """Whether rows hold all springs of a mass."""
        return self.rows.spring.size > 0

    @functools.cached_property
    def held(self) -> wp.array:
        """Masses that constraints hold, shape (n_held,)."""
        return wp.array(np.flatnonzero(self.freedom.numpy() != FREE), dtype=int, device=self.device)

    @property
    def collides(self) -> bool:
        """Whether masses collide with one another."""
        return self.collision.size > 0

    @property
    def driven(self) -> bool:
        """Whether actuators change lengths at rest."""
        return len(self.lattice.drive) > 0

    @functools.cached_property
    def wears(self) -> bool:
        """Whether springs can set or break."""
        return bool((np.minimum(self.lattice.yield_strain, self.lattice.breaking_strain) < NEVER).any())

    def parameters(self) -> dict[str, Parameter]:
        """What can be differentiated: field name -> unit, range and meaning.

        Damping, yield, friction, oscillations and motors are none of it in a scene without any: they have no effect.
        """
        absent = set() if self.damped else {"damping"}
        if not (self.lattice.yield_strain < NEVER).any():
            absent.add("yield_strain")
        if not any(o.condition == "friction" for o in self.scene.obstacles):
            absent.add("friction")
        if not self.amplitude.size:
            absent |= {"amplitude", "frequency", "phase"}
        if not self.torque.size:
            absent |= {"torque", "speed"}
        return {name: spec for name, spec in _PARAMETERS.items() if name not in absent}

    @property
    def length(self) -> wp.array:
        """Lengths at rest with which springs pull [m], shape (worlds, n_springs)."""
        if self.wears:
            return self.scratch.worn_length
        return self.scratch.rest_length if self.driven else self.rest_length

    @functools.cached_property
    def springs(self) -> object:
        """Constants of the springs as a Warp struct."""
        return struct_of(spring_arrays(), [self.stiffness, self.length, self.damping])

    def springs_adj(self) -> object:
        """Gradients to the springs' constants as a Warp struct, that to the lengths at rest going where they are."""
        return struct_of(spring_arrays(), [self.stiffness.grad, self.length.grad, self.damping.grad])
