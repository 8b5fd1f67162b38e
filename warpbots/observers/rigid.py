"""Observers of rigid bodies: joints, poses, points, motors and contact forces, in SI units.

All observations are differentiable. The arguments of an observation are a state and, by name, replaced parameters of
the model. If a rollout replaces parameters, pass the same parameters to the observation.
"""

import dataclasses
from typing import Any

import numpy as np
import torch

from warpbots.observers.observer import Observation
from warpbots.scene.field_types import checked, conform
from warpbots.scene.record import point
from warpbots.simulation import Simulation
from warpbots.solvers import State
from warpbots.solvers.robot import Robot

__all__ = ["ContactForces", "EndEffector", "JointTorques", "Joints", "Poses", "Tactile"]


@dataclasses.dataclass(frozen=True)
class Joints:
    """Joint coordinates q and velocities qd, in the order of `simulation.model.robot.coordinates`."""

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, coordinates + velocities).

        The coordinates come first [rad, m, or quaternions (x, y, z, w)], then the velocities [rad/s or m/s].

        Raises:
            TypeError: The scene has no rigid bodies.
        """
        _robot(simulation, self)

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            return torch.cat([state.q, state.qd], dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class Poses:
    """Positions and rotations of bodies.

    Attributes:
        bodies: Names of the bodies; None for all, in the order of `Scene.rigid`.
    """

    bodies: tuple[str, ...] | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 12 bodies).

        For each body these are the origin of its frame [m], and then the entries, row by row, of the matrix whose
        columns are the axes of the frame [1].

        Raises:
            TypeError: The scene has no rigid bodies.
            KeyError: There is no such body.
        """
        chosen = _bodies(simulation, self, self.bodies)

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, **parameters)
            parts = [r.position[:, chosen], r.rotation[:, chosen].flatten(start_dim=2)]
            return torch.cat(parts, dim=2).flatten(start_dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class EndEffector:
    """Position of a point of a body, such as a fingertip.

    Attributes:
        body: Name of the body.
        point: The point in the frame of the body [m].
    """

    body: str
    point: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 3), in the world frame [m].

        Raises:
            TypeError: The scene has no rigid bodies.
            KeyError: There is no such body.
            ValueError: The point is not three finite numbers.
        """
        (body,) = _bodies(simulation, self, (self.body,))
        offset = simulation.state().q.new_tensor(point(self.point, "EndEffector.point", 3))

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, **parameters)
            return r.position[:, body] + r.rotation[:, body] @ offset

        return observe


@dataclasses.dataclass(frozen=True)
class JointTorques:
    """Torques of the motors; see `warpbots.actuators.Torque` and `warpbots.actuators.Servo`.

    The control is not part of a state. Therefore it is an argument of the observation; None means u = 0.
    """

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state, control=None -> tensor of shape (worlds, channels).

        These are torques [N m] or, for prismatic joints, forces [N].

        Raises:
            TypeError: The scene has no rigid bodies.
        """
        _robot(simulation, self)

        def observe(state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> torch.Tensor:
            return simulation.sense(state, control, **parameters).torque

        return observe


@dataclasses.dataclass(frozen=True)
class ContactForces:
    """Sum of the contact forces at the contact points of each body.

    If the contact points of another body touch the surface of a body, their forces on this body are not included.

    Attributes:
        bodies: Names of the bodies; None for all, in the order of `Scene.rigid`.
    """

    bodies: tuple[str, ...] | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 3 bodies) [N].

        The forces are in the world frame.

        Raises:
            TypeError: The scene has no rigid bodies, or they are bones, whose contact forces `Simulation.report` has.
            KeyError: There is no such body.
        """
        chosen, points = _bodies(simulation, self, self.bodies), _points(simulation, self)
        rest = simulation.state()
        gather = rest.q.new_zeros(len(chosen), sum(map(len, points)))
        for row, body in enumerate(chosen):
            gather[row, points[body]] = 1.0

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            force = simulation.sense(state, **parameters).contact_force
            return torch.einsum("bp,wpi->wbi", gather, force).flatten(start_dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class Tactile:
    """Normal and shear forces at the contact points of a body, as measured by tactile sensors.

    Attributes:
        body: Name of the body.
    """

    body: str

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 4 points).

        For each contact point of the body these are the normal force (>= 0) and then the shear force, three components
        in the axes of the body [N].

        Raises:
            TypeError: The scene has no rigid bodies, or they are bones, whose contacts are not at contact points.
            KeyError: There is no such body.
            ValueError: The body has no contact points.
        """
        (body,) = _bodies(simulation, self, (self.body,))
        points = _points(simulation, self)[body]
        if not len(points):
            raise ValueError(f"Tactile: body {self.body!r} has no contact points; give its RigidBody points=...")

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, **parameters)
            parts = [r.contact_normal[:, points, None], r.contact_shear[:, points]]
            return torch.cat(parts, dim=2).flatten(start_dim=1)

        return observe


def _robot(simulation: "Simulation[Any]", observer: object) -> Robot:
    """The robot of a simulation; raises a TypeError that names `observer` if there are no rigid bodies."""
    if simulation.model.robot is None:
        raise TypeError(
            f"{type(observer).__name__}: scene {simulation.scene.name!r} has no rigid bodies; use Clusters or Centroid "
            f"for soft ones"
        )
    return simulation.model.robot


def _bodies(simulation: "Simulation[Any]", observer: object, names: tuple[str, ...] | None) -> list[int]:
    robot = _robot(simulation, observer)
    return list(range(len(robot.bodies))) if names is None else [robot.body(name) for name in names]


def _points(simulation: "Simulation[Any]", observer: object) -> tuple[np.ndarray, ...]:
    """Indices of the contact points of each body; raises a TypeError that names `observer` if the bodies are bones."""
    points = _robot(simulation, observer).contact_points
    if points is None:
        raise TypeError(
            f"{type(observer).__name__}: the rigid bodies of scene {simulation.scene.name!r} are bones of soft bodies, "
            f"which feel no contacts at points; the forces on them are in Simulation.report()"
        )
    return points
