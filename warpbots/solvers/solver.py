"""Interface of solvers, their models and their states: all that the rest of the package uses of them.

There is no base class: any class with the methods of `Solver`, whose models satisfy `Model`, is a solver. Optional
abilities have protocols of their own: `ChoosesCellSize`, `Senses`, `Multibody`, `Reports` and `Cautious`.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import warp as wp

from warpbots.scene import Scene
from warpbots.solvers.matter import Matter
from warpbots.solvers.places import Places
from warpbots.solvers.robot import Robot

__all__ = ["Cautious", "Model", "Multibody", "Parameter", "Reports", "Senses", "ChoosesCellSize", "Solver", "State"]


_Array_contra = TypeVar("_Array_contra", contravariant=True)
_Mapped_co = TypeVar("_Mapped_co", covariant=True)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of a model that can be differentiated and replaced.

    Attributes:
        unit: SI unit, as text.
        lower: Smallest value allowed (exclusive unless `inclusive`).
        upper: Largest value allowed (exclusive).
        inclusive: Whether `lower` itself is allowed.
        per: What the second axis counts, such as ``"particle"``, ``"spring"``, ``"obstacle"`` or ``"component"``; each
            word means one kind of element in a model.
        doc: Its meaning, in one line.
        intensive: Whether it is a property of the material at a place, such as a density, which any other element there
            has as well. A parameter that depends on the size of an element, such as a mass, is not intensive.
    """

    unit: str
    lower: float
    upper: float
    per: str
    doc: str
    inclusive: bool = False
    intensive: bool = False


class Model(Protocol):
    """The result of `Solver.build`: a frozen dataclass of Warp arrays.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        scalar: Warp scalar of control signals.
        matter: Soft bodies at rest, in the order of the second axis of a state's `position`; None without any.
        robot: Rigid bodies and their joints; None without any.
    """

    @property
    def scene(self) -> Scene:
        """The scene that was built."""

    @property
    def worlds(self) -> int:
        """Number of independent copies."""

    @property
    def device(self) -> wp.Device:
        """Device of all arrays."""

    @property
    def scalar(self) -> type:
        """Warp scalar of control signals."""

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator of the scene, in its order."""

    @property
    def matter(self) -> Matter | None:
        """Soft bodies at rest."""

    @property
    def robot(self) -> Robot | None:
        """Rigid bodies and their joints."""

    def summary(self) -> str:
        """Description of the discretised scene, in one line."""

    def parameters(self) -> dict[str, Parameter]:
        """Parameters that can be differentiated: name -> unit, range and meaning."""

    def places(self, per: str) -> Places | None:
        """Rest positions of the elements that `Parameter.per` counts; None if they have none, such as components."""

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy in which `arrays`, by name of the parameter, replace its own."""

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene, with as many of `values` in its records as these can hold without side effects.

        Values that the records cannot hold go into `Scene.fields`: see `warpbots.solvers.baking`.

        Args:
            values: Parameters by name, in the type of the arrays, each of shape (...) as in one world.
        """


class State(Protocol[_Array_contra, _Mapped_co]):
    """Everything that moves: a frozen dataclass whose fields are Warp arrays with a leading axis for the worlds.

    Where a model has matter, its points have `position` [m] and `velocity` [m/s], shape (worlds, n, dim). Where it has
    a robot, `q` [rad, m, or quaternions (x, y, z, w)] and `qd` [rad/s or m/s] are its joint coordinates and velocities,
    shapes (worlds, n_coordinates) and (worlds, n_velocities). All other fields depend on the solver.

    A field `lost`, shape (worlds,), is 1 for worlds that cannot go on. A step carries it over. A simulation sets it
    where a state is not finite at the end of a control interval; the world then keeps its state from before this
    interval. Without this field one such world ends the simulation of all.
    """

    def mapped(self, make: Callable[[wp.array], _Array_contra]) -> _Mapped_co:
        """A copy with `make` of each field, such as a tensor for each array."""


@runtime_checkable
class Solver(Protocol[_Array_contra, _Mapped_co]):
    """A method of simulation. A solver holds options only; everything else is in its model and state.

    Attributes:
        margin: Fraction of `max_time_step` that stays safe for matter in motion [1].
        lost_gradient: Why gradients can stop being finite within a step, and the remedy, as the end of a sentence.
    """

    margin: ClassVar[float]

    @property
    def lost_gradient(self) -> str:
        """Why gradients can stop being finite within a step, and the remedy, as the end of a sentence."""

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> Model:
        """Turn a scene into arrays; the only place that refuses what this solver cannot simulate.

        A simulation passes a scene without `fields`; it applies the fields to the parameters of the model afterwards.
        """

    def state(self, model: Any, requires_grad: bool = False) -> State[_Array_contra, _Mapped_co]:
        """Fresh arrays: the scene at rest, at time 0."""

    def step(self, model: Any, state: Any, control: wp.array, state_out: Any, dt: float) -> None:
        """Advance by `dt` [s]: launch kernels that read `state` and `control` and write all of `state_out`.

        Records its adjoint on the active `wp.Tape`. No hidden state changes the result.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: State at the end of the step; its arrays differ from those of `state`.
            dt: Time step [s].
        """

    def diagnose(self, model: Any, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step after `before`, is not finite: the field, the index, the cause.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the bad state.
            dt: Length of the step [s].
        """

    def max_time_step(self, model: Any, enough: float = math.inf) -> float:
        """Largest stable `dt` [s], with its formula in the docstring; ``inf`` where the method is implicit.

        Args:
            model: From `build`.
            enough: Time step that the caller needs [s]: if the bound is surely larger, any value between the two may be
                returned.
        """


@runtime_checkable
class ChoosesCellSize(Protocol[_Array_contra, _Mapped_co]):
    """A solver that chooses the cell size for a scene if it was given none."""

    def sized(self, scene: Scene) -> "Solver[_Array_contra, _Mapped_co]":
        """The solver with all numbers that `build` needs: itself, or a copy with a cell size that follows from `scene`.

        The docstring states the rule. The method is cheap, refuses nothing, and gives the same size every time.
        """


@runtime_checkable
class Cautious(Protocol):
    """A solver that can warn of a step that is stable but inaccurate."""

    def caution(self, model: Any, dt: float) -> str | None:
        """What a step of `dt` [s] computes wrongly, and the remedy, in one sentence; None if nothing."""


@runtime_checkable
class Statics(Protocol):
    """A solver that finds the static equilibrium, as the fixed point of its steps without motion."""

    def state(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays: the scene at rest, at time 0."""

    def equilibrium(
        self, model: Any, state: Any, control: np.ndarray, dt: float, steps: int, tolerance: float | None = None
    ) -> Any:
        """The state in static equilibrium.

        Args:
            model: From `build`.
            state: State to start from.
            control: Control signals in [-1, 1], shape (worlds, channels).
            dt: Length of a step [s].
            steps: Largest number of steps.
            tolerance: Largest motion of a point in the last step, in the solver's own unit; None for its default.

        Raises:
            RuntimeError: The steps do not converge to an equilibrium.
        """


@runtime_checkable
class Senses(Protocol):
    """A solver that measures states, for observers and pictures of rigid bodies."""

    def readings(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays for `sense`: a frozen dataclass of Warp arrays with a leading axis for the worlds.

        For a model with a robot they include `position` [m], `rotation` [1] and `center` [m] of each body.
        """

    def sense(self, model: Any, state: Any, control: wp.array, readings_out: Any) -> None:
        """Measure a state; records its adjoint on the active tape.

        Args:
            model: From `build`.
            state: State to measure.
            control: Control signals in [-1, 1], shape (worlds, channels).
            readings_out: Readings to write, from `readings`.
        """


@runtime_checkable
class Grows(Protocol):
    """A solver whose models have arrays of fixed capacity, such as for contacts, that a motion may exceed."""

    def grown(self, model: Any) -> Any | None:
        """The model with more capacity if one of its steps exceeded it, else None.

        Steps within the old capacity give the same bits with the new model. Worlds whose steps exceeded it are lost:
        these steps have to be taken again.

        Args:
            model: From `build`.
        """


@runtime_checkable
class Multibody(Protocol):
    """A solver of rigid bodies on joints that evaluates their equations of motion M(q) a + bias(q, qd) = force."""

    def equations(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays for `dynamics`: a frozen dataclass of Warp arrays with a leading axis for the worlds."""

    def dynamics(self, model: Any, state: Any, control: wp.array, dynamics_out: Any) -> None:
        """Evaluate the equations of motion at a state; records its adjoint on the active tape.

        Args:
            model: From `build`.
            state: State at which to evaluate the equations.
            control: Control signals in [-1, 1], shape (worlds, channels).
            dynamics_out: Equations to write, from `equations`.
        """


@runtime_checkable
class Reports(Protocol):
    """A solver whose steps are iterative."""

    def report(self, model: Any, dt: float) -> object:
        """Convergence of the last step, as a dataclass of NumPy arrays.

        Args:
            model: From `build`.
            dt: Length of the step [s].
        """
