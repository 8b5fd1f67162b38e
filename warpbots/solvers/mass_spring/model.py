"""Model of the mass-spring solver (`MassSpringModel`), constant in a step, and its state (`MassSpringState`)."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
import warp as wp

from warpbots.numerics import struct_of
from warpbots.numerics.parameters import NOT_NEGATIVE, Parameter, parameter, parameters_of, parametric, shared
from warpbots.scene import FREEDOMS, Motor, Oscillation, Scene
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.constraints import FREE
from warpbots.solvers.mass_spring.lattice import Lattice, LatticeConstants
from warpbots.solvers.mass_spring.plasticity import NEVER
from warpbots.solvers.mass_spring.springs import edges_of, spring_arrays
from warpbots.solvers.mass_spring.vanishing_springs import spring_strains
from warpbots.solvers.mass_spring.workspace import MassSpringWorkspace
from warpbots.solvers.mass_spring.youngs_modulus import ScaledSprings
from warpbots.solvers.motion_parameters import MotionParameters, with_motions
from warpbots.solvers.moving_frames import FrameState, MovingFrames
from warpbots.solvers.parameters import AMPLITUDE, FREQUENCY, FRICTION, GRAVITY, LOAD, PHASE, SPEED, TORQUE
from warpbots.solvers.places import Places, element_places
from warpbots.solvers.records import with_actuators, with_friction
from warpbots.solvers.rest_strains import RestStrains

__all__ = ["MassSpringModel", "MassSpringState"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringState(ArrayFields[Array]):
    """State of the masses and springs.

    Attributes:
        position: Positions [m], shape (worlds, n_masses), vector.
        velocity: Velocities [m/s], shape (worlds, n_masses), vector.
        time: Time since the start [s], double precision, shape (worlds,).
        travel: Coordinates of the drives of obstacles and constraints [m or rad], double precision, shape (worlds,
            n_drives).
        plastic: Plastic strains of the springs [1], shape (worlds, n_springs), or (worlds, 0) if no spring can yield or
            break.
        broken: 1 for broken springs, 0 for others [1], shape (worlds, n_springs), or (worlds, 0) if no spring can yield
            or break.
        lost: 1 for a world that cannot go on; a simulation keeps the state that this world had before the control
            interval [1], shape (worlds,).
    """

    position: Array
    velocity: Array
    time: Array
    travel: Array
    plastic: Array
    broken: Array
    lost: Array

    def mapped(self, make: Callable[[Array], Other]) -> "MassSpringState[Other]":
        """A copy with `make` applied to each field."""
        return MassSpringState(*map(make, self.fields()))

    def motion(self) -> list[wp.array]:
        """Positions and velocities, with all worlds in one row."""
        return [self.position.flatten(), self.velocity.flatten()]

    def motion_adj(self) -> list[wp.array]:
        """Gradients with respect to positions and velocities, with all worlds in one row."""
        return [self.position.grad.flatten(), self.velocity.grad.flatten()]


@parametric
class MassSpringModel(MotionParameters, ArrayModel, LatticeConstants[wp.array]):
    """A scene as arrays. A changed copy is made with `dataclasses.replace`.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        lattice: All masses and springs of one world at rest, on the host.
        scene_modulus: Young's moduli of the scene [Pa], shape (worlds, n_springs); the same array as `youngs_modulus`
            unless that was replaced. Stiffness and damping are multiplied by the ratio of `youngs_modulus` to these
            moduli, and the strains of actuators that prescribe a stress are divided by this ratio.
        radius: Radii of the masses [m], shape (n_masses,).
        collision: Stiffness of each mass in contact with other masses [N/m], shape (n_masses,), or (0,) without
            self-contact.
        reach: Largest distance at which two masses can be in contact [m].
        rows: The springs at each mass, as a Warp struct (`springs.row_arrays`).
        drive: The signals that drive each spring, as a Warp struct.
        fracture: Breaking strains of the springs, as a Warp struct.
        motors: Motors and the masses that they drive, as a Warp struct.
        cables: Cables, as a Warp struct.
        freedom: Index in `warpbots.scene.FREEDOMS` of the constraint of each mass, or `constraints.FREE`, shape
            (n_masses,), int.
        direction: Unit vector of the constraint of each mass, along the line or normal to the plane in which the mass
            can move [1], shape (n_masses,), vector.
        contact: Stiffness of the contact of each mass with obstacles [N/m], 0 for rigid obstacles, below 0 for masses
            that touch no obstacle, shape (n_masses,).
        constraint: Index of the constraint of each mass, -1 for other masses, shape (n_masses,), int.
        carried: Index of the frame of each mass whose constraint moves, -1 for other masses, shape (n_masses,), int.
        rest: Positions of the masses at rest, in 3D [m], double precision, shape (n_masses,), vector.
        frames: Frames of obstacles and constraints that move.
        obstacles: Obstacles, as a Warp struct (`warpbots.contact.solid`).
        condition: Code of the contact condition of each obstacle (`warpbots.contact.CODES`), shape (n_obstacles,), int.
        extra_friction: Coefficient of static friction minus coefficient of sliding friction [1], shape (n_obstacles,).
        workspace: Arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    lattice: Lattice
    drag: wp.array = parameter("kg/s", NOT_NEGATIVE, "mass", "coefficient of drag")
    load: wp.array = shared(LOAD, "mass")
    friction: wp.array = shared(FRICTION)
    gravity: wp.array = shared(GRAVITY)
    amplitude: wp.array = shared(AMPLITUDE)
    frequency: wp.array = shared(FREQUENCY)
    torque: wp.array = shared(TORQUE)
    speed: wp.array = shared(SPEED)
    phase: wp.array = shared(PHASE)
    scene_modulus: wp.array
    radius: wp.array
    collision: wp.array
    reach: float
    rows: object
    drive: object
    fracture: object
    motors: object
    cables: object
    freedom: wp.array
    direction: wp.array
    constraint: wp.array
    carried: wp.array
    rest: wp.array
    frames: MovingFrames
    contact: wp.array
    obstacles: object
    condition: wp.array
    extra_friction: wp.array
    workspace: MassSpringWorkspace

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.scene.dim

    robot = None
    """There are no rigid bodies."""

    @property
    def matter(self) -> Lattice:
        """All soft bodies at rest."""
        return self.lattice

    def summary(self) -> str:
        """Text with the number of masses, the number of springs and the length of the shortest spring."""
        shortest = self.lattice.rest_length.min()
        return f"{len(self.lattice)} masses, {len(self.lattice.ends)} springs of {shortest:.3g} m and more"

    @functools.cached_property
    def damped(self) -> bool:
        """Whether springs have damping."""
        return bool((self.lattice.damping > 0.0).any())

    @property
    def gather(self) -> bool:
        """Whether the row of a mass holds all its springs, or else only springs to masses of higher number."""
        return self.rows.spring.size > 0

    def edges(self, first: int, end: int) -> tuple[int, int]:
        """The masses of all worlds whose springs cross the ends of a slice of masses, see `Edges`.

        Args:
            first: First mass of the slice.
            end: First mass after the slice.
        """
        masses, (lowest, highest) = len(self.lattice), self._edges
        world, own = divmod(first, masses)
        start = world * masses + int(lowest[own])
        world, own = divmod(end, masses)
        return start, world * masses + int(np.searchsorted(highest, own))

    @functools.cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest masses that springs join to others (`edges_of`), two arrays of shape (n_masses,), int."""
        return edges_of(self.lattice.ends, len(self.lattice))

    @property
    def contact_interval(self) -> float:
        """Length of the interval over which forces on obstacles are averaged [s]."""
        return self.workspace.reading.contact_interval

    @property
    def all_masses(self) -> int:
        """Number of masses of all worlds."""
        return self.worlds * len(self.lattice)

    @property
    def constraints(self) -> list[wp.array]:
        """Inputs of kernels over (worlds, n_held): `held`, `freedom` and `direction`."""
        return [self.held, self.freedom, self.direction]

    @property
    def surfaces(self) -> list:
        """Inputs of kernels of contact: `obstacles`, their poses, `condition` and `extra_friction`."""
        return [self.obstacles, self.frames.solids, self.condition, self.extra_friction]

    @property
    def carries(self) -> bool:
        """Whether a constraint moves."""
        return bool((self.frames.of_constraint >= 0).any())

    def frame_state(self, state: MassSpringState, control: wp.array) -> FrameState:
        """Inputs of the poses of the frames in a step from `state`."""
        return FrameState(self, state.time, state.travel, control)

    @functools.cached_property
    def held(self) -> wp.array:
        """Masses that constraints at rest hold, shape (n_held,), int."""
        held = (self.freedom.numpy() != FREE) & (self.carried.numpy() < 0)
        return device_array(np.flatnonzero(held), self.device, int)

    @functools.cached_property
    def held_at_stages(self) -> wp.array:
        """Masses whose forces are restricted at each stage, shape (n,), int: `held`, and masses fixed to a frame.

        Forces on other masses whose constraint moves are not restricted: lines and planes turn during a step.
        """
        freedom, fixed = self.freedom.numpy(), FREEDOMS.index("fixed")
        held = (freedom != FREE) & ((self.carried.numpy() < 0) | (freedom == fixed))
        return device_array(np.flatnonzero(held), self.device, int)

    @property
    def self_contact(self) -> bool:
        """Whether masses can be in contact with one another."""
        return self.collision.size > 0

    @functools.cached_property
    def rest_strains(self) -> RestStrains:
        """Strains of springs at rest by actuators."""
        return spring_strains(self.scene, self.lattice).distinct()

    @property
    def driven(self) -> bool:
        """Whether actuators change rest lengths."""
        return len(self.lattice.drive) > 0

    @functools.cached_property
    def inelastic(self) -> bool:
        """Whether springs can yield or break."""
        return self.lattice.inelastic

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """Table of the masses, as elements with one vertex each, shape (n_masses, 1), int."""
        return {"mass": np.arange(len(self.lattice))[:, None]}

    @property
    def measured_elements(self) -> dict[str, str]:
        """Kinds of elements to which the readings of stress and strain belong."""
        return {"stress": "mass", "strain": "spring"}

    def places(self, per: str) -> Places | None:
        """Places of the masses or springs at rest; None if `per` is another kind of element."""
        if per == "spring":
            return element_places(self.scene, self.lattice, self.lattice.ends, self.lattice.spring_body)
        return super().places(per)

    def parameters(self) -> dict[str, Parameter]:
        """Parameters that can be differentiated: field name -> unit, range and meaning.

        Parameters of damping, yield, friction, oscillations and motors are left out if the scene has none.
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
        absent |= self.frames.absent
        return {name: spec for name, spec in parameters_of(MassSpringModel).items() if name not in absent}

    @functools.cached_property
    def scaled(self) -> ScaledSprings | None:
        """Spring constants at the new Young's moduli if these were replaced; None if they were not."""
        if self.youngs_modulus is self.scene_modulus:
            return None
        constants = self.scene_modulus, self.youngs_modulus, self.stiffness, self.damping
        return ScaledSprings.of(*constants, damped=self.damped, driven=self.driven)

    @property
    def constants(self) -> tuple[wp.array, wp.array]:
        """Stiffness [N/m] and damping [N s/m] at the current Young's moduli, each of shape (worlds, n_springs)."""
        constants = self if self.scaled is None else self.scaled
        return constants.stiffness, constants.damping

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with gravity, friction, oscillations and motors from `values`."""
        scene = with_motions(with_friction(super().recorded(values), values), values)
        fields = {name: name for name in ("amplitude", "frequency", "phase")}
        scene = with_actuators(scene, Oscillation, fields, values)
        return with_actuators(scene, Motor, {"torque": "max_torque", "speed": "max_speed"}, values)

    @property
    def length(self) -> wp.array:
        """Rest lengths that determine the forces, with actuators and plastic strains [m], shape (worlds, n_springs)."""
        return self.workspace.rest_length.plastic if self.inelastic else self.elastic_length

    @property
    def elastic_length(self) -> wp.array:
        """Rest lengths with actuators, but without plastic strains [m], shape (worlds, n_springs)."""
        return self.workspace.rest_length.driven if self.driven else self.rest_length

    @functools.cached_property
    def springs(self) -> object:
        """Stiffness, rest length and damping of the springs as a Warp struct."""
        stiffness, damping = self.constants
        return struct_of(spring_arrays(), [stiffness, self.length, damping])

    def springs_adj(self) -> object:
        """Gradients with respect to the arrays of `springs`, as a Warp struct."""
        stiffness, damping = self.constants
        return struct_of(spring_arrays(), [stiffness.grad, self.length.grad, damping.grad])
