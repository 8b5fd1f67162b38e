"""The mass-spring solver: one explicit step of a lattice and its adjoint."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.contact import least_thickness, obstacle_arrays, signed_distance
from warpbots.numerics import NODE, copy, launch, launch_adjoint, real, real_numpy, record, vector
from warpbots.scene import HalfSpace, Scene
from warpbots.scene.field_types import conform
from warpbots.solvers.checks import OVERFLOW, refuse_states_without_gradient, refuse_worlds
from warpbots.solvers.mass_spring import rest_lengths
from warpbots.solvers.mass_spring.build import build
from warpbots.solvers.mass_spring.constraints import (
    adj_end_restrain_kernel,
    end_restrain_kernel,
)
from warpbots.solvers.mass_spring.integrators import SCHEMES, Scheme
from warpbots.solvers.mass_spring.modal_analysis import frequency_limit, highest_frequency
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.motors import fastest_decay
from warpbots.solvers.mass_spring.obstacle_contact import stop_kernel, touch_kernel
from warpbots.solvers.mass_spring.stage_forces import add_forces, adj_forces
from warpbots.solvers.mass_spring.stages import adj_end_kernel, adj_stage_kernel, end_kernel, stage_kernel

__all__ = ["MassSpring"]

_LATTICES = ("voxel", "random")


@dataclasses.dataclass(frozen=True)
class MassSpring:
    """Lattices of masses and Hookean springs, explicit, in 2D and 3D (Clay et al., Cronos).

    Springs are a material of their own: they have a body's Young's modulus and Poisson's ratio 1/4, and at large strain
    a law of their own in the place of the one that its material names.

    Attributes:
        margin: Part of the stability bound that is safe for matter in motion, too [1]; stretch and impacts take the
            rest, as measured on robots and on cubes that fall.
        lost_gradient: How gradients can stop being finite within a step, and what helps.
        spacing: Distance between neighbouring masses [m].
        lattice: ``"voxel"``, boxes with the diagonals of their faces and their own, or ``"random"``, quasi-uniform
            points joined by tetrahedra.
        integrator: ``"euler"`` (semi-implicit), ``"verlet"`` or ``"rk4"``.
        damping: Time of Kelvin-Voigt damping of all springs [s], on top of that of their materials: lattices have no
            losses of their own and ring.
        drag: Force against the velocity per mass [1/s]; 0 for none.
        contact_stiffness: Pressure with which obstacles resist, per depth [Pa/m]; a mass of volume V feels it on an
            area of V^(2/3) (in 2D V^(1/2)). 0 for surfaces that give way to nothing: true to hard ground, but a foot
            then stops in a single step and gradients through many contacts are rough; for training choose a stiffness
            at which the robot sinks in by millimetres.
        contact_damping: By how much the pressure of such a surface grows per speed of approach, and falls per speed of
            parting [s/m]; things that fall on it at speed v come off with about v (1 - 2/3 contact_damping v). 0 for
            none.
        collision: Stiffness with which masses, of one body or of several, keep 0.9 of the distance to their nearest
            neighbour at rest, in mean stiffnesses of their springs [1]: 1 stands slow contact, 4 an impact at a tenth
            of the speed of sound. 0 for masses that pass through one another.
        seed: Seed of a random lattice.

    Raises:
        ValueError: A value is outside its range.
    """

    margin: ClassVar[float] = 0.6
    lost_gradient: ClassVar[str] = OVERFLOW

    spacing: float
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
        if self.spacing <= 0.0:
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
        """The table of the integrator."""
        return SCHEMES[self.integrator]

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> MassSpringModel:
        """Fill the bodies of `scene` with masses and springs.

        Raises:
            SceneError: The scene cannot be simulated by masses and springs; the message says why.
            ValueError: `worlds` is below 1.
        """
        refuse_worlds("MassSpring", worlds)
        options = {f: v for f, v in dataclasses.asdict(self).items() if f not in ("integrator", "contact_damping")}
        return build(scene, worlds, wp.get_device(device), self.scheme.stages, **options)

    def state(self, model: MassSpringModel, requires_grad: bool = False) -> MassSpringState:
        """Fresh arrays: every mass at its rest position with the initial velocity of its body, at time 0."""

        def tiled(values: np.ndarray) -> wp.array:
            values = np.tile(values.astype(real_numpy), (model.worlds, 1, 1))
            return wp.array(values, dtype=vector(model.dim), device=model.device, requires_grad=requires_grad)

        def zeros(shape: int | tuple, dtype: type = real) -> wp.array:
            return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

        worn = (model.worlds, len(model.lattice.ends) if model.wears else 0)
        return MassSpringState(
            tiled(model.lattice.position), tiled(model.lattice.velocity), zeros(model.worlds, wp.float64),
            zeros(worn), zeros(worn),
        )  # fmt: skip

    def max_time_step(self, model: MassSpringModel, enough: float = math.inf) -> float:
        """Stability bound [s]: s / w_max with the highest natural frequency w_max of the lattice at rest.

        s is where the scheme leaves the unit circle at the damping ratio z of that frequency: 2 for semi-implicit Euler
        and Verlet without damping and 2 (sqrt(1 + z^2) - z) with it, 2 sqrt 2 for Runge and Kutta without. A surface of
        stiffness K against a mass m adds K / m to w_max^2, collisions and cables of stiffness K add 4 K / m. A motor of
        torque T and speed w between moments of inertia I_0 and I_1 is stable up to 2 / (T / w (1 / I_0 + 1 / I_1)).

        Where a cheap upper limit of w_max gives more than `enough`, that is returned.
        """
        bound = self._bound(model, *frequency_limit(model))
        return bound if bound > enough else self._bound(model, *highest_frequency(model))

    def _bound(self, model: MassSpringModel, omega: float, ratio: float) -> float:
        contact = model.contact.numpy() / model.mass.numpy()
        stiffest = float(contact.max()) if model.scene.obstacles else 0.0
        if model.scratch.cable_count:  # a mass in the middle feels both parts of its cable, on both sides
            stiffest += 4.0 * float(model.cables.stiffness.numpy().max() / model.mass.numpy().min())
        if model.collides:  # from two sides at once
            stiffest += 4.0 * float((model.collision.numpy() / model.mass.numpy()).max())
        fastest = math.sqrt(omega**2 + stiffest)
        bound = self.scheme.stable_step(ratio) / fastest if fastest else math.inf
        if model.torque.size:
            torque, speed = model.torque.numpy(), model.speed.numpy()
            bound = min(bound, 2.0 / fastest_decay(model.lattice, model.motors, torque, speed))
        return bound

    def diagnose(self, model: MassSpringModel, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step on from `before`, is not finite: field, index, cause.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the bad state.
            dt: Length of the step [s].
        """
        moved = {name: np.isfinite(after[name]).all(axis=-1) for name in ("position", "velocity")}
        passed = np.isfinite(before["position"]).all(axis=-1) & moved["velocity"] & ~moved["position"]
        if passed.any():
            w, i = (int(k) for k in np.argwhere(passed)[0])
            x = before["position"][w, i : i + 1].astype(np.float64)
            obstacle = min(model.scene.obstacles, key=lambda o: abs(float(signed_distance(o.shape, x)[0])))
            return (
                f"mass {i} of {model.scene.bodies[model.lattice.body[i]].name!r} in world {w} passes through the "
                f"obstacle {obstacle.name!r} and would come out on the far side: use a thicker obstacle, a higher "
                f"contact_stiffness (this one is {self.contact_stiffness:g} Pa/m, 0 gives way to nothing) or more "
                f"substeps (this one has {dt:.3g} s, in which the mass moves "
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
        return "time is not finite: the state that the motion started from was not"

    def step(
        self, model: MassSpringModel, state: MassSpringState, control: wp.array, state_out: MassSpringState, dt: float
    ) -> None:
        """Advance by `dt` [s]; records its adjoint on the active tape.

        Args:
            model: From `build`.
            state: Where to start; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: Where to write; different arrays from `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is wanted but the states have no room for it.
        """
        force = model.scratch.force(state_out)
        for stage in range(self.scheme.stages):
            self._stand(model, state, control, force, force, stage, dt)
            if model.wears:
                if stage == 0:
                    rest_lengths.wear(model, state, state_out)
                rest_lengths.worn(model, state_out)
            add_forces(model, control, state_out, self._of_stage(model, force, stage))
        touches = bool(model.scene.obstacles)
        ended = state_out.moving()[:2]
        self._end(model, state, force, [*(model.scratch.free if touches else ended), state_out.time], dt)
        if touches:
            inputs = self._touch_inputs(model, state, model.friction, 1, dt)
            launch(self._touch_kernel(model), model.scratch.masses, inputs, ended, model.device)
            if not all(isinstance(o.shape, HalfSpace) for o in model.scene.obstacles):
                half = real(0.5 * least_thickness(model.dim, self.spacing))
                inputs = [model.obstacles, half, state.position.flatten()]
                launch(stop_kernel(model.dim), model.scratch.masses, inputs, ended[:1], model.device)
        if model.held.size:
            inputs = [*model.constraints, state.position.flatten()]
            launch(end_restrain_kernel(model.dim), (model.worlds, model.held.size), inputs, ended, model.device)
        parameters = model.parameter_arrays()
        reads = [*state.fields(), control, *parameters]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def _end(self, model: MassSpringModel, state: MassSpringState, force: wp.array, ended: list, dt: float) -> None:
        """Where the step ends if nothing stops the masses: `ended` is position, velocity and time."""
        inputs = [*self._end_scheme(model, dt), *state.moving(), force]
        launch(end_kernel(model.dim, self.scheme.stages), model.scratch.masses, inputs, ended, model.device)

    def _end_scheme(self, model: MassSpringModel, dt: float) -> list:
        weights = [_weights(dt * dt, self.scheme.p), _weights(dt, self.scheme.q)]
        return [model.mass.flatten(), len(model.lattice), real(dt), *weights]

    def _stand(
        self,
        model: MassSpringModel,
        state: MassSpringState,
        control: wp.array,
        force: wp.array,
        force_out: wp.array,
        stage: int,
        dt: float,
    ) -> None:
        """Where a stage stands, its forces but for the springs, and the lengths at rest there."""
        scratch = model.scratch
        outputs = [scratch.x, scratch.v, force_out]
        inputs = self._stage_inputs(model, state, force, stage, dt)
        launch(stage_kernel(model.dim, stage), model.scratch.masses, inputs, outputs, model.device)
        if model.driven:
            rest_lengths.drive(model, state, control, self.scheme.c[stage] * dt)

    def _of_stage(self, model: MassSpringModel, force: wp.array, stage: int) -> wp.array:
        """The part of the forces of all stages that belongs to one."""
        n = model.scratch.masses
        return force[stage * n : (stage + 1) * n]

    def _stage_inputs(
        self, model: MassSpringModel, state: MassSpringState, force: wp.array, stage: int, dt: float
    ) -> list:
        moving = _flat([state.position, state.velocity])
        masses = _flat([model.mass, model.drag, model.load, model.gravity])
        return [*masses, len(model.lattice), *self._stage_scheme(stage, dt), *moving, force]

    def _stage_scheme(self, stage: int, dt: float) -> list:
        scheme, h = self.scheme, dt
        return [real(scheme.c[stage] * h), _weights(h * h, scheme.A[stage]), _weights(h, scheme.B[stage])]

    def _touch_kernel(self, model: MassSpringModel) -> wp.Kernel:
        return touch_kernel(model.dim, len(model.scene.obstacles), self.scheme.stages)

    def _touch_inputs(
        self, model: MassSpringModel, state: MassSpringState, friction: wp.array, copies: int, dt: float
    ) -> list:
        scheme = self.scheme
        return [
            model.mass.flatten(), model.contact, real(self.contact_damping), model.obstacles, friction,
            len(model.lattice), copies, real(scheme.c[0] * dt), real(dt * sum(scheme.p)), real(dt),
            *_flat([state.position, state.velocity]), *model.scratch.free,
        ]  # fmt: skip

    def _step_adjoint(
        self, model: MassSpringModel, state: MassSpringState, control: wp.array, state_out: MassSpringState, dt: float
    ) -> None:
        """Gradients of `step` from those of `state_out`: its end, then its stages backwards."""
        refuse_states_without_gradient("MassSpring", state=state.fields(), state_out=state_out.fields())
        scratch, n, device = model.scratch, model.scratch.masses, model.device
        force, force_adj = scratch.force(state_out), scratch.force_adj
        moving_adj = _flat([state.position.grad, state.velocity.grad])
        mass_adj, drag_adj, load_adj = (
            None if a.grad is None else a.grad.flatten() for a in (model.mass, model.drag, model.load)
        )
        copies = scratch.copies
        gravity_adj = copies.gradient("gravity", model.gravity)
        ended_adj = [a.grad.flatten() for a in (state_out.position, state_out.velocity, state_out.time)]
        if model.held.size:
            ended_adj[:2] = self._end_restrain_adjoint(model, ended_adj[:2], moving_adj[0])
        if model.scene.obstacles:
            ended_adj[:2] = self._touch_adjoint(model, state, state_out, force, mass_adj, moving_adj, ended_adj[:2], dt)
        launch(
            adj_end_kernel(model.dim, self.scheme.stages), n,
            [*self._end_scheme(model, dt), force, *ended_adj],
            [mass_adj, *moving_adj, state.time.grad, force_adj], device,
        )  # fmt: skip
        if model.wears:
            copy(scratch.plastic_adj, state_out.plastic.grad)
            copy(scratch.broken_adj, state_out.broken.grad)
        for stage in reversed(range(self.scheme.stages)):
            self._stand(model, state, control, force, scratch.spare, stage, dt)
            scratch.x_adj.zero_()
            scratch.v_adj.zero_()
            if model.driven:
                scratch.rest_length.grad.zero_()
            if model.wears:
                rest_lengths.worn(model, state_out)
                scratch.worn_length.grad.zero_()
            adj_forces(model, control, state_out, self._of_stage(model, force_adj, stage))
            if model.wears:
                rest_lengths.worn_adjoint(model, state_out)
                if stage == 0:
                    rest_lengths.wear_adjoint(model, state, state_out)
            if model.driven:
                rest_lengths.drive_adjoint(model, state, control, self.scheme.c[stage] * dt)
            launch(
                adj_stage_kernel(model.dim, stage), n,
                [
                    *_flat([model.mass, model.drag, model.gravity]), len(model.lattice), copies.count,
                    *self._stage_scheme(stage, dt), scratch.v, force, scratch.x_adj, scratch.v_adj,
                ],
                [mass_adj, drag_adj, load_adj, gravity_adj, *moving_adj, force_adj], device,
            )  # fmt: skip
        copies.collect("gravity", model.gravity)

    def _end_restrain_adjoint(
        self, model: MassSpringModel, ended_adj: list[wp.array], x_adj: wp.array
    ) -> list[wp.array]:
        """Gradients to position and velocity before constraints, from those after them."""
        before = model.scratch.ended_adj
        for own, array in zip(before, ended_adj, strict=True):
            copy(own, array)
        launch(
            adj_end_restrain_kernel(model.dim), (model.worlds, model.held.size), model.constraints, [x_adj, *before],
            model.device,
        )  # fmt: skip
        return before

    def _touch_adjoint(
        self,
        model: MassSpringModel,
        state: MassSpringState,
        state_out: MassSpringState,
        force: wp.array,
        mass_adj: wp.array | None,
        moving_adj: list[wp.array],
        ended_adj: list[wp.array],
        dt: float,
    ) -> list[wp.array]:
        """Gradients to position and velocity at the end of the free step, from those to the end of the step."""
        free, free_adj = model.scratch.free, model.scratch.free_adj
        self._end(model, state, force, [*free, model.scratch.free_time], dt)
        for array in free_adj:
            array.zero_()
        copies = model.scratch.copies.wanted(model.friction)
        friction = copies.values("friction", model.friction)
        launch_adjoint(
            self._touch_kernel(model), model.scratch.masses,
            self._touch_inputs(model, state, friction, copies.count, dt), state_out.moving()[:2],
            [
                mass_adj, None, None, obstacle_arrays(model.dim)(), copies.gradient("friction", model.friction),
                *[None] * 5, *moving_adj, *free_adj,
            ],
            ended_adj, model.device,
        )  # fmt: skip
        copies.collect("friction", model.friction)
        return free_adj


def _weights(factor: float, row: tuple[float, ...]) -> NODE:
    """Up to four weights of a scheme times a power of the step."""
    return NODE(*(factor * w for w in row), *(0.0,) * (4 - len(row)))


def _flat(arrays: list[wp.array]) -> list[wp.array]:
    """All worlds in one row."""
    return [a.flatten() for a in arrays]
