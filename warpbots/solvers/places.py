"""Places of the elements of a model at rest, which decide the region of an element and its value in a field."""

import dataclasses

import numpy as np

from warpbots.scene import Scene, SoftBody
from warpbots.solvers.matter import Matter, regions_at

__all__ = ["Places", "element_places"]

_SLACK = 1e-6
"""Largest distance from a region at which the centre of an element counts as in it [extent of all vertices]."""


@dataclasses.dataclass(frozen=True)
class Places:
    """Elements of one kind at rest, on the host.

    Attributes:
        vertices: Positions of the vertices of each element [m], float64, shape (n, n_vertices, dim); NaN fills the
            entries of elements with fewer vertices.
        body: Index in the scene of the body of each element, -1 for none, shape (n,), int.
        regions: Whether each element is in a region, by the name of the region, each of shape (n,), bool.
    """

    vertices: np.ndarray
    body: np.ndarray
    regions: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def center(self) -> np.ndarray:
        """Centres of the elements, the means of their vertices [m], shape (n, dim)."""
        return np.nanmean(self.vertices, axis=1)

    def members(self, scene: Scene, name: str) -> np.ndarray:
        """Whether each element is in the region `name` or, if there is no such region, in the body `name`.

        Args:
            scene: The scene from which the model was built.
            name: Name of a region or of a body of the scene.

        Returns:
            Shape (n,), bool.
        """
        if name in scene.regions():
            return self.regions.get(name, np.zeros(len(self), dtype=bool))
        return self.body == [b.name for b in scene.bodies].index(name)


def element_places(scene: Scene, matter: Matter, table: np.ndarray, body: np.ndarray | None = None) -> Places:
    """Places of elements whose vertices are points of matter.

    An element with one vertex is in the regions of this point; an element with several vertices is in the regions that
    contain its centre.

    Args:
        scene: The scene from which the model was built.
        matter: All soft bodies at rest.
        table: Points of matter that are the vertices of each element, shape (n, n_vertices); -1 fills the rows of
            elements with fewer vertices.
        body: Index in the scene of the body of each element, shape (n,); None for the body of the first vertex.
    """
    body = matter.body[table[:, 0]] if body is None else body
    if table.shape[1] == 1:
        regions = {name: inside[table[:, 0]] for name, inside in matter.regions.items()}
        return Places(matter.position[table], body, regions)
    vertices = np.where(table[..., None] < 0, np.nan, matter.position[table])
    places = Places(vertices, body, {name: np.zeros(len(table), dtype=bool) for name in scene.regions()})
    reach = np.nanmax(vertices, axis=1) - np.nanmin(vertices, axis=1)
    for i, part in enumerate(scene.bodies):
        own = np.flatnonzero(body == i)
        if isinstance(part, SoftBody) and len(own):
            slack = _SLACK * np.linalg.norm(reach[own], axis=1)
            for name, inside in regions_at(part, places.center[own], slack).items():
                places.regions[name][own] = inside
    return places
