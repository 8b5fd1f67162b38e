"""Methods shared by all models that are dataclasses of arrays."""

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
    """A model that is a frozen dataclass; each parameter is the field of the same name.

    Attributes:
        tables: For each kind of element (`Parameter.per`), a table with the points of matter that are the vertices of
            each element, shape (n, n_vertices), int; -1 fills rows of elements with fewer vertices.
    """

    scalar = real
    """Warp scalar type of control signals."""

    tables: Mapping[str, np.ndarray]

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator."""
        return len(self.scene.actuators)

    def summary(self) -> str:
        """Numbers of points of matter and of rigid bodies, in words; models may extend this text."""
        counts = (self.matter, "points of matter"), (self.robot and self.robot.bodies, "rigid bodies")
        return ", ".join(f"{len(things)} {name}" for things, name in counts if things)

    def places(self, per: str) -> Places | None:
        """Rest positions of the elements of a kind in `tables`; None for all other kinds."""
        return element_places(self.scene, self.matter, self.tables[per]) if per in self.tables else None

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""
        return getattr(self, name)

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy in which `arrays`, by name of the parameter, replace the arrays of these parameters."""
        return dataclasses.replace(self, **arrays)

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with the gravity in `values`; models may write more parameters into the scene."""
        return with_gravity(self.scene, values)

    def parameter_arrays(self) -> list[wp.array]:
        """Arrays of all parameters that `parameters` lists."""
        return [self.parameter(name) for name in self.parameters()]
