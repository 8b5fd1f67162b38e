"""Places of the elements of a model at rest, from which a value per region or a field over a scene is evaluated."""

import dataclasses

import numpy as np

from warpbots.scene import Scene, SoftBody
from warpbots.solvers.matter import Matter, regions_at

__all__ = ["Places", "element_places"]

_SLACK = 1e-6
"""Distance from a region up to which the centre of an element counts as in it [extent of the vertices]."""


@dataclasses.dataclass(frozen=True)
class Places:
    """Elements of one kind at rest, on the host.

    Attributes:
        vertices: Positions of their vertices [m], float64, shape (n, n_vertices, dim); NaN for vertices that an element
            lacks because others of its kind have more.
        body: Index in the scene of the body of each element, -1 for none, shape (n,), int.
        regions: Membership by region name, each of shape (n,), bool.
    """

    vertices: np.ndarray
    body: np.ndarray
    regions: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def center(self) -> np.ndarray:
        """Means of the vertices [m], shape (n, dim)."""
        return np.nanmean(self.vertices, axis=1)

    def members(self, scene: Scene, name: str) -> np.ndarray:
        """Which elements are in the region, or else the body, called `name`, shape (n,), bool.

        Args:
            scene: The scene that was built.
            name: Name of a region or of a body of the scene.
        """
        if name in scene.regions():
            return self.regions.get(name, np.zeros(len(self), dtype=bool))
        return self.body == [b.name for b in scene.bodies].index(name)


def element_places(scene: Scene, matter: Matter, table: np.ndarray, body: np.ndarray | None = None) -> Places:
    """Elements whose vertices are points of matter.

    An element of one vertex is in the regions of its point; any other is in the regions that contain its centre.

    Args:
        scene: The scene that was built.
        matter: All soft bodies at rest.
        table: Points that are the vertices of each element, -1 for none, shape (n, n_vertices).
        body: Index in the scene of the body of each element, shape (n,); None for the body of its first vertex.
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
