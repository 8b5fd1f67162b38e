"""Observers of soft bodies: motion of clusters of matter (ChainQueen §4, k-means observer)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from warpbots.observers.memory import Recall, interval
from warpbots.observers.observer import Observation, refuse_unknown
from warpbots.observers.region import points_of
from warpbots.observers.rest_samples import RestSamples
from warpbots.scene.field_types import checked, conform
from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["Centroid", "Clusters"]

_ROUNDS = 300
"""Largest number of iterations of k-means; the iteration ends earlier if no point changes its cluster."""


@dataclasses.dataclass(frozen=True)
class Clusters:
    """Positions and velocities of k-means clusters of the matter at rest.

    The clusters are computed from the bodies of the scene, not from the points of the solver; then every point of
    matter is assigned to the nearest cluster. Therefore a controller observes the same places in the same order under
    every solver and resolution.

    The observation is scaled for a neural network. It holds the displacement of the centre of mass of each cluster from
    rest, divided by the length of the robot [1], followed by the velocity of each centre of mass, divided by the length
    of the robot [1/s]. The robot consists of all bodies that have matter in the clusters; other bodies, such as sand
    under the robot, do not count for the length.

    Attributes:
        count: Number of clusters.
        region: Name of the region that is divided into clusters, or None for all matter.
        seed: With 0, k-means begins with centres at the ends of limbs; any other number is the seed with which a random
            point is drawn as the first centre.
        acceleration: Whether the observation also holds the mean acceleration of each cluster over the last control
            interval, divided by the length of the robot [1/s^2] (0 in the first call). The observation then has memory
            (`warpbots.observers.Remembers`).
    """

    count: int
    region: str | None = None
    seed: int = 0
    acceleration: bool = False

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """Return a function that maps a state of `simulation` to the observation, shape (worlds, 2 * count * dim).

        With accelerations the observation has shape (worlds, 3 * count * dim).

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or a cluster has no point of matter.
        """
        from scipy.spatial import cKDTree

        chosen, samples = (
            points_of(simulation, self.region, "Clusters"),
            RestSamples(simulation, self.region, "Clusters"),
        )
        if not 1 <= self.count <= len(chosen):
            raise ValueError(f"Clusters: count must be between 1 and {len(chosen)} points of matter, got {self.count}")
        centers = _k_means(samples.position, samples.volume, self.count, self.seed)
        label = cKDTree(centers).query(simulation.model.matter.position[chosen])[1]
        empty = np.setdiff1d(np.arange(self.count), label)
        if len(empty):
            raise ValueError(
                f"Clusters: {len(empty)} of {self.count} clusters have no point of matter, the first one at "
                f"{centers[empty[0]].round(6).tolist()} m; use fewer clusters, or a finer resolution of the solver"
            )
        return _observation(simulation, chosen, label, self.count, samples.robot_length, self.acceleration)


@dataclasses.dataclass(frozen=True)
class Centroid:
    """Position and velocity of the centre of mass of a region or of all matter: `Clusters` with a single cluster.

    Attributes:
        region: Name of the region, or None for all matter.
        acceleration: Whether the observation also holds the acceleration of the centre of mass, as in `Clusters`.
    """

    region: str | None = None
    acceleration: bool = False

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Callable[[State], torch.Tensor]:
        """Return a function that maps a state of `simulation` to the observation, shape (worlds, 2 * dim).

        With accelerations the observation has shape (worlds, 3 * dim).

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name.
        """
        chosen = points_of(simulation, self.region, "Centroid")
        length = RestSamples(simulation, self.region, "Centroid").robot_length
        return _observation(simulation, chosen, np.zeros(len(chosen), dtype=int), 1, length, self.acceleration)


def _k_means(position: np.ndarray, weight: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Centres of k-means clusters [m], shape (count, dim).

    The first initial centre is the point farthest from the centre of mass. Each further initial centre is the point
    farthest from all initial centres before it (Gonzalez 1985). These points are at the ends of limbs, and they are
    symmetric for a symmetric robot.

    Args:
        position: Positions of the points [m], shape (n, dim).
        weight: Weight of each point, shape (n,).
        count: Number of clusters.
        seed: With any number but 0, the first initial centre is a random point drawn with this seed.
    """
    middle = weight @ position / weight.sum()
    first = int(np.random.default_rng(seed).integers(len(position))) if seed else _farthest(position, middle[None])
    centers = position[[first]]
    while len(centers) < count:
        centers = np.concatenate([centers, position[[_farthest(position, centers)]]])
    return _lloyd(position, weight, centers)


def _farthest(position: np.ndarray, centers: np.ndarray) -> int:
    from scipy.spatial import cKDTree

    return int(cKDTree(centers).query(position)[0].argmax())


def _lloyd(position: np.ndarray, weight: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Move centres by Lloyd's iteration until each centre is the weighted mean of the points nearest to this centre."""
    from scipy.spatial import cKDTree

    label = None
    for _ in range(_ROUNDS):
        last, label = label, cKDTree(centers).query(position)[1]
        if np.array_equal(label, last):
            break
        share = np.bincount(label, weight, len(centers))
        sums = np.stack([np.bincount(label, weight * x, len(centers)) for x in position.T], axis=1)
        centers = np.where(share[:, None] > 0.0, sums / np.where(share, share, 1.0)[:, None], centers)
    return centers


def _observation(
    simulation: "Simulation[Any]", chosen: np.ndarray, label: np.ndarray, count: int, length: float, acceleration: bool
) -> Observation:
    matter = simulation.model.matter
    rest = simulation.state()
    like = rest.position
    mass = (matter.density * matter.volume)[chosen]
    weights = np.zeros((count, len(matter)))
    weights[label, chosen] = mass
    weights = like.new_tensor(weights / weights.sum(axis=1, keepdims=True))

    def centres(field: torch.Tensor) -> torch.Tensor:
        return weights @ field

    start = centres(rest.position)

    def motion(state: State) -> torch.Tensor:
        return torch.cat([centres(state.position) - start, centres(state.velocity)], dim=-1) / length

    if acceleration:
        return _Accelerated(motion, simulation)

    def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
        refuse_unknown(simulation, parameters)
        return motion(state).flatten(start_dim=1)

    return observe


class _Accelerated:
    """An observation that holds displacements, velocities, and mean accelerations over the last control interval."""

    def __init__(self, motion: Callable[[State], torch.Tensor], simulation: "Simulation[Any]"):
        self._motion, self._simulation, self._recall = motion, simulation, Recall(simulation, 1)

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        refuse_unknown(self._simulation, parameters)
        motion = self._motion(state)
        velocity = motion.chunk(2, dim=-1)[1]
        change = (velocity - self._recall(velocity)) / interval(self._simulation)
        return torch.cat([motion, change], dim=-1).flatten(start_dim=1)

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        self._recall.forget(worlds)

    def detach(self) -> None:
        self._recall.detach()
