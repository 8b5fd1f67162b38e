"""What models of one dataclass of arrays answer alike."""

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np
import warp as wp

from warpbots.numerics import real
from warpbots.scene import Scene
from warpbots.solvers.places import Places, element_places
from warpbots.solvers.records import with_gravity

__all__ = ["ArrayModel"]


class ArrayModel:
    """A model, as a frozen dataclass, whose parameters are fields of their own name.

    Attributes:
        tables: For each kind of element (`Parameter.per`) the points of matter that are its vertices, -1 for none,
            shape (n, n_vertices), int.
    """

    scalar = real
    """Warp scalar of control signals."""

    tables: Mapping[str, np.ndarray]

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator."""
        return len(self.scene.actuators)

    def summary(self) -> str:
        """Number of points of matter and of rigid bodies; a solver may say more."""
        counts = (self.matter, "points of matter"), (self.robot and self.robot.bodies, "rigid bodies")
        return ", ".join(f"{len(things)} {name}" for things, name in counts if things)

    def places(self, per: str) -> Places | None:
        """Where the elements of a kind are at rest: those of `tables`; None for all others."""
        return element_places(self.scene, self.matter, self.tables[per]) if per in self.tables else None

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""
        return getattr(self, name)

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy with `arrays` instead of its own, by name of the parameter."""
        return dataclasses.replace(self, **arrays)

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with the gravity of `values`; a solver may say more."""
        return with_gravity(self.scene, values)

    def parameter_arrays(self) -> list[wp.array]:
        """Arrays of all parameters that have an effect."""
        return [self.parameter(name) for name in self.parameters()]
