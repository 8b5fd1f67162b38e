"""The result of a rollout: its final state, its controls and, on request, every state in between."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

import numpy as np
import torch

from warpbots.gradients import known_losses, turn
from warpbots.numerics.parameters import parameters_of
from warpbots.scene import Scene
from warpbots.scene.field_types import checked
from warpbots.scene.motion_checks import changes_place
from warpbots.solvers import Model
from warpbots.solvers.matter import Matter
from warpbots.solvers.motion_parameters import MotionParameters
from warpbots.solvers.obstacle_poses import obstacle_poses

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    TensorState_co = TypeVar("TensorState_co", covariant=True, default="MatterState")
else:
    from typing import TypeVar

    TensorState_co = TypeVar("TensorState_co", covariant=True)

__all__ = ["MatterState", "Simulated", "TensorState_co", "Trajectory", "obstacles_at", "poses_at"]


class MatterState(Protocol):
    """A state of soft bodies, as tensors, for any solver; the default type of a state for type checkers.

    Attributes:
        position: Positions [m], shape (worlds, n, dim).
        velocity: Velocities [m/s], shape (worlds, n, dim).
    """

    @property
    def position(self) -> torch.Tensor:
        """Positions [m], shape (worlds, n, dim)."""

    @property
    def velocity(self) -> torch.Tensor:
        """Velocities [m/s], shape (worlds, n, dim)."""


class Simulated(Protocol):
    """The methods of `warpbots.Simulation` that a trajectory uses."""

    scene: Scene
    model: Model
    dt: float

    def step(self, state: Any, control: torch.Tensor, **parameters: torch.Tensor) -> Any:
        """The state one control interval after `state`."""

    def sense(
        self, state: Any, control: torch.Tensor | None = None, *, steps: bool = True, **parameters: torch.Tensor
    ) -> Any:
        """The readings (measurements) of `state`, with or without those for which the solver takes a step."""

    def state(self, **fields: torch.Tensor) -> Any:
        """A state of the scene at rest, with the given `fields` replaced."""

    def scene_with(self, world: int = 0, records: bool = True, start: Any = None, **parameters: torch.Tensor) -> Scene:
        """The scene into which the given parameters and the initial state `start` are baked."""


def obstacles_at(
    simulation: Simulated, state: Any, world: int = 0, **parameters: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Displacements of all obstacles from their places in the scene, in one world of a state.

    Args:
        simulation: The simulation.
        state: The state.
        world: Index of the world.
        parameters: Tensors that replace parameters of the model, by name.

    Returns:
        Positions p [m], shape (n_obstacles, 3), and rotations R, shape (n_obstacles, 3, 3): a point X of an obstacle is
        at R X + p. The plane of a 2D scene is z = 0.
    """
    scene, row = simulation.scene, slice(world, world + 1)
    time, travel, values = np.zeros(1), None, {}
    if any(changes_place(o, scene.actuators) for o in scene.obstacles):
        time, travel = (field[row].detach().cpu().numpy() for field in (state.time, state.travel))
        for name in parameters_of(MotionParameters):
            given = parameters[name].detach().cpu() if name in parameters else simulation.model.parameter(name)
            values[name] = given.numpy()[row]
    with turn:
        rotation, position = obstacle_poses(scene, time, travel, values)
    return position[0], rotation[0]


def poses_at(
    simulation: Simulated, state: Any, world: int = 0, **parameters: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Poses of all rigid bodies in one world of a state, in the order of `Scene.rigid`.

    Args:
        simulation: The simulation.
        state: The state.
        world: Index of the world.
        parameters: Tensors that replace parameters of the model, by name.

    Returns:
        Origins of the frames of the bodies [m], shape (n_bodies, 3), and axes of these frames as columns, shape
        (n_bodies, 3, 3).
    """
    with torch.no_grad():
        readings = simulation.sense(state, steps=False, **parameters)
    return readings.position[world].cpu().numpy(), readings.rotation[world].cpu().numpy()


@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory(Generic[TensorState_co]):
    """The motion of a rollout.

    States between start and end are not stored; on request they are simulated again, bit for bit.

    A trajectory can be pickled and deep-copied. The copy has the same states, but it is detached from the gradient.

    Attributes:
        simulation: The simulation that made the rollout.
        start: State at time 0, without gradient.
        final: State after the last control interval; differentiable.
        control: Controls in each control interval, shape (worlds, steps, channels); differentiable.
        observation: Results of the argument `observe` of the rollout after each interval, shape (worlds, steps, ...);
            differentiable. None if `observe` was not given.
        parameters: Parameters of the model that the rollout replaced, without gradient.
        lost: Control interval in which the simulation of each world failed, or -1 if the world reached the end, shape
            (worlds,), int. A lost world keeps its state from before the failed step. A mean over the worlds with ``lost
            < 0`` excludes lost worlds.
        mimebundle: Function that returns the content that a notebook shows for a trajectory; `warpbots` sets it to
            `warpbots.view.mimebundle`.
    """

    mimebundle: ClassVar[Callable[["Trajectory[Any]"], dict]] = staticmethod(
        lambda motion: {"text/plain": repr(motion)}
    )

    simulation: Simulated
    start: TensorState_co
    final: TensorState_co
    control: torch.Tensor
    observation: torch.Tensor | None
    parameters: dict[str, torch.Tensor]
    lost: torch.Tensor

    @property
    def steps(self) -> int:
        """Number of control intervals."""
        return self.control.shape[1]

    @property
    def control_interval(self) -> float:
        """Time between two states [s]."""
        return self.simulation.dt

    @property
    def scene(self) -> Scene:
        """The scene of the simulation."""
        return self.simulation.scene

    @property
    def designed(self) -> Scene:
        """The scene of the first world, with the replaced parameters baked in, see `Simulation.scene_with`.

        If the motion began in a state that differs from the start of the scene, the result starts from that state. A
        scene from a file keeps its records, so that robots from other programs are not changed.
        """
        rest, names = self.simulation.state(), [f.name for f in dataclasses.fields(self.start)]
        moved = any(not torch.equal(getattr(self.start, name)[0], getattr(rest, name)[0]) for name in names)
        if not self.parameters and not moved:
            return self.scene
        return self.simulation.scene_with(records=self.scene.source is None, start=self.start, **self.parameters)

    @property
    def matter(self) -> Matter | None:
        """All soft bodies at rest, in the order of the second axis of `position`; None if there are no soft bodies."""
        return self.simulation.model.matter

    @checked
    def states(self, every: int = 1) -> Iterator[tuple[float, TensorState_co]]:
        """Times [s] and states without gradient: at the start, after every `every` control intervals, at the end."""
        if every < 1:
            raise ValueError(f"states: every must be at least 1, got {every}")
        state = self.start
        yield 0.0, state
        for i in range(self.steps):
            with torch.no_grad(), known_losses():
                state = self.simulation.step(state, self.control[:, i].detach(), **self.parameters)
            if (i + 1) % every == 0 or i + 1 == self.steps:
                yield (i + 1) * self.control_interval, state

    @checked
    def frames(self, every: int = 1, world: int = 0) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Times [s], positions [m] and velocities [m/s] of the matter of one world, each of shape (n, dim).

        Args:
            every: Number of control intervals between two results; the start and the end are always included.
            world: Index of the world.

        Raises:
            ValueError: The scene has no soft bodies, or `every` is below 1.
        """
        if self.matter is None:
            raise ValueError(f"frames: scene {self.scene.name!r} has no soft bodies; see poses and joints")
        for time, state in self.states(every):
            yield time, state.position[world].cpu().numpy(), state.velocity[world].cpu().numpy()

    @checked
    def joints(self, every: int = 1, world: int = 0) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Times [s], joint coordinates q and joint velocities qd of one world, in the order of `Model.robot`.

        Args:
            every: Number of control intervals between two results; the start and the end are always included.
            world: Index of the world.

        Yields:
            Time [s], coordinates [rad, m, or quaternions], shape (n_coordinates,), and velocities [rad/s or m/s], shape
            (n_velocities,).

        Raises:
            ValueError: The scene has no rigid bodies, or `every` is below 1.
        """
        if self.simulation.model.robot is None:
            raise ValueError(f"joints: scene {self.scene.name!r} has no rigid bodies; see frames")
        for time, state in self.states(every):
            yield time, state.q[world].cpu().numpy(), state.qd[world].cpu().numpy()

    @checked
    def poses(self, every: int = 1, world: int = 0) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Times [s] and poses of the rigid bodies of one world, in the order of `Scene.rigid`.

        Args:
            every: Number of control intervals between two results; the start and the end are always included.
            world: Index of the world.

        Yields:
            Time [s], origins of the frames of the bodies [m], shape (n_bodies, 3), and axes of these frames as columns,
            shape (n_bodies, 3, 3).

        Raises:
            ValueError: The scene has no rigid bodies, or `every` is below 1.
        """
        if not self.scene.rigid:
            raise ValueError(f"poses: scene {self.scene.name!r} has no rigid bodies; see frames")
        for time, state in self.states(every):
            yield time, *poses_at(self.simulation, state, world, **self.parameters)

    @checked
    def obstacle_poses(self, every: int = 1, world: int = 0) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Times [s] and displacements of the obstacles of one world from their places, in the order of the scene.

        Args:
            every: Number of control intervals between two results; the start and the end are always included.
            world: Index of the world.

        Yields:
            Time [s], positions p [m], shape (n_obstacles, 3), and rotations R, shape (n_obstacles, 3, 3): a point X of
            an obstacle is at R X + p. The plane of a 2D scene is z = 0.

        Raises:
            ValueError: `every` is below 1.
        """
        for time, state in self.states(every):
            yield time, *obstacles_at(self.simulation, state, world, **self.parameters)

    def __reduce__(self) -> tuple:
        """Arguments for pickle and deepcopy: the same motion without its computation graph."""
        kept = None if self.observation is None else self.observation.detach()
        final = self.final.mapped(lambda field: field.detach())
        rest = self.control.detach(), kept, self.parameters, self.lost
        return type(self), (self.simulation, self.start, final, *rest)

    def __repr__(self) -> str:
        matter = []
        if self.matter is not None:
            matter.append(f"{len(self.matter)} particles")
        if count := len(self.scene.rigid):
            matter.append(f"{count} rigid {'body' if count == 1 else 'bodies'}")
        gone = int((self.lost >= 0).sum())
        lost = f"; {gone} of {len(self.lost)} worlds lost on the way" if gone else ""
        return (
            f"Trajectory of {self.scene.name!r}: {' and '.join(matter)}, {self.steps} control intervals, "
            f"{self.steps * self.control_interval:.3g} s{lost}"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """The content that a notebook shows for a trajectory: see `warpbots.view`."""
        return type(self).mimebundle(self)
