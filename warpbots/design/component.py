"""Components from which robots are assembled: meshes in a cage, with ports at which they join other components."""

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
    """A rectangle on the cage of a component, at which another component joins it.

    The corners and the middle of the rectangle are handles, and the four triangles between these handles are faces of
    the cage. If two ports join, their handles coincide. With mean value coordinates, points on a face follow the
    corners of this face alone; therefore the surfaces of the two components also coincide in the rectangle, however the
    handles move (Xu et al. 2021, section III-A).

    Attributes:
        handles: Indices of the handles of the port, shape (5,): first the middle, which is the origin of the frame of
            the port, then the corners (-y, -z), (+y, -z), (-y, +z), (+y, +z).
        rotation: Axes of the frame of the port in the frame of the component, as columns, shape (3, 3). The x axis
            points out of the component; at the port "in" it points into the component.
        width: Name of the size of the component that is the width of the port, along the y axis of the port.
        height: Name of the size of the component that is the height of the port, along the z axis of the port.
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
        axis: Direction of the axis in the frame of the component, shape (3,).
        lower: Negative angle at which the two parts collide [rad].
        upper: Positive angle at which the two parts collide [rad].
        locked: Whether the hinge cannot turn.

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
    """One mesh, or two meshes on a hinge, in a cage whose handles depend linearly on a few sizes.

    Axles, screws and bearings have standard sizes. A component with a hinge can therefore be scaled only along the axis
    of the hinge, so that the turning parts remain round; all sizes across the axis must be `fixed` (Xu et al. 2021, the
    fabrication constraint).

    Attributes:
        name: Name of the component, such as "phalanx".
        sizes: Sizes that determine the cage, by name [m].
        layout: Derivatives of the positions of the handles with respect to the sizes [1], shape (k, 3, n_sizes):
            ``layout @ sizes`` gives the positions.
        faces: Indices of the three handles of each face of the cage, counter-clockwise seen from outside, shape (m, 3),
            int.
        ports: Ports by name. The component joins its parent at the port "in", whose frame is the frame of the
            component; other components join it at the other ports.
        parts: The mesh of the component or, with a hinge, the mesh before and the mesh behind the hinge. Ports other
            than "in" are on the last mesh.
        hinge: The hinge between the two parts; None for a component with one part.
        fixed: Names of the sizes that cannot change.
        tied: Groups of names of sizes that are scaled by a common factor.

    Raises:
        ValueError: A size is not positive; the name of a size does not exist; the handles of a port are not its corners
            for all sizes; a mesh or the hinge is not within the cage; parts and hinge do not match; or a size that is
            not fixed moves handles across the axis of the hinge.
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
        """Weights with which the vertices of each part follow the handles [1], each of shape (n, k)."""
        return tuple(self.cage.weights(torch.as_tensor(part.vertices)) for part in self.parts)

    @functools.cached_property
    def hinge_weights(self) -> torch.Tensor:
        """Weights with which the point `Hinge.position` follows the handles [1], shape (k,)."""
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
            KeyError: The component has no port of this name.
        """
        if port not in self.ports:
            raise KeyError(f"Component {self.name!r}: it has no port {port!r}; its ports are {', '.join(self.ports)}")
        return self.sizes[self.ports[port].width], self.sizes[self.ports[port].height]

    def locked(self) -> "Component":
        """The same component with its hinge locked.

        Raises:
            ValueError: The component has no hinge.
        """
        if self.hinge is None:
            raise ValueError(f"Component {self.name!r}: it has no hinge to lock")
        return dataclasses.replace(self, hinge=dataclasses.replace(self.hinge, locked=True))
