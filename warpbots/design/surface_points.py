"""Points on the surface of a mesh, which move with the mesh, and the areas that these points represent."""

import dataclasses

import numpy as np
import torch

from warpbots.design.mesh_arrays import check_mesh
from warpbots.scene.field_types import checked

__all__ = ["SurfacePoints", "surface_points"]

_PATCHES = 32
"""Patches of the surface for each point; a patch belongs to the nearest point."""


@dataclasses.dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Points fixed to the faces of a triangle mesh; each point represents a share of the surface.

    Attributes:
        faces: Indices of the three vertices of each face of the mesh, shape (m, 3), int.
        face: Index of the face on which each point lies, shape (n,), int.
        barycentric: Barycentric coordinates of each point in the face on which it lies [1], shape (n, 3).
        share: Fraction of the area of each face that each point represents [1], shape (n, m).
    """

    faces: torch.Tensor
    face: torch.Tensor
    barycentric: torch.Tensor
    share: torch.Tensor

    def positions(self, vertices: torch.Tensor) -> torch.Tensor:
        """Positions of the points for the given vertices of the mesh [m], shape (n, 3)."""
        return (self.barycentric.to(vertices)[..., None] * vertices[self.faces[self.face]]).sum(dim=1)

    def areas(self, vertices: torch.Tensor) -> torch.Tensor:
        """Areas that the points represent for the given vertices [m^2], shape (n,); the sum is the area of the mesh."""
        corner = vertices[self.faces]
        normal = torch.linalg.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        return self.share.to(vertices) @ (0.5 * torch.linalg.vector_norm(normal, dim=-1))


@checked
def surface_points(vertices: np.ndarray, faces: np.ndarray, count: int, seed: int = 0) -> SurfacePoints:
    """About `count` points, spread evenly over a triangle mesh by Poisson disk sampling.

    Args:
        vertices: Vertices [m], shape (k, 3).
        faces: Indices of the three vertices of each face, shape (m, 3), int.
        count: Requested number of points; there may be slightly fewer.
        seed: Seed of the random numbers.

    Raises:
        ValueError: `count` is below 1, `seed` is negative, or an argument has the wrong type or shape.
    """
    import trimesh
    from scipy.spatial import cKDTree

    if count < 1:
        raise ValueError(f"surface_points: count must be at least 1, got {count}")
    check_mesh(vertices, faces, "surface_points")
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    points, face = trimesh.sample.sample_surface_even(mesh, count, seed=seed)
    barycentric = trimesh.triangles.points_to_barycentric(mesh.triangles[face], points)
    patch_face, patches = _patches(mesh.triangles, mesh.area_faces, _PATCHES * len(points))
    _, nearest = cKDTree(points).query(patches)
    per_face = np.bincount(patch_face, minlength=len(mesh.faces))
    share = np.zeros((len(points), len(mesh.faces)))
    np.add.at(share, (nearest, patch_face), 1.0 / per_face[patch_face])
    return SurfacePoints(*(torch.as_tensor(np.array(a)) for a in (mesh.faces, face, barycentric, share)))


def _patches(triangles: np.ndarray, areas: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Face and centre [m] of each of at least `count` patches of similar area.

    The patches of a face are the s^2 equal triangles into which it is cut.
    """
    cuts = np.ceil(np.sqrt(count * areas / areas.sum())).astype(int).clip(1)
    face, found = [], []
    for s in np.unique(cuts):
        i, j = (a.ravel() for a in np.mgrid[:s, :s])
        low, high = (i + j < s), (i + j < s - 1)
        u = np.concatenate([(i + 1 / 3)[low], (i + 2 / 3)[high]]) / s
        v = np.concatenate([(j + 1 / 3)[low], (j + 2 / 3)[high]]) / s
        own = np.flatnonzero(cuts == s)
        corner = triangles[own]
        weights = np.stack([1.0 - u - v, u, v], axis=1)
        found.append(np.einsum("pk,mkd->mpd", weights, corner).reshape(-1, 3))
        face.append(np.repeat(own, len(u)))
    return np.concatenate(face), np.concatenate(found)
