"""Observers of soft bodies: centres of clusters of matter (ChainQueen §4, k-means observer)."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.observers.memory import Recall
from warpbots.observers.observer import Observation
from warpbots.observers.region import points_of
from warpbots.scene.field_types import conform
from warpbots.solvers import State

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["Centroid", "Clusters"]


@dataclasses.dataclass(frozen=True)
class Clusters:
    """Positions and velocities of k-means clusters of the matter at rest.

    The observation is scaled for a neural network: the displacement of the centre of mass of each cluster from rest, in
    lengths of the robot [1], then its velocity in lengths per second [1/s]. The robot is all bodies that have matter in
    the clusters; others, such as the sand that it walks on, do not count.

    Attributes:
        count: Number of clusters.
        region: Name of the region to cluster, or None for all matter.
        seed: Seed of k-means.
        acceleration: Whether to add the acceleration of each cluster, its mean over the last control interval in
            lengths per second squared [1/s^2], 0 in the first call: such an observation remembers, see
            `warpbots.observers.Remembers`.
    """

    count: int
    region: str | None = None
    seed: int = 0
    acceleration: bool = False

    def __post_init__(self):
        conform(self)

    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 2 count dim), or 3 count dim.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no such region, or fewer particles than clusters.
        """
        from scipy.cluster.vq import kmeans2

        chosen = points_of(simulation, self.region, "Clusters")
        if not 1 <= self.count <= len(chosen):
            raise ValueError(f"Clusters: count must be between 1 and {len(chosen)} particles, got {self.count}")
        x = simulation.model.matter.position[chosen]
        _, label = kmeans2(x, self.count, minit="++", rng=np.random.default_rng(self.seed))
        return _observation(simulation, chosen, label, self.count, self.acceleration)


@dataclasses.dataclass(frozen=True)
class Centroid:
    """Position and velocity of the centre of mass of a region or of all matter: `Clusters` with a single cluster.

    Attributes:
        region: Name of the region, or None for all matter.
        acceleration: Whether to add its acceleration, as `Clusters` does.
    """

    region: str | None = None
    acceleration: bool = False

    def __post_init__(self):
        conform(self)

    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 2 dim), or 3 dim.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no such region.
        """
        chosen = points_of(simulation, self.region, "Centroid")
        return _observation(simulation, chosen, np.zeros(len(chosen), dtype=int), 1, self.acceleration)


def _observation(
    simulation: "Simulation[Any]", chosen: np.ndarray, label: np.ndarray, count: int, acceleration: bool
) -> Observation:
    matter = simulation.model.matter
    rest = simulation.state()
    like = rest.position
    robot = np.isin(matter.body, matter.body[chosen])
    length = float(np.ptp(matter.position[robot], axis=0).max())
    mass = (matter.density * matter.volume)[chosen]
    weights = np.zeros((count, len(matter)))
    weights[label, chosen] = mass
    weights = torch.as_tensor(weights / weights.sum(axis=1, keepdims=True)).to(like)

    def centres(field: torch.Tensor) -> torch.Tensor:
        return weights @ field

    start = centres(rest.position)

    def motion(state: State) -> torch.Tensor:
        return torch.cat([centres(state.position) - start, centres(state.velocity)], dim=-1) / length

    if acceleration:
        return _Accelerated(motion, simulation)
    return lambda state, **parameters: motion(state).flatten(start_dim=1)


class _Accelerated:
    """Displacements and velocities of clusters, and the change of the velocities in the last interval."""

    def __init__(self, motion: Callable[[State], torch.Tensor], simulation: "Simulation[Any]"):
        self._motion, self._dt, self._recall = motion, simulation.dt, Recall(simulation, 1)

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        motion = self._motion(state)
        velocity = motion.chunk(2, dim=-1)[1]
        change = (velocity - self._recall(velocity)) / self._dt
        return torch.cat([motion, change], dim=-1).flatten(start_dim=1)

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        self._recall.forget(worlds)
