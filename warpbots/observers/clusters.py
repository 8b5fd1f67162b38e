"""Observers of soft bodies: centres of clusters of matter (ChainQueen §4, k-means observer)."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.scene.field_types import conform
from warpbots.solvers import State

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["Centroid", "Clusters"]


@dataclasses.dataclass(frozen=True)
class Clusters:
    """Positions and velocities of k-means clusters of the matter at rest.

    The observation is scaled for a neural network: the displacement of the centre of mass of each cluster from rest, in
    lengths of the robot [1], then its velocity in lengths per second [1/s].

    Attributes:
        count: Number of clusters.
        region: Name of the region to cluster, or None for all matter.
        seed: Seed of k-means.
    """

    count: int
    region: str | None = None
    seed: int = 0

    def __post_init__(self):
        conform(self)

    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 2 count dim).

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no such region, or fewer particles than clusters.
        """
        from scipy.cluster.vq import kmeans2

        chosen = _matter(simulation, self)
        if not 1 <= self.count <= len(chosen):
            raise ValueError(f"Clusters: count must be between 1 and {len(chosen)} particles, got {self.count}")
        x = simulation.model.matter.position[chosen]
        _, label = kmeans2(x, self.count, minit="++", rng=np.random.default_rng(self.seed))
        return _observation(simulation, chosen, label, self.count)


@dataclasses.dataclass(frozen=True)
class Centroid:
    """Position and velocity of the centre of mass of a region or of all matter: `Clusters` with a single cluster.

    Attributes:
        region: Name of the region, or None for all matter.
    """

    region: str | None = None

    def __post_init__(self):
        conform(self)

    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """The observation of a state of `simulation`: state -> tensor of shape (worlds, 2 dim).

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no such region.
        """
        chosen = _matter(simulation, self)
        return _observation(simulation, chosen, np.zeros(len(chosen), dtype=int), 1)


def _matter(simulation: "Simulation[Any]", observer: Clusters | Centroid) -> np.ndarray:
    """Indices of the points of matter that are observed."""
    matter, region = simulation.model.matter, observer.region
    if matter is None:
        raise TypeError(
            f"{type(observer).__name__}: scene {simulation.scene.name!r} has rigid bodies alone, which have no "
            f"particles to observe; use Joints, Poses, EndEffector or another observer of rigid bodies"
        )
    if region is None:
        return np.arange(len(matter))
    if region not in matter.regions:
        raise ValueError(f"there is no region {region!r}; the scene has {', '.join(matter.regions) or 'none'}")
    return np.nonzero(matter.regions[region])[0]


def _observation(
    simulation: "Simulation[Any]", chosen: np.ndarray, label: np.ndarray, count: int
) -> Callable[[State], torch.Tensor]:
    matter = simulation.model.matter
    rest = simulation.state()
    like = rest.position
    length = float((matter.position.max(0) - matter.position.min(0)).max())
    mass = (matter.density * matter.volume)[chosen]
    weights = np.zeros((count, len(matter)))
    weights[label, chosen] = mass
    weights = torch.as_tensor(weights / weights.sum(axis=1, keepdims=True)).to(like)

    def centres(field: torch.Tensor) -> torch.Tensor:
        return weights @ field

    start = centres(rest.position)

    def observe(state: State) -> torch.Tensor:
        parts = torch.cat([centres(state.position) - start, centres(state.velocity)], dim=-1) / length
        return parts.flatten(start_dim=1)

    return observe
