"""Poses and velocities of rigid bodies on the host, for checks and messages."""

from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.contact import signed_distance
from warpbots.scene import Shape
from warpbots.scene.with_z import with_z
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.spatial import scalar

__all__ = ["MeasuredBodies", "measured_bodies"]


class MeasuredBodies(NamedTuple):
    """Poses and velocities of all rigid bodies.

    Attributes:
        position: Origin of the frame of each body [m], shape (worlds, n_bodies, 3).
        rotation: Axes of the frame of each body, as columns [1], shape (worlds, n_bodies, 3, 3).
        velocity: Velocity of the origin of each frame [m/s], shape (worlds, n_bodies, 3).
        spin: Angular velocity of each body [rad/s], shape (worlds, n_bodies, 3).
    """

    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def velocity_at(self, w: int, k: int, x: np.ndarray) -> np.ndarray:
        """Velocity at the point x of body k of a world [m/s], of the shape (dim,) of x."""
        arm = with_z(x) - self.position[w, k]
        return (self.velocity[w, k] + np.cross(self.spin[w, k], arm))[: len(x)]

    def in_frame(self, w: int, k: int, x: np.ndarray) -> np.ndarray:
        """The points x in the frame of body k of a world [m], both of shape (n, dim)."""
        dim = x.shape[1]
        return (x - self.position[w, k, :dim]) @ self.rotation[w, k, :dim, :dim]

    def distance(self, shape: Shape, w: int, k: int, x: np.ndarray) -> float:
        """Signed distance of the point x from `shape` in the frame of body k of a world [m]."""
        return float(signed_distance(shape, self.in_frame(w, k, x.astype(np.float64)[None]))[0])


def measured_bodies(
    solver: Articulated, model: ArticulatedModel, q: np.ndarray | None = None, qd: np.ndarray | None = None
) -> MeasuredBodies:
    """Measure the bodies.

    Args:
        solver: Solver of the bodies.
        model: The model.
        q: Joint coordinates, shape (worlds, n_coordinates); None for those at the start.
        qd: Joint velocities, shape (worlds, n_velocities); None for those at the start.
    """
    state, found = solver.state(model), solver.readings(model)
    for array, values in ((state.q, q), (state.qd, qd)):
        if values is not None:
            array.assign(values)
    solver.sense(model, state, wp.zeros((model.worlds, model.channels), dtype=scalar, device=model.device), found)
    return MeasuredBodies(
        *(a.numpy() for a in (found.position, found.rotation, found.velocity, found.angular_velocity))
    )
