"""Sample points of matter at rest, with which observers use the same places under every solver and resolution."""

from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.contact import points_within
from warpbots.observers.region import points_of

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["RestSamples"]

_COUNT = 1 << 12
"""Smallest number of samples in a solid body."""


class RestSamples:
    """Sample points distributed evenly over the matter of a region; the points depend only on the scene.

    Attributes:
        position: Position of each sample at rest [m], shape (n, dim).
        volume: Volume of matter that each sample represents [m^dim], shape (n,).
        size: Size of the bounding box of the region [m], shape (dim,).
        robot_length: Longest side of the bounding box of all bodies that have matter in the region [m].
    """

    def __init__(self, simulation: "Simulation[Any]", region: str | None, what: str):
        """Take samples of a region.

        Args:
            simulation: The simulation with the bodies.
            region: Name of the region, or None for all matter.
            what: Name of the observer, for messages.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or the matter in the region has no volume.
        """
        points_of(simulation, region, what)
        parts, bounds = [], []
        for body in simulation.scene.soft:
            if region is None or region in body.regions:
                position, volume = points_within(body.shape, _COUNT, body.regions[region] if region else None)
                if len(position):
                    parts.append((position, volume))
                    bounds.append(body.shape.bounds)
        if not parts:
            raise ValueError(f"{what}: region {region!r} holds no volume of its body; use a larger region")
        self.position, self.volume = (np.concatenate(field) for field in zip(*parts, strict=True))
        robot = np.ptp(np.concatenate(bounds), axis=0)
        self.size = robot if region is None else np.ptp(self.position, axis=0)
        self.robot_length = float(robot.max())
