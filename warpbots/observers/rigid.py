"""Observers of rigid bodies: joints, poses, points, motors and contact forces, in SI units.

All observations are differentiable. The functions that `bind` returns take a state and, by name, replaced parameters of
the model. If a rollout replaces parameters, pass the same parameters to these functions; the observers of controllers
and environments get them without your help.
"""

import dataclasses
from typing import Any

import numpy as np
import torch

from warpbots.observers.contact_steps import measured_in_steps
from warpbots.observers.observer import Observation, refuse_unknown
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
        """Return a function that maps a state of `simulation` to joint coordinates and velocities.

        The result has shape (worlds, n_coordinates + n_velocities). It holds the coordinates [rad, m, or quaternions
        (x, y, z, w)], followed by the velocities [rad/s or m/s].

        Raises:
            TypeError: The scene has no rigid bodies.
        """
        _robot(simulation, self)

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            refuse_unknown(simulation, parameters)
            return torch.cat([state.q, state.qd], dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class Poses:
    """Positions and rotations of rigid bodies.

    Attributes:
        bodies: Names of the bodies; None for all bodies, in the order of `Scene.rigid`.
    """

    bodies: tuple[str, ...] | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the poses, shape (worlds, 12 * n_bodies).

        The entries for each body are the origin of its frame [m], followed by the rotation matrix, row by row [1]; the
        columns of this matrix are the axes of the frame.

        Raises:
            TypeError: The scene has no rigid bodies.
            KeyError: There is no body of this name.
        """
        chosen = _bodies(simulation, self, self.bodies)

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, steps=False, **parameters)
            parts = [r.position[:, chosen], r.rotation[:, chosen].flatten(start_dim=2)]
            return torch.cat(parts, dim=2).flatten(start_dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class EndEffector:
    """Position of a point of a rigid body, such as a fingertip.

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
        """Return a function that maps a state of `simulation` to the position in world axes [m], shape (worlds, 3).

        Raises:
            TypeError: The scene has no rigid bodies.
            KeyError: There is no body of this name.
            ValueError: The point is not three finite numbers.
        """
        (body,) = _bodies(simulation, self, (self.body,))
        offset = simulation.state().q.new_tensor(point(self.point, "EndEffector.point", 3))

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, steps=False, **parameters)
            return r.position[:, body] + r.rotation[:, body] @ offset

        return observe


@dataclasses.dataclass(frozen=True)
class JointTorques:
    """Torques or forces of the motors (`warpbots.actuators.Torque` and `warpbots.actuators.Servo`).

    The control is an argument of the function that `bind` returns, because it is not part of a state; None means u = 0.
    """

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps (state, control=None) to a tensor of shape (worlds, channels).

        The entries are torques [N m] or, for prismatic joints, forces [N].

        Raises:
            TypeError: The scene has no rigid bodies.
        """
        _robot(simulation, self)

        def observe(state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> torch.Tensor:
            return simulation.sense(state, control, steps=False, **parameters).torque

        return observe


@dataclasses.dataclass(frozen=True)
class ContactForces:
    """Sum of the contact forces on each rigid body.

    Under `Articulated`, the sum is over the contact points of the body, without the contacts of other bodies' points
    with its surface. Projective dynamics with a `contact_interval` measures all contacts on the surface of the body
    outside of its soft body.

    Attributes:
        bodies: Names of the bodies; None for all bodies, in the order of `Scene.rigid`.
    """

    bodies: tuple[str, ...] | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps (state, control=None) to the forces in world axes [N].

        The forces have shape (worlds, 3 * n_bodies). The control acts in the step whose forces are measured, if they
        are those of a step; None means u = 0.

        Raises:
            TypeError: The scene has no rigid bodies, or the solver does not measure their contact forces.
            KeyError: There is no body of this name.
        """
        chosen = _bodies(simulation, self, self.bodies)
        if "body_contact_force" in vars(simulation.sense(simulation.state())):

            def observe_bodies(
                state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor
            ) -> torch.Tensor:
                return simulation.sense(state, control, **parameters).body_contact_force[:, chosen].flatten(start_dim=1)

            return observe_bodies
        points = _points(simulation, "ContactForces: " + measured_in_steps(simulation))
        rest = simulation.state()
        gather = rest.q.new_zeros(len(chosen), sum(map(len, points)))
        for row, body in enumerate(chosen):
            gather[row, points[body]] = 1.0

        def observe(state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> torch.Tensor:
            force = simulation.sense(state, control, **parameters).contact_force
            return torch.einsum("bp,wpi->wbi", gather, force).flatten(start_dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class Tactile:
    """Normal and shear forces at the contact points of a rigid body, as tactile sensors would measure them.

    Attributes:
        body: Name of the body.
    """

    body: str

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the forces [N], shape (worlds, 4 * n_points).

        The four entries for each contact point are the normal force (>= 0), followed by the three components of the
        shear force in the axes of the body.

        Raises:
            TypeError: The scene has no rigid bodies, or the rigid bodies are bones, which have no contact points.
            KeyError: There is no body of this name.
            ValueError: The body has no contact points.
        """
        (body,) = _bodies(simulation, self, (self.body,))
        points = _points(
            simulation,
            f"Tactile: the rigid bodies of scene {simulation.scene.name!r} have no contact points under "
            f"{type(simulation.solver).__name__}; use ContactForces",
        )[body]
        if not len(points):
            raise ValueError(f"Tactile: body {self.body!r} has no contact points; give its RigidBody points=...")

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            r = simulation.sense(state, **parameters)
            parts = [r.contact_normal[:, points, None], r.contact_shear[:, points]]
            return torch.cat(parts, dim=2).flatten(start_dim=1)

        return observe


def _robot(simulation: "Simulation[Any]", observer: object) -> Robot:
    """Return the robot of a simulation; raise a TypeError that names `observer` if there are no rigid bodies."""
    if simulation.model.robot is None:
        raise TypeError(
            f"{type(observer).__name__}: scene {simulation.scene.name!r} has no rigid bodies; use Clusters or Centroid "
            f"for soft ones"
        )
    return simulation.model.robot


def _bodies(simulation: "Simulation[Any]", observer: object, names: tuple[str, ...] | None) -> list[int]:
    robot = _robot(simulation, observer)
    return list(range(len(robot.bodies))) if names is None else [robot.body(name) for name in names]


def _points(simulation: "Simulation[Any]", otherwise: str) -> tuple[np.ndarray, ...]:
    """Return the indices of the contact points of each body; raise a TypeError that says `otherwise` without points."""
    points = simulation.model.robot.contact_points
    if points is None:
        raise TypeError(otherwise)
    return points
