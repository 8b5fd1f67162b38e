"""Components of which robots are assembled: meshes in a cage, with ports where they join others."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from warpbots.design.cage import Cage
from warpbots.design.part import Part

__all__ = ["Component", "Hinge", "Port"]


@dataclasses.dataclass(frozen=True, eq=False)
class Port:
    """A rectangle on the cage of a component, where another one joins it.

    Its corners and its middle are handles. Where two ports join, these are the same, and by the mean value coordinates
    of points on a face so are both surfaces, however the handles move (Xu et al. 2021, section III-A).

    Attributes:
        handles: Its middle, the origin of its frame, then its corners (-y, -z), (+y, -z), (-y, +z), (+y, +z).
        rotation: Axes of its frame in that of the component, as columns; x points out of the component, shape (3, 3).
        width: Name of the size along its y axis.
        height: Name of the size along its z axis.
    """

    handles: tuple[int, ...]
    rotation: np.ndarray
    width: str
    height: str


@dataclasses.dataclass(frozen=True)
class Hinge:
    """The axis about which the second part of a component turns against the first.

    Attributes:
        position: A point of the axis in the frame of the component with the handles at rest [m], shape (3,).
        axis: Its direction there, shape (3,).
        lower: Angle at which the parts collide on one side [rad].
        upper: Angle at which they collide on the other side [rad].
        locked: Whether it cannot turn.
    """

    position: Sequence[float]
    axis: Sequence[float]
    lower: float
    upper: float
    locked: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Component:
    """One mesh, or two on a hinge, in a cage whose handles depend linearly on a few sizes.

    Attributes:
        name: What it is, such as "phalanx".
        sizes: Its sizes by name [m].
        layout: Handles per size [1], shape (k, 3, n_sizes): ``layout @ sizes`` are the handles.
        faces: Vertices of the faces of the cage, counter-clockwise seen from outside, shape (m, 3), int.
        ports: Where others join it, by name; with "in" it joins its parent.
        parts: Its mesh, or the meshes before and behind its hinge; ports other than "in" are on the last one.
        hinge: Its hinge; None for one part.
        fixed: Sizes that cannot change, because of what it holds: axles, screws, bearings.
        tied: Groups of sizes that are scaled by one factor.

    Raises:
        ValueError: A mesh is not within the cage; parts and hinge do not go together; or a size is named that the
            component does not have.
    """

    name: str
    sizes: Mapping[str, float]
    layout: np.ndarray
    faces: np.ndarray
    ports: Mapping[str, Port]
    parts: Sequence[Part]
    hinge: Hinge | None = None
    fixed: frozenset[str] = frozenset()
    tied: Sequence[tuple[str, ...]] = ()

    def __post_init__(self):
        what = f"Component {self.name!r}"
        named = {*self.fixed, *(size for group in self.tied for size in group)}
        named |= {size for port in self.ports.values() for size in (port.width, port.height)}
        if unknown := sorted(named - set(self.sizes)):
            raise ValueError(f"{what}: it has no size {unknown[0]!r}; its sizes are {', '.join(self.sizes)}")
        if len(self.parts) != (1 if self.hinge is None else 2):
            raise ValueError(
                f"{what}: it must have one part, or two and a hinge, got {len(self.parts)} and "
                f"{'none' if self.hinge is None else 'a hinge'}"
            )
        try:
            weights = tuple(self.cage.weights(torch.as_tensor(part.vertices)) for part in self.parts)
        except ValueError as fault:
            raise ValueError(f"{what}: {fault}") from None
        object.__setattr__(self, "_weights", weights)

    @functools.cached_property
    def cage(self) -> Cage:
        """The cage with its handles at rest."""
        return Cage(self.layout @ np.array(list(self.sizes.values())), self.faces)

    @property
    def weights(self) -> tuple[torch.Tensor, ...]:
        """Weights by which the vertices of each part follow the handles [1], each of shape (n, k)."""
        return self._weights  # type: ignore[attr-defined]

    @functools.cached_property
    def hinge_weights(self) -> torch.Tensor:
        """Weights by which the axis of its hinge follows the handles [1], shape (k,)."""
        if self.hinge is None:
            raise ValueError(f"Component {self.name!r}: it has no hinge")
        return self.cage.weights(torch.tensor([tuple(self.hinge.position)], dtype=torch.float64))[0]

    def section(self, port: str) -> tuple[float, float]:
        """Width and height of a port [m].

        Raises:
            KeyError: It has no such port.
        """
        if port not in self.ports:
            raise KeyError(f"Component {self.name!r}: it has no port {port!r}; its ports are {', '.join(self.ports)}")
        return self.sizes[self.ports[port].width], self.sizes[self.ports[port].height]

    def locked(self) -> "Component":
        """The same component with its hinge locked.

        Raises:
            ValueError: It has no hinge.
        """
        if self.hinge is None:
            raise ValueError(f"Component {self.name!r}: it has no hinge to lock")
        return dataclasses.replace(self, hinge=dataclasses.replace(self.hinge, locked=True))
