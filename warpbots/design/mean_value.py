"""Mean value coordinates of closed triangle meshes.

Ju, Schaefer & Warren 2005, "Mean value coordinates for closed triangular meshes". With r_i = p_i - x, the projection of
a triangle p_0 p_1 p_2 onto the unit sphere around x is a spherical triangle, over which the integral of the outward
unit normals of the sphere is

    m = 1/2 sum_i theta_i n_i,   n_i = r_{i+1} x r_{i+2} / |...|,   theta_i the angle between r_{i+1} and r_{i+2}

and the weights of the corners of the triangle are the solution of sum_i w_i r_i = m:

    w_i = (n_i . m) / (n_i . r_i)

The vectors m of all faces of a closed mesh add up to zero, so that sum_i w_i (p_i - x) = 0. After normalisation the
weights add up to one and reproduce x, and therefore every linear function. Cross products are computed with an edge, as
r_{i+1} x (p_{i+2} - p_{i+1}), and denominators with the normal of the face; therefore both are accurate close to a face
and far from it.

Close to the plane of a face the quotient w_i is inaccurate. Instead, the least-norm solution of the system sum_i w_i
r_i = m is used there; its residual is small whatever the condition number of the system is. For a point on a face, an
edge or a vertex, the weights are barycentric coordinates.
"""

import torch

from warpbots.design.mesh_arrays import check_mesh
from warpbots.scene.field_types import checked

__all__ = ["mean_value_weights"]

_CHUNK = 1 << 21
"""Number of pairs of points and faces that are computed together."""

_FLAT = 1e-3
"""Volume of a tetrahedron below which it counts as flat, times six, per product of its edges at the point [1]."""

_ON = 1e-14
"""Tolerance for points on a face [1]: of their distance per face length, and of barycentric coordinates below 0."""


@checked
def mean_value_weights(points: torch.Tensor, vertices: torch.Tensor, faces: torch.Tensor) -> torch.Tensor:
    """Mean value coordinates of points with respect to the vertices of a closed triangle mesh.

    The coordinates are differentiable with respect to the points, except for points on the mesh, where they have a
    kink.

    Args:
        points: Points inside or outside of the mesh [m], shape (n, 3), float64.
        vertices: Vertices [m], shape (k, 3), float64.
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.

    Returns:
        Weights [1], shape (n, k); each row adds up to one.

    Raises:
        ValueError: An argument has the wrong type or shape, or a face has the index of a vertex that does not exist.
    """
    check_mesh(vertices, faces, "mean_value_weights")
    if points.dim() != 2 or points.shape[1] != 3:
        raise ValueError(f"mean_value_weights: points must have shape (n, 3), got {tuple(points.shape)}")
    size = max(1, _CHUNK // len(faces))
    return torch.cat([_weights(part, vertices, faces) for part in points.split(size)])


def _weights(points: torch.Tensor, vertices: torch.Tensor, faces: torch.Tensor) -> torch.Tensor:
    """The result of `mean_value_weights` for a block of points, without checks of the arguments."""
    corner = vertices[faces]  # (m, 3 corners, 3)
    r = corner - points[:, None, None]  # (n, m, 3 corners, 3)
    first, second = r.roll(-1, dims=2), r.roll(-2, dims=2)
    cross = torch.linalg.cross(first, (corner.roll(-2, dims=1) - corner.roll(-1, dims=1))[None])
    sine = torch.linalg.vector_norm(cross, dim=-1)
    angle = torch.atan2(sine, (first * second).sum(-1))
    unit = cross / sine.clamp(min=torch.finfo(sine.dtype).tiny)[..., None]
    m = 0.5 * (angle[..., None] * unit).sum(dim=2)  # (n, m, 3)
    normal = torch.linalg.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    det = (r[:, :, 0] * normal).sum(-1)  # (n, m): six times the volume of the tetrahedron
    on = _ON * torch.linalg.vector_norm(normal, dim=-1) ** 1.5
    flat = det.abs() <= torch.maximum(_FLAT * torch.linalg.vector_norm(r, dim=-1).prod(dim=-1), on)
    w = (cross * m[:, :, None]).sum(-1) / torch.where(flat, 1.0, det)[..., None]
    n, f = flat.nonzero(as_tuple=True)
    w = w.index_put((n, f), _solved(r[n, f], m[n, f]))
    weights = torch.zeros(len(points), len(vertices), dtype=points.dtype, device=points.device)
    weights = weights.index_add(1, faces.reshape(-1), w.reshape(len(points), -1))
    weights = weights / weights.sum(dim=1, keepdim=True)
    inside = _barycentric(r[n, f].detach(), normal[f])
    held = (inside.min(dim=-1).values >= -_ON) & (det[n, f].abs() <= on[f])
    for p, face, share in zip(n[held], f[held], inside[held], strict=True):  # on an edge any of its faces will do
        own = torch.zeros_like(weights[0]).index_put((faces[face],), share)
        weights = weights.index_put((p,), own)
    return weights


def _barycentric(r: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """Barycentric coordinates of the orthogonal projections of points onto the planes of faces [1], shape (..., 3)."""
    areas = torch.linalg.cross(r.roll(-1, dims=-2), r.roll(-2, dims=-2))
    return (areas * normal[..., None, :]).sum(-1) / (normal * normal).sum(-1, keepdim=True)


def _solved(r: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """The least-norm solution w of sum_i w_i r_i = m, for points nearly in the plane of the corners, shape (..., 3)."""
    size = torch.linalg.vector_norm(r, dim=-1).clamp(min=torch.finfo(r.dtype).tiny)
    inverse = torch.linalg.pinv((r / size[..., None]).transpose(-1, -2), rtol=1e-15)
    return (inverse @ m[..., None])[..., 0] / size
