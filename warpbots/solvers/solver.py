"""What a solver is. There is no base class: anything with these five methods is one."""

import dataclasses
import math
from typing import ClassVar, Protocol, runtime_checkable

import warp as wp

from warpbots.scene import Scene

__all__ = ["Cautious", "Model", "Parameter", "Solver", "State", "with_parameters"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of a model that can be differentiated and replaced.

    Attributes:
        unit: SI unit, for people.
        lower: Smallest value allowed (exclusive unless `inclusive`).
        upper: Largest value allowed (exclusive).
        inclusive: Whether `lower` itself is allowed.
        per: What the second axis counts, such as ``"particle"``, ``"spring"``, ``"obstacle"`` or ``"component"``.
        doc: One line: what it is.
    """

    unit: str
    lower: float
    upper: float
    per: str
    doc: str
    inclusive: bool = False


class Model(Protocol):
    """What `Solver.build` returns: a frozen dataclass of Warp arrays.

    Attributes:
        worlds: Number of independent copies.
        device: Device of all arrays.
        channels: Number of control channels.
        scalar: Warp scalar of control signals.
    """

    worlds: int
    device: wp.Device
    channels: int
    scalar: type

    def parameters(self) -> dict[str, Parameter]:
        """What can be differentiated: field name -> description."""


def with_parameters(model: Model, arrays: dict[str, wp.array]) -> Model:
    """A copy of a model with `arrays` in the place of its parameters, of which some may be those of its skeleton."""
    fields = {f.name for f in dataclasses.fields(model)}
    own = {name: array for name, array in arrays.items() if name in fields}
    bones = {name: array for name, array in arrays.items() if name not in fields}
    if bones:
        own["skeleton"] = dataclasses.replace(model.skeleton, **bones)
    return dataclasses.replace(model, **own)


class State(Protocol):
    """What moves: a frozen dataclass whose fields are Warp arrays with a leading axis for the worlds."""


class Solver(Protocol):
    """A method of simulation. A solver holds options only; everything else is in its model and state.

    Attributes:
        margin: Part of `max_time_step` that is safe for matter in motion, too [1].
        lost_gradient: How gradients can stop being finite within a step, and what helps, as the end of a sentence.
    """

    margin: ClassVar[float]
    lost_gradient: str

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> Model:
        """Turn a scene into arrays; the only place that refuses what this solver cannot simulate."""

    def state(self, model: Model, requires_grad: bool = False) -> State:
        """Fresh arrays: the scene at rest, at time 0."""

    def step(self, model: Model, state: State, control: wp.array, state_out: State, dt: float) -> None:
        """Advance by `dt` [s]: launch kernels that read `state` and `control` and write all of `state_out`.

        Records its adjoint on the active `wp.Tape`. No hidden state changes the result.

        Args:
            model: From `build`.
            state: Where to start; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: Where to write; different arrays from `state`.
            dt: Time step [s].
        """

    def diagnose(self, model: Model, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step after `before`, is not finite: the field, the index, the cause.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the bad state.
            dt: Length of the step [s].
        """

    def max_time_step(self, model: Model, enough: float = math.inf) -> float:
        """Largest stable `dt` [s], with its formula in the docstring; ``inf`` where the method is implicit.

        Args:
            model: From `build`.
            enough: What the caller needs [s]: if the bound is surely above it, a smaller value above it will do.
        """


@runtime_checkable
class Cautious(Protocol):
    """A solver that knows when a step is worse than one may think, although it is stable."""

    def caution(self, model: Model, dt: float) -> str | None:
        """Say in one sentence what a step of `dt` [s] leaves wrong and what helps, or nothing."""
