"""The articulated solver: one implicit step of rigid bodies in reduced coordinates, and its adjoint."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.near_names import names_arguments
from warpbots.numerics import copy, launch_own_adjoint, record, warp_device
from warpbots.scene import Scene, SceneError, SoftBody
from warpbots.scene.field_types import conform
from warpbots.solvers.articulated.build import build
from warpbots.solvers.articulated.contact_time_step import unresolved
from warpbots.solvers.articulated.deep_starts import starts_deep
from warpbots.solvers.articulated.doubtful_joints import warn_of_joints
from warpbots.solvers.articulated.dynamics import Dynamics, dynamics, equations
from warpbots.solvers.articulated.exchange_step import ExchangeStep
from warpbots.solvers.articulated.fast_obstacles import too_fast
from warpbots.solvers.articulated.implicit_integrators import INTEGRATORS, Past
from warpbots.solvers.articulated.implicit_step import kept_stages, past_of, solve_stages, solve_stages_adjoint
from warpbots.solvers.articulated.inertia import warn_of_overlaps
from warpbots.solvers.articulated.joints import BALL
from warpbots.solvers.articulated.limit_time_step import unresolved_limit
from warpbots.solvers.articulated.measurements import ArticulatedReadings, readings, sense
from warpbots.solvers.articulated.missing_laws import missing_law
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.newton import Options
from warpbots.solvers.articulated.penetration import deepest, met, stop_met
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.step_in_parts import step_in_parts, step_in_parts_adjoint
from warpbots.solvers.articulated.step_of_obstacles import StepOfObstacles
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.articulated.unresolved_swings import unresolved_swing
from warpbots.solvers.articulated.virtual_power import finish_kernel
from warpbots.solvers.articulated.weak_contacts import too_weak
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.hidden_friction import hidden_friction
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import OVERFLOW, refuse_states_without_gradient, refuse_worlds

__all__ = ["Articulated"]


@names_arguments
@dataclasses.dataclass(frozen=True)
class Articulated:
    """Implicit simulation of trees of rigid bodies with contact, in reduced coordinates (Xu et al. 2021, DiffHand).

    The solver always uses double precision, which stiff contact needs.

    Both integrators are one-step methods, so a control signal acts in full within its own interval.

    An impact is accurate if steps resolve its duration. With w = sqrt(k / m) for points of stiffness k [N/m] that carry
    a mass m [kg], an elastic impact under SDIRK2 loses or gains 0.1 % of its energy at steps of 0.1 / w, 2 % at 0.5 / w
    and 7 % at 1 / w. Under BDF1 the impact loses 27, 78 and 94 % at these steps. At steps above 2 / w an impact can
    gain energy under SDIRK2, but never under BDF1. A `Simulation` warns if the error exceeds a tenth. Laws with
    ``impact="instant"`` do not need short steps: the solver finds the time of an impact within a step, exactly for free
    flight under SDIRK2, otherwise to the order of the integrator.

    Attributes:
        margin: Longest safe step divided by the stability bound [1]; without effect, because implicit integrators have
            no stability bound.
        integrator: ``"sdirk2"`` (second order, two stages; Alexander 1977) or ``"bdf1"`` (implicit Euler, first order,
            at half the cost; contact never gains energy). None for ``"sdirk2"``, and beside masses and springs
            (`Coupled`) for ``"bdf1"``.
        tolerance: Size of a correction of Newton's method below which a stage has converged [m or rad]. Where soft
            bodies press on rigid bodies (`Coupled`), a stage goes on until rounding errors end it.
        max_iterations: Largest number of iterations of Newton's method in a stage.
        samples: Number of samples along the longest edge of a solid without a closed form, such as a mesh.
        rounding: Radius with which edges of boxes and rims of cylinders are rounded where contact points of other
            bodies touch them, divided by the smallest half edge [1]. At depths below this radius, a contact force does
            not jump when another face becomes the nearest. The contact points of the rounded shapes do not move. Boxes
            in contact with boxes are not rounded, because their edges touch each other.
        room: Distance by which designs may grow beyond the bounds of a solid without a closed form [m]; the samples of
            the solid extend beyond its bounds by the same distance. See `warpbots.design`.
        impacts: Largest number of instant impacts within a step, counting simultaneous impacts once; contacts that
            begin later in the same step are compliant.

    Raises:
        ValueError: A value is outside its range.
    """

    margin: ClassVar[float] = 1.0

    integrator: str | None = None
    tolerance: float = 1e-9
    max_iterations: int = 500
    samples: int = 48
    rounding: float = 0.05
    room: float = 0.0
    impacts: int = 3

    def __post_init__(self):
        conform(self)
        if self.integrator == "bdf2":
            raise ValueError(
                "Articulated: integrator 'bdf2' is no longer offered, because a formula of two steps gives 1.5 or 0.67 "
                "times the impulse of a control signal that jumps; use 'sdirk2', of second order and more accurate"
            )
        if self.integrator not in (None, *INTEGRATORS):
            raise ValueError(
                f"Articulated: integrator must be one of {', '.join(INTEGRATORS)}, got {self.integrator!r}"
            )
        if self.tolerance <= 0.0:
            raise ValueError(f"Articulated: tolerance must be positive [m or rad], got {self.tolerance:g}")
        if not 0.0 <= self.rounding < 1.0:
            raise ValueError(f"Articulated: rounding must be in [0, 1) [1], got {self.rounding:g}")
        if not 0.0 <= self.room < math.inf:
            raise ValueError(f"Articulated: room must be at least 0 [m], got {self.room:g}")
        if not 1 <= self.impacts <= 100:
            raise ValueError(f"Articulated: impacts must be in [1, 100], got {self.impacts}")
        if self.max_iterations < 1 or self.samples < 4:
            raise ValueError(
                f"Articulated: max_iterations must be at least 1 and samples at least 4, got {self.max_iterations} "
                f"and {self.samples}"
            )

    @property
    def used_integrator(self) -> str:
        """The integrator, or the one that is used without a choice."""
        return self.integrator or "sdirk2"

    @property
    def lost_gradient(self) -> str:
        """Text that explains why gradients can become infinite or NaN within a step, and how to prevent this."""
        return OVERFLOW

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> ArticulatedModel:
        """Build the model of the rigid bodies of `scene`.

        Raises:
            SceneError: The scene cannot be simulated as rigid bodies; the message says why.
            ValueError: `worlds` is below 1.
        """
        refuse_worlds("Articulated", worlds)
        if scene.dim == 2:
            raise SceneError(
                "Articulated cannot simulate this scene:\nScene: it is 2D; give its bodies shapes in 3D and joints of "
                f"kind 'free_2d', 'planar' or 'revolute', which keep them in a plane, {remedy(scene, 'Articulated')}"
            )
        return self.build_beside(scene, worlds, device)

    def build_beside(self, scene: Scene, worlds: int, device: wp.DeviceLike = None) -> ArticulatedModel:
        """Build the model of the rigid bodies of a scene beside matter, which may be 2D.

        Raises:
            SceneError: The scene cannot be simulated as rigid bodies.
        """
        warn_of_joints(scene)
        warn_of_overlaps(scene)
        return build(scene, worlds, warp_device(device), self.samples, self.rounding, self.room)

    def state(self, model: ArticulatedModel, requires_grad: bool = False) -> ArticulatedState[wp.array]:
        """New state in which every joint has its start coordinates and velocities."""

        def copies(values: np.ndarray | float) -> wp.array:
            return tiled(values, model.worlds, model.device, scalar, requires_grad)

        position, velocity = model.robot.start, model.robot.start_velocity
        time, last_step = (copies(0.0 if model.frames else np.zeros(0)) for _ in range(2))
        travel = copies(np.zeros(model.frames.drives))
        return ArticulatedState(copies(position), copies(velocity), time, travel, last_step, copies(0.0))

    def max_time_step(self, model: ArticulatedModel, enough: float = math.inf) -> float:
        """Infinity: both integrators are stable for every step."""
        return math.inf

    def caution(
        self, model: ArticulatedModel, dt: float, matter: tuple[SoftBody, ...] = (), held: tuple[SoftBody, ...] = ()
    ) -> str | None:
        """Warning that names the contact that steps of length `dt` resolve worst, and an obstacle that moves too fast.

        It also names a body that falls through an obstacle because there is no law of contact, or sinks into it because
        the law is too weak; a body that starts deep in what it touches; a joint whose swing or whose limits the steps
        do not resolve; and friction that a law hides. The result is None without any of them, and if the energy error
        of the contact is at most a tenth.

        Args:
            model: From `build`.
            dt: Length of a step [s].
            matter: Soft bodies beside the rigid ones, which may bear them.
            held: Those of them that a constraint holds.
        """
        self._place_obstacles(model, state := self.state(model))
        slow = unresolved(model, state, self.used_integrator, dt)
        found = slow, too_fast(model, dt), missing_law(model.scene, matter, held), too_weak(model)
        found = *found, starts_deep(model, state), unresolved_swing(model, dt)
        found = *found, unresolved_limit(model, self.used_integrator, dt)
        found = *found, None if matter else hidden_friction(model.scene)
        return "; ".join(filter(None, found)) or None

    def diagnose(self, model: ArticulatedModel, before: dict, after: dict, dt: float) -> str:
        """Explain in one sentence why a state is not finite.

        Args:
            model: From `build`.
            before: Fields of the state before the step, as NumPy arrays.
            after: Fields of the state after the step, which is not finite, as NumPy arrays.
            dt: Length of the step [s].
        """
        for name, values in before.items():
            if not np.isfinite(values).all():
                return f"{name} was not finite before the step"
        if ended := model.frames.diagnosis(before["time"], after["time"], dt):
            return ended
        if closed := self.closed(model, before, after, dt):
            return closed
        w = int(np.argwhere(~np.isfinite(after["qd"]).all(axis=-1))[0, 0])
        iterations = int(model.workspace.report.iterations.numpy()[w])
        correction = float(model.workspace.report.correction.numpy()[w])
        left = (
            "its equations are singular" if correction < 0.0 else f"the last correction was {correction:.3g} m or rad"
        )
        fast = _too_fast(model.robot, before["qd"][w], dt)
        state = self.state(model)
        for name, array in zip(before, state.fields(), strict=True):
            array.assign(before[name])
        self._place_obstacles(model, state)
        inside = deepest(model, state, w)
        remedy = f"; {inside}: start or move it outside, or remove that contact" if inside else ""
        softer = ", or softer or less viscous contacts" if model.scene.laws else ""
        if any(joint.limit_stiffness or joint.limit_damping for joint in model.robot.joints):
            softer += ", or joint limits with a smaller limit_stiffness or limit_damping"
        return (
            f"{fast}Newton's method did not converge in world {w}: after {iterations} iterations {left} (tolerance "
            f"{self.tolerance:g}){remedy}; use a shorter step (this one has {dt:.3g} s){softer}"
        )

    def step(
        self,
        model: ArticulatedModel,
        state: ArticulatedState,
        control: wp.array,
        state_out: ArticulatedState,
        dt: float,
    ) -> None:
        """Advance by `dt` [s], and record the adjoint on the active tape.

        A world in which the iteration does not converge gets NaN, which `warpbots.Simulation` reports.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], double precision, shape (worlds, channels).
            state_out: State at the end of the step; it must not share arrays with `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is recorded, but a state has no arrays for gradients.
        """
        self.advance(model, state, control, state_out, dt)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self.advance_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def advance(
        self,
        model: ArticulatedModel,
        state: ArticulatedState,
        control: wp.array,
        state_out: ArticulatedState,
        dt: float,
        exchange: ExchangeStep | None = None,
    ) -> None:
        """Advance by `dt` [s] like `step`, without recording the adjoint.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], double precision, shape (worlds, channels).
            state_out: State at the end of the step; it must not share arrays with `state`.
            dt: Time step [s].
            exchange: Points of matter that touch bodies in the step; None without matter. It receives the impulses.
        """
        obstacles = StepOfObstacles(model, self._method, state, control, dt)
        if model.impacts:
            step_in_parts(obstacles, self._options(model), state_out, self.impacts)
        else:
            end = model.workspace.end(state_out)
            past, after = self._past(state, dt), self._past(state_out, dt)
            solve_stages(model, self._options(model), past, after, end, control, obstacles, exchange=exchange)
        obstacles.end(state_out)
        if model.may_close:
            StepOfObstacles(model, self._method, state_out, control).place()
            stop_met(model, state_out)
        copy(state_out.lost, state.lost)

    def readings(self, model: ArticulatedModel, requires_grad: bool = False) -> ArticulatedReadings:
        """New arrays to which `sense` writes."""
        return readings(model, requires_grad)

    def sense(
        self, model: ArticulatedModel, state: ArticulatedState, control: wp.array, readings_out: ArticulatedReadings
    ) -> None:
        """Measure poses, velocities, energies, torques and contacts, and record the adjoint on the active tape.

        Args:
            model: From `build`.
            state: State to measure.
            control: Control signals, on which the torques depend, double precision, shape (worlds, channels).
            readings_out: Readings to which the measurement is written, from `readings`.

        Raises:
            RuntimeError: A gradient is recorded, but an array has no gradient.
        """
        sense(StepOfObstacles(model, self._method, state, control), readings_out)

    def equations(self, model: ArticulatedModel, requires_grad: bool = False) -> Dynamics:
        """New arrays to which `dynamics` writes."""
        return equations(model, requires_grad)

    def dynamics(
        self, model: ArticulatedModel, state: ArticulatedState, control: wp.array, dynamics_out: Dynamics
    ) -> None:
        """Evaluate the equations of motion at a state, and record the adjoint on the active tape.

        Args:
            model: From `build`.
            state: Coordinates and velocities.
            control: Control signals in [-1, 1], double precision, shape (worlds, channels).
            dynamics_out: Arrays to which the results are written, from `equations`.

        Raises:
            RuntimeError: A gradient is recorded, but an array has no gradient.
        """
        dynamics(StepOfObstacles(model, self._method, state, control), dynamics_out)

    def closed(self, model: ArticulatedModel, before: dict, after: dict, dt: float) -> str | None:
        """Sentence about obstacles that have met at a body at the end of a step; None without any.

        Args:
            model: From `build`.
            before: Fields of the state before the step, as NumPy arrays.
            after: Fields of the state after the step.
            dt: Length of the step [s].
        """
        if not (model.may_close and np.isfinite(after["qd"]).all()):
            return None
        state = self.state(model)
        end = after | {"time": before["time"] + dt}
        for name, array in zip(end, state.fields(), strict=True):
            array.assign(end[name])
        self._place_obstacles(model, state)
        return met(model, state)

    def _place_obstacles(self, model: ArticulatedModel, state: ArticulatedState) -> None:
        """Place the obstacles at a state; the poses do not depend on the control."""
        control = wp.zeros((model.worlds, model.channels), dtype=scalar, device=model.device)
        StepOfObstacles(model, self._method, state, control).place()

    @property
    def _method(self) -> int:
        return INTEGRATORS[self.used_integrator]

    def _options(self, model: ArticulatedModel) -> Options:
        options = Options()
        options.tolerance, options.limit, options.lanes = self.tolerance, self.max_iterations, lanes_of(model.device)
        return options

    def _past(self, state: ArticulatedState, dt: float) -> Past:
        return past_of(self._method, dt, state.q, state.qd)

    def advance_adjoint(
        self,
        model: ArticulatedModel,
        state: ArticulatedState,
        control: wp.array,
        state_out: ArticulatedState,
        dt: float,
        exchange: ExchangeStep | None = None,
    ) -> None:
        """Adjoint of `advance`: propagate the gradients of `state_out` to the state, the control and the model.

        With points of matter, it also propagates the gradients of their impulses.

        The adjoint of the end of the step comes first, then the adjoints of the stages, the last stage first.
        """
        refuse_states_without_gradient("Articulated", state=state.fields(), state_out=state_out.fields())
        obstacles = StepOfObstacles(model, self._method, state, control, dt)
        obstacles.adj_end(state_out)
        if model.impacts:
            step_in_parts_adjoint(obstacles, state_out, self.impacts)
            return
        end, past, after = model.workspace.end(state_out), self._past(state, dt), self._past(state_out, dt)
        stages = kept_stages(model, past.q, end)
        each = (model.worlds, model.tree.elements)
        launch_own_adjoint(finish_kernel, each, [model.tree, past, stages[1], after], model.device)
        solve_stages_adjoint(model, past, end, stages, control, obstacles, exchange=exchange)


def _too_fast(robot: ArticulatedRobot, velocity: np.ndarray, dt: float) -> str:
    """Text that names a ball joint that rotates by more than 1 rad in a step.

    Implicit Euler finds no solution for larger rotations.
    """
    for element in robot.elements:
        rate = float(np.linalg.norm(velocity[element.dof : element.dof + 3]))
        if element.kind == BALL and rate * dt > 1.0:
            return (
                f"joint {robot.joints[element.body].name!r} rotates at {rate:.3g} rad/s, by {rate * dt:.3g} rad "
                f"in a step, which must be below 1 rad; "
            )
    return ""
