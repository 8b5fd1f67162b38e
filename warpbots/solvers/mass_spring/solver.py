"""The mass-spring solver: its options and its methods."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.contact import least_thickness
from warpbots.near_names import names_arguments
from warpbots.numerics import copy, real, record, vector, warp_device
from warpbots.scene import Scene
from warpbots.scene.field_types import conform
from warpbots.solvers.cell_sizes import cell_size_for, given
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.mass_spring.build import build
from warpbots.solvers.mass_spring.explicit_integrators import SCHEMES, Scheme
from warpbots.solvers.mass_spring.explicit_step import ExplicitStep
from warpbots.solvers.mass_spring.impulses import MassImpulses
from warpbots.solvers.mass_spring.measurements import MassSpringMeasurement, MassSpringReadings, readings
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.stable_time_step import largest_step
from warpbots.solvers.moving_frames import have_met
from warpbots.solvers.scene_support import OVERFLOW, refuse_states_without_gradient, refuse_worlds

__all__ = ["MassSpring"]

_LATTICES = ("voxel", "random")

_CELLS = 10_000
"""Largest number of cells for a chosen spacing."""


@names_arguments
@dataclasses.dataclass(frozen=True)
class MassSpring:
    """Lattices of masses and Hookean springs, explicit, in 2D and 3D (Clay et al., Cronos).

    A lattice of springs has the Young's modulus of the material, but not all its other properties: Poisson's ratio is
    1/4, and at large strain the springs stay linear instead of following the law of the material.

    Attributes:
        margin: Longest safe step for moving matter, divided by the stability bound at rest [1]. Large deformation and
            impacts lower the bound; the value was measured on robots and falling cubes.
        spacing: Distance between neighbouring masses [m]; None to choose it for a scene (`sized`).
        lattice: ``"voxel"``, boxes with face and space diagonals, or ``"random"``, quasi-uniform points joined by
            tetrahedra.
        integrator: ``"euler"`` (semi-implicit), ``"verlet"`` or ``"rk4"``.
        damping: Time constant of Kelvin-Voigt damping [s], which every spring has in addition to the damping of its
            material; without damping, lattices keep vibrating.
        drag: Coefficient of drag [1/s]: the drag force divided by mass and speed, opposite to the velocity; 0 for no
            drag.
        contact_stiffness: Pressure of obstacles per depth [Pa/m]; on a mass of volume V the pressure acts on an area of
            V^(2/3) (in 2D V^(1/2)). With 0 surfaces are rigid, which is realistic for hard ground; but then a foot
            stops in a single step, and gradients through many contacts are noisy. For training choose a stiffness at
            which the robot sinks in by millimetres.
        contact_damping: Relative increase of the pressure of a compliant surface per speed of approach, and relative
            decrease per speed of separation [s/m]; a body that falls on the surface at speed v rebounds at about v (1 -
            2/3 contact_damping v). With 0 contact has no damping.
        collision: Stiffness of contact between two masses, of one body or of two, relative to the mean stiffness of
            their springs [1]. Contact begins at 0.9 of the distance between a mass and its nearest neighbour at rest. A
            value of 1 is enough for slow contact, and 4 for an impact at a tenth of the speed of sound. With 0, masses
            pass through one another. This contact has no friction.
        seed: Seed of a random lattice.

    Raises:
        ValueError: A value is outside its range.
    """

    margin: ClassVar[float] = 0.6

    spacing: float | None = None
    lattice: str = "voxel"
    integrator: str = "euler"
    damping: float = 0.0
    drag: float = 0.0
    contact_stiffness: float = 0.0
    contact_damping: float = 0.0
    collision: float = 0.0
    seed: int = 0

    def __post_init__(self):
        conform(self)
        if self.spacing is not None and self.spacing <= 0.0:
            raise ValueError(f"MassSpring: spacing must be positive [m], got {self.spacing:g}")
        for field, known in (("lattice", _LATTICES), ("integrator", tuple(SCHEMES))):
            if getattr(self, field) not in known:
                raise ValueError(f"MassSpring: {field} must be one of {', '.join(known)}, got {getattr(self, field)!r}")
        units = {"damping": "s", "drag": "1/s", "contact_stiffness": "Pa/m", "contact_damping": "s/m", "collision": "1"}
        for field, unit in units.items():
            if getattr(self, field) < 0.0:
                raise ValueError(f"MassSpring: {field} must not be negative [{unit}], got {getattr(self, field):g}")

    @property
    def scheme(self) -> Scheme:
        """The coefficients of the integrator."""
        return SCHEMES[self.integrator]

    @property
    def lost_gradient(self) -> str:
        """Text that explains why gradients can become infinite or NaN within a step, and how to prevent this."""
        return OVERFLOW

    def sized(self, scene: Scene) -> "MassSpring":
        """Return a solver whose `spacing` is set: this solver if it has a spacing, else a copy with a chosen spacing.

        The chosen spacing is the spacing of the scene's task if the task gives one, else a quarter of the width of the
        narrowest body (`warpbots.contact.width`). It is larger if filling all bodies would take more than 10,000 cells.
        """
        return self if self.spacing else dataclasses.replace(self, spacing=cell_size_for(scene, 4.0, _CELLS))

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> MassSpringModel:
        """Fill the bodies of `scene` with masses and springs.

        Raises:
            SceneError: The scene cannot be simulated by masses and springs; the message says why.
            ValueError: `worlds` is below 1, or `spacing` is None.
        """
        refuse_worlds("MassSpring", worlds)
        given(self.spacing, "MassSpring", "spacing")
        options = {f: v for f, v in dataclasses.asdict(self).items() if f not in ("integrator", "contact_damping")}
        return build(scene, worlds, warp_device(device), self.scheme.stages, **options)

    def state(self, model: MassSpringModel, requires_grad: bool = False) -> MassSpringState[wp.array]:
        """New state at time 0, with every mass at its rest position and with the initial velocity of its body."""

        def motion(values: np.ndarray) -> wp.array:
            return tiled(values, model.worlds, model.device, vector(model.dim), requires_grad)

        def zeros(shape: int | tuple, dtype: type = real) -> wp.array:
            return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

        springs = (model.worlds, len(model.lattice.ends) if model.inelastic else 0)
        return MassSpringState(
            motion(model.lattice.position), motion(model.lattice.velocity), zeros(model.worlds, wp.float64),
            zeros((model.worlds, model.frames.drives), wp.float64), zeros(springs), zeros(springs), zeros(model.worlds),
        )  # fmt: skip

    def max_time_step(self, model: MassSpringModel, enough: float = math.inf) -> float:
        """Stability bound [s]: s / w_max with the highest natural frequency w_max of the lattice at rest.

        s is the bound of the scheme at the damping ratio z of w_max: 2 for semi-implicit Euler and Verlet without
        damping, 2 (sqrt(1 + z^2) - z) with damping, and 2 sqrt 2 for Runge-Kutta without damping. A surface of
        stiffness K against a mass m adds K / m to w_max^2; self-contact and cables of stiffness K add 4 K / m. A motor
        of torque T and speed w between moments of inertia I_0 and I_1 is stable up to 2 / (T / w (1 / I_0 + 1 / I_1)).

        If a cheap upper bound of w_max already gives a step above `enough`, the method returns this step.
        """
        return largest_step(model, self.scheme, enough)

    def diagnose(self, model: MassSpringModel, before: dict, after: dict, dt: float) -> str:
        """Explain in one sentence why a state is not finite: the field, the index of the entry and the cause.

        Args:
            model: From `build`.
            before: Fields of the state before the step, as NumPy arrays.
            after: Fields of the state after the step, which is not finite, as NumPy arrays.
            dt: Length of the step [s].
        """
        if ended := model.frames.diagnosis(before["time"], after["time"], dt):
            return ended
        moved = {name: np.isfinite(after[name]).all(axis=-1) for name in ("position", "velocity")}
        passed = np.isfinite(before["position"]).all(axis=-1) & moved["velocity"] & ~moved["position"]
        if passed.any():
            w, i = (int(k) for k in np.argwhere(passed)[0])
            x = before["position"][w, i : i + 1].astype(np.float64)
            mass = f"mass {i} of {model.scene.bodies[model.lattice.body[i]].name!r} in world {w}"
            depth = model.frames.depths(model, before["time"], before["travel"], w, x[0])
            deepest = np.argsort(-depth)[:2]
            if len(model.frames) and len(deepest) == 2 and depth[deepest].sum() > 0.0:
                names = (model.scene.obstacles[k].name for k in deepest)
                return have_met(f"{mass}, at {x[0].round(4).tolist()} m,", *names, before["time"][w] + dt)
            obstacle = model.scene.obstacles[int(np.abs(depth).argmin())]
            return (
                f"{mass} passes through the obstacle {obstacle.name!r} and would come out on the far side: use a "
                f"thicker obstacle, a higher contact_stiffness (this one is {self.contact_stiffness:g} Pa/m, 0 is "
                f"rigid) or more substeps (this one has {dt:.3g} s, in which the mass moves "
                f"{np.linalg.norm(before['velocity'][w, i]) * dt:.3g} m)"
            )
        for fields in (before, after):
            for name in ("position", "velocity"):
                bad = ~np.isfinite(fields[name]).all(axis=-1)
                if bad.any():
                    w, i = (int(k) for k in np.argwhere(bad)[0])
                    return (
                        f"{name} of mass {i} of {model.scene.bodies[model.lattice.body[i]].name!r} in world {w} is not "
                        f"finite: the motion diverged; use more substeps (this one has {dt:.3g} s, the bound at rest "
                        f"is {self.max_time_step(model):.3g} s) or weaker actuators"
                    )
        return "time is not finite: the state at the start of the motion was not finite"

    def readings(self, model: MassSpringModel, requires_grad: bool = False) -> MassSpringReadings:
        """New arrays to which `sense` writes."""
        return readings(model, requires_grad)

    def sense(
        self, model: MassSpringModel, state: MassSpringState, control: wp.array, readings_out: MassSpringReadings
    ) -> None:
        """Measure energies, momenta, strains, tensions, stresses and contact forces, and record the adjoint.

        Args:
            model: From `build`.
            state: State to measure.
            control: Control signals in [-1, 1], shape (worlds, channels).
            readings_out: Readings to which the measurement is written, from `readings`.

        Raises:
            RuntimeError: A gradient is recorded, but an array has no gradient.
        """
        MassSpringMeasurement(model, state, control, readings_out, self.contact_damping).run()

    def step(
        self, model: MassSpringModel, state: MassSpringState, control: wp.array, state_out: MassSpringState, dt: float
    ) -> None:
        """Advance by `dt` [s], and record the adjoint on the active tape.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: State at the end of the step; it must not share arrays with `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is recorded, but a state has no arrays for gradients.
        """
        step = self.explicit_step(model, state, control, state_out, dt)

        def adjoint() -> None:
            refuse_states_without_gradient("MassSpring", state=state.fields(), state_out=state_out.fields())
            step.adjoint()

        step.run()
        copy(state_out.lost, state.lost)
        parameters = model.parameter_arrays()
        record(adjoint, [*state.fields(), control, *parameters], state_out.fields())

    def explicit_step(
        self, model: MassSpringModel, state: MassSpringState, control: wp.array, state_out: MassSpringState, dt: float,
        impulses: MassImpulses | None = None,
    ) -> ExplicitStep:  # fmt: skip
        """A step and its adjoint, with the arguments of `step` and impulses from outside; runs nothing.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: State at the end of the step.
            dt: Time step [s].
            impulses: Impulses on the masses from outside, if there are any.
        """
        thinnest = least_thickness(model.dim, given(self.spacing, "MassSpring", "spacing"))
        return ExplicitStep(model, state, control, state_out, dt, self.scheme, self.contact_damping, thinnest, impulses)
