"""Protocols of solvers, their models and their states; the rest of the package uses nothing else of a solver.

There is no base class: any class with the methods of `Solver`, whose models satisfy `Model`, is a solver. Optional
abilities have protocols of their own: `ChoosesCellSize`, `Cautious`, `Statics`, `Senses`, `SensesSteps`, `Grows`,
`MeasuresElements`, `Multibody` and `Reports`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import warp as wp

from warpbots.numerics.parameters import Parameter
from warpbots.scene import Scene
from warpbots.solvers.matter import Matter
from warpbots.solvers.places import Places
from warpbots.solvers.rest_strains import RestStrains
from warpbots.solvers.robot import Robot

__all__ = [
    "Cautious", "MeasuresElements", "Model", "Multibody", "Reports", "Senses", "SensesSteps", "ChoosesCellSize",
    "Solver", "State",
]  # fmt: skip


_Array_contra = TypeVar("_Array_contra", contravariant=True)
_Mapped_co = TypeVar("_Mapped_co", covariant=True)


class Model(Protocol):
    """The result of `Solver.build`: a frozen dataclass of Warp arrays.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies of the scene.
        device: Device of all arrays.
        scalar: Warp scalar type of control signals.
        matter: Soft bodies at rest, in the order of the second axis of field `position` of a state; None if the scene
            has no soft bodies.
        robot: Rigid bodies and their joints; None if the scene has no rigid bodies.
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
        """Places of the elements of the kind `per` (`Parameter.per`); None for a kind without places ("component")."""

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy in which `arrays`, by name of the parameter, replace the arrays of these parameters."""

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """A copy of the scene in which `values` are written to the records that can hold them without side effects.

        Other values are left out; the caller stores them in `Scene.fields`, see `warpbots.solvers.baking`.

        Args:
            values: Parameters by name, in the type of the arrays, each of shape (...) as in one world.
        """


class State(Protocol[_Array_contra, _Mapped_co]):
    """Everything that moves: a frozen dataclass whose fields are Warp arrays with a leading axis for the worlds.

    If the model has matter, the state has fields `position` [m] and `velocity` [m/s] of its points, shape (worlds, n,
    dim). If the model has a robot, the state has joint coordinates `q` [rad, m, or quaternions (x, y, z, w)] and joint
    velocities `qd` [rad/s or m/s], shapes (worlds, n_coordinates) and (worlds, n_velocities). All other fields depend
    on the solver.

    An optional field `lost`, shape (worlds,), is 1 for worlds that cannot go on. A step copies it. A simulation sets
    the entry of a world to 1 if the state of the world is not finite at the end of a control interval; the world then
    keeps its state from the start of this interval. If states have no such field, one such world ends the simulation
    of all worlds.
    """

    def mapped(self, make: Callable[[wp.array], _Array_contra]) -> _Mapped_co:
        """A copy in which each field is replaced by `make(field)`, such as a tensor for each array."""


@runtime_checkable
class Solver(Protocol[_Array_contra, _Mapped_co]):
    """A method of simulation. A solver has options only; all other data are in its model and state.

    Attributes:
        margin: Fraction of `max_time_step` that is safe for matter in motion [1].
        lost_gradient: Reason why a gradient can become infinite or NaN within a step, and the remedy, as the end of a
            sentence.
    """

    margin: ClassVar[float]

    @property
    def lost_gradient(self) -> str:
        """Reason why a gradient can become infinite or NaN within a step, and the remedy, as the end of a sentence."""

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> Model:
        """Make the model of a scene; raises if the solver cannot simulate the scene (no other method checks this).

        A simulation passes a scene without `fields`, and applies the fields to the parameters of the model afterwards.
        """

    def state(self, model: Any, requires_grad: bool = False) -> State[_Array_contra, _Mapped_co]:
        """Fresh arrays: the scene at rest, at time 0."""

    def step(self, model: Any, state: Any, control: wp.array, state_out: Any, dt: float) -> None:
        """Advance by `dt` [s]: launch kernels that read `state` and `control` and write all of `state_out`.

        The step records its adjoint on the active `wp.Tape`. The result depends on the arguments alone.

        Args:
            model: From `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: Receives the state at the end of the step; shares no arrays with `state`.
            dt: Time step [s].
        """

    def diagnose(self, model: Any, before: dict, after: dict, dt: float) -> str:
        """Explain in one sentence why the state `after` is not finite: the field, the index and the cause.

        Args:
            model: From `build`.
            before: Fields of the state before the step, by name, as NumPy arrays.
            after: Fields of the state after the step, which is not finite, by name.
            dt: Length of the step [s].
        """

    def max_time_step(self, model: Any, enough: float = math.inf) -> float:
        """Largest stable `dt` [s]; ``inf`` if the method is implicit. Solvers give the formula in their docstrings.

        Args:
            model: From `build`.
            enough: Time step that the caller needs [s]. If the bound is certainly larger, the method may return any
                value from `enough` to the bound.
        """


@runtime_checkable
class ChoosesCellSize(Protocol[_Array_contra, _Mapped_co]):
    """A solver that chooses a cell size for a scene if the user has not set one."""

    def sized(self, scene: Scene) -> "Solver[_Array_contra, _Mapped_co]":
        """A solver with a cell size, which `build` needs: this solver, or a copy with a cell size that fits `scene`.

        Solvers give the rule in their docstrings. The method is cheap, never raises because of the scene, and always
        gives the same size for the same scene.
        """


@runtime_checkable
class Cautious(Protocol):
    """A solver that can warn of a step that is stable but inaccurate."""

    def caution(self, model: Any, dt: float) -> str | None:
        """A sentence that says what is inaccurate with a step of `dt` [s], and the remedy; None if nothing is."""


@runtime_checkable
class DiagnosesGradients(Protocol):
    """A solver that records why the adjoint of a step has no result."""

    def gradient_diagnosis(self, model: Any, first: int, substeps: int) -> str | None:
        """Say in one sentence why the adjoint of a step had no result, and forget it; None if every adjoint had one.

        Called after a gradient that is not finite, before `lost_gradient`.

        Args:
            model: From `build`.
            first: Index of its first world in the simulation.
            substeps: Number of steps of a control interval.
        """


@runtime_checkable
class ChangesRestLengths(Protocol):
    """A model with actuators that change lengths of its elements at rest."""

    @property
    def rest_strains(self) -> RestStrains | None:
        """Largest strains of the elements at rest by actuators; None if there are none."""


@runtime_checkable
class Statics(Protocol):
    """A solver that can compute static equilibria, as fixed points of steps that start without motion."""

    def state(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays: the scene at rest, at time 0."""

    def equilibrium(
        self, model: Any, state: Any, control: np.ndarray, dt: float, steps: int, tolerance: float | None = None
    ) -> Any:
        """The state in static equilibrium, with a warning if it is unstable.

        Args:
            model: From `build`.
            state: State to start from.
            control: Control signals in [-1, 1], shape (worlds, channels).
            dt: Length of a step [s].
            steps: Largest number of steps.
            tolerance: Largest displacement of a point in the last step, in a unit that the solver defines; None for the
                default of the solver.

        Raises:
            RuntimeError: The steps do not converge to an equilibrium.
        """


@runtime_checkable
class Senses(Protocol):
    """A solver that computes readings from states, for observers and for pictures of rigid bodies."""

    def readings(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays for `sense`: a frozen dataclass of Warp arrays with a leading axis for the worlds.

        For a model with a robot, the fields include `position` [m], `rotation` [1] and `center` [m] of each body.
        """

    def sense(self, model: Any, state: Any, control: wp.array, readings_out: Any) -> None:
        """Compute the readings of a state; records the adjoint on the active tape.

        Args:
            model: From `build`.
            state: State to measure.
            control: Control signals in [-1, 1], shape (worlds, channels).
            readings_out: Arrays for the readings, from `readings`.
        """


@runtime_checkable
class SensesSteps(Protocol):
    """A solver that `Senses`, and that takes a step for some readings, such as forces on obstacles."""

    def without_steps(self) -> Self:
        """This solver, but whose readings take no steps; its models are the same."""


@runtime_checkable
class MeasuresElements(Protocol):
    """A model whose solver `Senses` stress or strain of the elements of soft bodies."""

    @property
    def measured_elements(self) -> Mapping[str, str]:
        """Kinds of elements (`Model.places`) to which readings belong, by reading: ``"stress"`` and ``"strain"``.

        A reading has the shape (worlds, n_elements), number or matrix.
        """


@runtime_checkable
class Grows(Protocol):
    """A solver whose models have arrays of fixed capacity, for example for contacts, which may become too small."""

    def grown(self, model: Any) -> Any | None:
        """A model with more capacity if a step of `model` exceeded its capacity, else None.

        Steps within the old capacity give the same bits with the new model. Results of a step that exceeded the
        capacity are wrong; the step has to be repeated with the new model.

        Args:
            model: From `build`.
        """


@runtime_checkable
class ChoosesByWorlds(Protocol):
    """A solver that chooses a method by the number of worlds."""

    def chosen(self, model: Any) -> "Solver":
        """This solver with the methods that it chose for a model, to build models of some of its worlds.

        Args:
            model: From `build`.
        """


@runtime_checkable
class Multibody(Protocol):
    """A solver of articulated rigid bodies that can evaluate the equations of motion M(q) a + bias(q, qd) = force."""

    def equations(self, model: Any, requires_grad: bool = False) -> Any:
        """Fresh arrays for `dynamics`: a frozen dataclass of Warp arrays with a leading axis for the worlds."""

    def dynamics(self, model: Any, state: Any, control: wp.array, dynamics_out: Any) -> None:
        """Evaluate the equations of motion at a state; records the adjoint on the active tape.

        Args:
            model: From `build`.
            state: State at which to evaluate the equations.
            control: Control signals in [-1, 1], shape (worlds, channels).
            dynamics_out: Arrays for the results, from `equations`.
        """


@runtime_checkable
class Reports(Protocol):
    """A solver with iterative steps that can report on the convergence of the last step."""

    def report(self, model: Any, dt: float) -> object:
        """Convergence of the last step, as a dataclass of NumPy arrays of shape (worlds, ...), and of numbers.

        Args:
            model: From `build`.
            dt: Length of the step [s].
        """
