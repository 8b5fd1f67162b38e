"""Components from which robots are assembled: meshes in a cage, with ports where they join others."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from warpbots.design.cage import Cage
from warpbots.design.component_checks import check_hinge, check_port, check_sizes
from warpbots.design.part import Part
from warpbots.scene.field_types import checked, conform

__all__ = ["Component", "Hinge", "Port"]


@dataclasses.dataclass(frozen=True, eq=False)
class Port:
    """A rectangle on the cage of a component, where another one joins it.

    Its corners and its middle are handles, and the four triangles between these are faces of the cage. Where two ports
    join, their handles coincide. Points on a face follow its corners alone by their mean value coordinates, so both
    surfaces coincide, too, however the handles move (Xu et al. 2021, section III-A).

    Attributes:
        handles: Its middle, the origin of its frame, then its corners (-y, -z), (+y, -z), (-y, +z), (+y, +z), shape
            (5,).
        rotation: Axes of its frame in the frame of the component, as columns, shape (3, 3); x points out of the
            component, but into it at the port "in".
        width: Name of the size along its y axis.
        height: Name of the size along its z axis.
    """

    handles: Sequence[int]
    rotation: np.ndarray
    width: str
    height: str

    def __post_init__(self):
        conform(self)


@dataclasses.dataclass(frozen=True)
class Hinge:
    """The axis about which the second part of a component turns relative to the first.

    Attributes:
        position: A point of the axis in the frame of the component with the handles at rest [m], shape (3,).
        axis: Its direction there, shape (3,).
        lower: Angle at which the parts collide on one side, negative [rad].
        upper: Angle at which they collide on the other side, positive [rad].
        locked: Whether it cannot turn.

    Raises:
        ValueError: The axis has no direction, or the angles do not enclose zero.
    """

    position: Sequence[float]
    axis: Sequence[float]
    lower: float
    upper: float
    locked: bool = False

    def __post_init__(self):
        conform(self)
        if np.shape(self.axis) != (3,) or not np.linalg.norm(self.axis) > 0.0:
            raise ValueError(f"Hinge: axis must be a direction in space, got {self.axis}")
        if not self.lower < 0.0 < self.upper:
            raise ValueError(f"Hinge: lower < 0 < upper must hold [rad], got {self.lower:g} and {self.upper:g}")


@dataclasses.dataclass(frozen=True, eq=False)
class Component:
    """One mesh, or two on a hinge, in a cage whose handles depend linearly on a few sizes.

    Axles, screws and bearings have standard sizes. A component with a hinge can therefore be scaled only along the axis
    of the hinge, so that turning parts stay round; its other sizes must be `fixed` (Xu et al. 2021, the fabrication
    constraint).

    Attributes:
        name: Name of the component, such as "phalanx".
        sizes: Its sizes by name [m].
        layout: Handles per size [1], shape (k, 3, n_sizes): ``layout @ sizes`` are the handles.
        faces: Vertices of the faces of the cage, counter-clockwise seen from outside, shape (m, 3), int.
        ports: Ports by name, where other components join it; it joins its parent at the port "in", whose frame is its
            frame.
        parts: Its mesh, or the meshes before and behind its hinge; ports other than "in" are on the last one.
        hinge: Its hinge; None for one part.
        fixed: Sizes that cannot change.
        tied: Groups of sizes that are scaled by one factor.

    Raises:
        ValueError: A size is not positive, or named and missing; handles of a port are not its corners for all sizes; a
            mesh or the hinge is not within the cage; parts and hinge do not match; or a size that is not fixed moves
            handles across the axis of the hinge.
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
        conform(self)
        try:
            check_sizes(self)
            for name in self.ports:
                check_port(self, name)
            check_hinge(self)
            _ = self.weights  # raises for points outside the cage
            _ = self.hinge and self.hinge_weights
        except ValueError as fault:
            raise ValueError(f"Component {self.name!r}: {fault}") from None

    @functools.cached_property
    def cage(self) -> Cage:
        """The cage with its handles at rest."""
        return Cage(self.layout @ np.array(list(self.sizes.values())), self.faces)

    @functools.cached_property
    def weights(self) -> tuple[torch.Tensor, ...]:
        """Weights by which the vertices of each part follow the handles [1], each of shape (n, k)."""
        return tuple(self.cage.weights(torch.as_tensor(part.vertices)) for part in self.parts)

    @functools.cached_property
    def hinge_weights(self) -> torch.Tensor:
        """Weights by which the axis of its hinge follows the handles [1], shape (k,)."""
        if self.hinge is None:
            raise ValueError(f"Component {self.name!r}: it has no hinge")
        try:
            return self.cage.weights(torch.tensor([tuple(self.hinge.position)], dtype=torch.float64))[0]
        except ValueError:
            raise ValueError(
                f"the axis of its hinge passes through {tuple(self.hinge.position)} m, which is outside of its cage"
            ) from None

    @checked
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
