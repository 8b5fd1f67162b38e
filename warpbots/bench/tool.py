"""Drags at an obstacle that actuators move: their control signals carry the held point towards the pointer."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.bench.drag import Drag
from warpbots.bench.drives import tools_of
from warpbots.bench.ray import Hit
from warpbots.scene import VelocityDrive
from warpbots.trajectory import obstacles_at
from warpbots.view.upright_view import UPRIGHT, upright

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["Tool", "tool_at"]


@dataclasses.dataclass(eq=False)
class Tool(Drag):
    """An obstacle that is held at a point.

    Attributes:
        simulation: The simulation.
        obstacle: Index of the obstacle.
        channels: Channels of its drives.
        arm: The point in the scene, where the obstacle was at the beginning [m], shape (3,).
        world: Index of the world.
    """

    simulation: "Simulation[Any]"
    obstacle: int
    channels: list[int]
    arm: np.ndarray
    world: int

    def signals(self, state: Any, parameters: dict[str, Any]) -> dict[int, float]:
        """Control signals that carry the point to the target in one control interval, or as fast as they can."""
        position, rotation = (a[self.obstacle] for a in obstacles_at(self.simulation, state, self.world, **parameters))
        x, dim = rotation @ self.arm + position, self.simulation.scene.dim
        self.point = upright(x[:dim]).astype(np.float64)
        target = self.target if dim == 3 else np.append((self.target @ UPRIGHT)[:2], 0.0)
        velocities = np.stack([_velocity(self.simulation.scene.actuators[c], x) for c in self.channels], axis=1)
        wanted = np.linalg.lstsq(velocities, (target - x) / self.simulation.dt, rcond=None)[0]
        return dict(zip(self.channels, np.clip(wanted, -1.0, 1.0).tolist(), strict=True))

    def released(self) -> dict[int, float]:
        """The signals at which the drives stand still."""
        return dict.fromkeys(self.channels, 0.0)


def tool_at(simulation: "Simulation[Any]", state: Any, hit: Hit, world: int, **parameters: Any) -> Tool | None:
    """The obstacle that a ray meets, held at the point where the ray meets it; None if it cannot be dragged."""
    channels = tools_of(simulation.scene).get(hit.obstacle)
    if channels is None:
        return None
    position, rotation = (a[hit.obstacle] for a in obstacles_at(simulation, state, world, **parameters))
    x = hit.point if simulation.scene.dim == 3 else np.append((hit.point @ UPRIGHT)[:2], 0.0)
    return Tool(hit.point, hit.point, simulation, hit.obstacle, channels, rotation.T @ (x - position), world)


def _velocity(drive: VelocityDrive, x: np.ndarray) -> np.ndarray:
    """Velocity of the point x of an obstacle at u = 1 [m/s], shape (3,)."""
    axis = np.array([0.0, 0.0, 1.0]) if drive.axis is None else np.resize((*drive.axis, 0.0), 3)
    if drive.kind == "translation":
        return drive.max_speed * axis
    return drive.max_speed * np.cross(axis, x - np.resize((*drive.pivot, 0.0), 3))
