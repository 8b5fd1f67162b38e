"""Closed meshes that move as one, and the faces that other bodies can touch."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import torch

from warpbots.design.closed_mesh import open_edge
from warpbots.design.grid_mesh import surface_of_cells
from warpbots.design.mass_properties import closed_mass_properties
from warpbots.design.mesh_arrays import refuse_fractions
from warpbots.design.surface_points import SurfacePoints, surface_points
from warpbots.scene.field_types import checked, conform

__all__ = ["Part"]

_IN_PLANE = 1e-9
"""Largest distance of a vertex from a plane that contains it [m]."""


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """A closed mesh that moves as one.

    Attributes:
        vertices: Vertices of the mesh, with the handles of the cage at rest [m], shape (n, 3).
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
        exposed: Whether other bodies can touch each face, shape (m,), bool.
        points: Approximate number of contact points, which are spread over the exposed faces.

    Raises:
        ValueError: The mesh is open or encloses no volume, arrays do not fit, or contact points are requested but no
            face is exposed.
    """

    vertices: np.ndarray
    faces: np.ndarray
    exposed: np.ndarray
    points: int = 0

    def __post_init__(self):
        conform(self)
        if np.ndim(self.vertices) != 2 or np.shape(self.vertices)[1] != 3 or not np.isfinite(self.vertices).all():
            raise ValueError(
                f"Part: vertices must be finite numbers of shape (n, 3), got shape {np.shape(self.vertices)}"
            )
        faces, count = np.asarray(self.faces), len(self.vertices)
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.min(initial=0) < 0 or faces.max(initial=0) >= count:
            raise ValueError(f"Part: faces must name three of {count} vertices each, got an array {faces.shape}")
        refuse_fractions(faces, "Part")
        if np.shape(self.exposed) != (len(faces),):
            raise ValueError(f"Part: exposed must have shape ({len(faces)},), got {np.shape(self.exposed)}")
        _refuse_numbers("exposed", self.exposed, "face")
        if (edge := open_edge(faces, count)) is not None:
            raise ValueError(
                f"Part: its mesh is open at the edge of vertices {edge[0]} and {edge[1]}, which has not one face on "
                f"each side: close it, merge vertices that coincide, and turn all faces outwards"
            )
        volume = closed_mass_properties(torch.as_tensor(self.vertices), torch.as_tensor(faces)).volume.item()
        if not volume > 0.0:
            raise ValueError(
                f"Part: its mesh encloses {volume:.3g} m^3, which must be positive, with faces counter-clockwise seen "
                f"from outside"
            )
        if self.points < 0 or (self.points and not np.any(self.exposed)):
            raise ValueError(
                f"Part: {self.points} contact points cannot be spread over {np.sum(self.exposed)} exposed faces"
            )

    @classmethod
    @checked
    def of_mesh(
        cls, vertices: np.ndarray, faces: np.ndarray, hidden: Sequence[tuple[int, float]] = (), points: int = 0
    ) -> "Part":
        """A part made from a mesh; all its faces are exposed, except for faces in the planes of `hidden`.

        Args:
            vertices: Vertices [m], shape (n, 3).
            faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
            hidden: Planes in which faces cannot be touched, each as the index of the axis perpendicular to the plane
                and the coordinate along this axis [m].
            points: Approximate number of contact points, which are spread over the exposed faces.
        """
        refuse_fractions(faces, "Part")
        vertices, faces = np.array(vertices, dtype=np.float64), np.array(faces, dtype=np.int64)
        exposed = np.ones(len(faces), dtype=bool)
        for axis, plane in hidden:
            exposed &= (np.abs(vertices[faces][..., axis] - plane) > _IN_PLANE).any(axis=1)
        return cls(vertices, faces, exposed, points)

    @classmethod
    @checked
    def of_cells(
        cls,
        nodes: np.ndarray,
        filled: np.ndarray | None = None,
        hidden: Sequence[tuple[int, float]] = (),
        points: int = 0,
    ) -> "Part":
        """A part made from cells of a structured grid.

        Args:
            nodes: Positions of the nodes of the grid [m], shape (i + 1, j + 1, k + 1, 3).
            filled: Whether each cell belongs to the solid, shape (i, j, k), bool; None if all cells do.
            hidden: Planes in which faces cannot be touched, each as the index of the axis perpendicular to the plane
                and the coordinate along this axis [m].
            points: Approximate number of contact points, which are spread over the exposed faces.
        """
        size = tuple(n - 1 for n in nodes.shape[:3])
        cells = np.ones(size, dtype=bool) if filled is None else filled
        if cells.shape != size:
            raise ValueError(f"Part: filled must have shape {size}, got {cells.shape}")
        _refuse_numbers("filled", cells, "cell")
        return cls.of_mesh(*surface_of_cells(nodes, cells), hidden, points)

    @checked
    def moved(self, rotation: np.ndarray) -> "Part":
        """The part in a rotated frame: x' = R x, with the matrix R = `rotation`."""
        return dataclasses.replace(self, vertices=self.vertices @ rotation.T)

    @functools.cached_property
    def contacts(self) -> SurfacePoints | None:
        """The contact points of the part, which move with the mesh; None if the part has no contact points."""
        return surface_points(self.vertices, self.faces[self.exposed], self.points) if self.points else None


def _refuse_numbers(field: str, marks: np.ndarray, of: str) -> None:
    """Raise unless marks of faces or cells are truth values; numbers would be taken as indices."""
    if np.asarray(marks).dtype != bool:
        raise ValueError(
            f"Part: {field} must be True or False for each {of}, got numbers of type {np.asarray(marks).dtype}; "
            f"{field}.astype(bool) makes them of 0 and 1"
        )
