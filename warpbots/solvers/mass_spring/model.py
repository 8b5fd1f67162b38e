"""What the mass-spring solver simulates (`MassSpringModel`) and what moves (`MassSpringState`)."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.numerics import real, struct_of
from warpbots.scene import Scene
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.mass_spring.constraints import FREE
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.solvers.mass_spring.plasticity import NEVER
from warpbots.solvers.mass_spring.springs import spring_arrays
from warpbots.solvers.mass_spring.workspace import Scratch
from warpbots.solvers.solver import Parameter

__all__ = ["MassSpringModel", "MassSpringState"]

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
class MassSpringModel(ArrayModel):
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

    scalar = real
    """Warp scalar of control signals."""

    robot = None
    """There are no rigid bodies."""

    @property
    def matter(self) -> Lattice:
        """All soft bodies at rest."""
        return self.lattice

    def summary(self) -> str:
        """Number of masses and springs, and the shortest spring."""
        shortest = self.lattice.rest_length.min()
        return f"{len(self.lattice)} masses, {len(self.lattice.ends)} springs of {shortest:.3g} m and more"

    @functools.cached_property
    def damped(self) -> bool:
        """Whether springs have damping."""
        return bool((self.lattice.damping > 0.0).any())

    @property
    def gather(self) -> bool:
        """Whether rows hold all springs of a mass."""
        return self.rows.spring.size > 0

    @property
    def constraints(self) -> list[wp.array]:
        """What kernels over (worlds, n_held) need to know of the constraints."""
        return [self.held, self.freedom, self.direction]

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
        return self.lattice.breaks

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
