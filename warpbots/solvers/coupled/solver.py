"""The solver `Coupled`: matter by one solver and rigid bodies by another, in one scene."""

import dataclasses
import math
from typing import Any

import numpy as np
import warp as wp

from warpbots.near_names import names_arguments
from warpbots.numerics import copy, record, warp_device
from warpbots.scene import Scene
from warpbots.scene.field_types import conform
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.coupled.body_step import BodyStep
from warpbots.solvers.coupled.build import build
from warpbots.solvers.coupled.compositions import composition_of
from warpbots.solvers.coupled.impossible_motions import end_worlds, impossible_motion, squeezed
from warpbots.solvers.coupled.measurements import readings, sense
from warpbots.solvers.coupled.model import CoupledModel
from warpbots.solvers.coupled.readings import CoupledReadings
from warpbots.solvers.coupled.scene_parts import matter_of
from warpbots.solvers.coupled.sinking import sinking
from warpbots.solvers.coupled.states import CoupledState
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.mpm import MPM
from warpbots.solvers.scene_support import refuse_states_without_gradient, refuse_worlds
from warpbots.solvers.solver import Cautious

__all__ = ["Coupled"]


@names_arguments
@dataclasses.dataclass(frozen=True)
class Coupled:
    """Matter and rigid bodies in one scene: two solvers that exchange impulses in every step.

    Examples: ``wb.Coupled(wb.MPM(0.01), wb.Articulated())``, ``wb.Coupled(wb.MassSpring(0.01), wb.Articulated())``.

    A particle of MPM touches a rigid body if it reaches its surface with half its width, a mass of a lattice if it is
    inside the body. The impulse of such a point on the body follows from Coulomb's law for the velocities of both at
    the end of the step, of a particle at the surface below it; the step of the rigid bodies solves for these
    velocities. So the exchange is stable at every ratio of masses, and conserves momentum and angular momentum of both
    together (docs/design/coupling.md). The coefficient of friction is the mean of the coefficients of the soft and of
    the rigid body. Contacts of rigid bodies with each other and with obstacles are those of `Articulated`.

    A rigid body that reaches into a lattice, deeper than bodies in contact, binds the masses in it: they move with the
    body, and act on it with their inertia and the forces of their springs. Under MPM such a scene is refused.

    A world ends, with a sentence, in the step in which a rigid body moves more than a cell or the distance of masses, a
    point of matter is half of that inside a rigid body, or away from its place in the body to which it is bound, or
    obstacles meet at a rigid body.

    Attributes:
        matter: Solver of the soft bodies.
        bodies: Solver of the rigid bodies. Without a choice of its integrator, that is ``"sdirk2"`` beside MPM and
            ``"bdf1"`` beside masses and springs, into which bodies at rest sink under ``"sdirk2"``.
    """

    matter: MPM | MassSpring
    bodies: Articulated = dataclasses.field(default_factory=Articulated)

    def __post_init__(self):
        conform(self)
        if self.bodies.integrator is None:
            chosen = dataclasses.replace(self.bodies, integrator=composition_of(self.matter).integrator)
            object.__setattr__(self, "bodies", chosen)

    @property
    def margin(self) -> float:
        """Longest safe step for matter in motion, divided by the stability bound [1]."""
        return self.matter.margin

    @property
    def lost_gradient(self) -> str:
        """A text that says why gradients can become infinite or NaN within a step, and how to prevent this."""
        return self.matter.lost_gradient

    def sized(self, scene: Scene) -> "Coupled":
        """The solver with the cell size that the solver of the matter chooses for the soft bodies."""
        return dataclasses.replace(self, matter=self.matter.sized(matter_of(scene))) if scene.soft else self

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> CoupledModel:
        """Build the models of the soft and of the rigid bodies.

        Raises:
            SceneError: The scene cannot be simulated by both solvers together; the message says why.
            ValueError: `worlds` is below 1, the cell size is None, or the exchange does not take the integrator of the
                matter.
        """
        refuse_worlds("Coupled", worlds)
        return build(scene, self.matter, self.bodies, worlds, warp_device(device))

    def state(self, model: CoupledModel, requires_grad: bool = False) -> CoupledState[wp.array]:
        """A new state: matter at rest with its initial velocities, and joints at their start."""
        soft = self.matter.state(model.soft, requires_grad)
        rigid = self.bodies.state(model.rigid, requires_grad)
        return composition_of(self.matter).state(*soft.fields(), rigid.q, rigid.qd, rigid.last_step)

    def max_time_step(self, model: CoupledModel, enough: float = math.inf) -> float:
        """Stability bound of the matter [s]; the rigid bodies and the exchange have none.

        Args:
            model: From `build`.
            enough: Time step that the caller needs [s].
        """
        return self.matter.max_time_step(model.soft, enough)

    def caution(self, model: CoupledModel, dt: float) -> str | None:
        """Warnings of the solver of the matter, of the solver of the rigid bodies and of both together; None without.

        Args:
            model: From `build`.
            dt: Length of a step [s].
        """
        own = self.matter.caution(model.soft, dt) if isinstance(self.matter, Cautious) else None
        both = None if composition_of(self.matter).relaxes else sinking(model.scene, model.bound, self.bodies)
        scene, constrained = model.scene, {c.region for c in model.scene.constraints}
        held = tuple(body for body in scene.soft if constrained & body.regions.keys())
        return "; ".join(filter(None, (own, self.bodies.caution(model.rigid, dt, scene.soft, held), both))) or None

    def diagnose(self, model: CoupledModel, before: dict, after: dict, dt: float) -> str:
        """One sentence that says why `after`, the state one step after `before`, is not finite.

        Args:
            model: From `build`.
            before: Fields of the state before the step, as NumPy arrays.
            after: Fields of the state that is not finite, as NumPy arrays.
            dt: Length of the step [s].
        """
        joints = [self._of_bodies(model, f) for f in (before, after)]
        if all(np.isfinite(values).all() for values in before.values()):
            if closed := self.bodies.closed(model.rigid, *joints, dt):
                return closed
            if said := impossible_motion(model, self.bodies, before, dt):
                return said
        own, further = [{n: f[n] for n in f if n not in ("q", "qd", "last_step")} for f in (before, after)]
        if all(np.isfinite(values).all() for values in further.values()):
            return self.bodies.diagnose(model.rigid, *joints, dt)
        said = self.matter.diagnose(model.soft, own, further, dt)
        return said + squeezed(model, self.bodies, before, after)

    @staticmethod
    def _of_bodies(model: CoupledModel, fields: dict) -> dict:
        frames, worlds = model.rigid.frames, len(fields["q"])
        time = fields["time"] if frames else np.zeros((worlds, 0))
        named = {"q": fields["q"], "qd": fields["qd"], "time": time, "travel": fields["travel"][:, : frames.drives]}
        return named | {"last_step": fields["last_step"], "lost": np.zeros(worlds)}

    def step(
        self, model: CoupledModel, state: CoupledState, control: wp.array, state_out: CoupledState, dt: float
    ) -> None:
        """Advance `state` by `dt` [s] and write the result to `state_out`; records the adjoint on the active tape.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: State at the end of the step; it must not share arrays with `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is recorded, but a state has no arrays for gradients.
        """
        model.load(control)
        exchange = self._exchange(model, state, state_out, dt)
        composition = composition_of(self.matter)
        composition.step(self.matter, model.soft, state, model.workspace.matter_control, state_out, dt, exchange)
        end_worlds(model, state_out)
        copy(state_out.lost, state.lost)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def _exchange(self, model: CoupledModel, state: CoupledState, state_out: CoupledState, dt: float) -> Any:
        points = model.exchanges.step(state_out, keep=state_out.position.requires_grad)
        start, end = model.bodies_state(state), model.bodies_end(state_out)
        bodies = BodyStep(model, self.bodies, start, model.workspace.body_control, end, dt, points)
        return composition_of(self.matter).exchange(bodies, state)

    def _step_adjoint(
        self, model: CoupledModel, state: CoupledState, control: wp.array, state_out: CoupledState, dt: float
    ) -> None:
        refuse_states_without_gradient("Coupled", state=state.fields(), state_out=state_out.fields())
        model.load(control)
        model.clear_load_gradients()
        exchange = self._exchange(model, state, state_out, dt)
        composition = composition_of(self.matter)
        composition.step_adjoint(
            self.matter, model.soft, state, model.workspace.matter_control, state_out, dt, exchange
        )
        model.adj_load(control)

    def readings(self, model: CoupledModel, requires_grad: bool = False) -> CoupledReadings[wp.array]:
        """New arrays to which `sense` can write."""
        return readings(self.matter, model, requires_grad)

    def sense(self, model: CoupledModel, state: CoupledState, control: wp.array, readings_out: Any) -> None:
        """Measure energies, momenta, strain, stress and forces on obstacles, and poses of rigid bodies.

        Records the adjoint on the tape.

        Args:
            model: From `build`.
            state: State to measure.
            control: Control signals, shape (worlds, channels).
            readings_out: Arrays that receive the measurements, from `readings`.

        Raises:
            RuntimeError: A gradient is recorded, but an array has no array for its gradient.
        """
        sense(self.matter, self.bodies, model, state, control, readings_out)
