"""Signed distance of points to triangle meshes, differentiable with respect to vertices and points."""

from typing import Any

import torch

from warpbots.contact.mesh_distance import nearest_on_mesh
from warpbots.design.mesh_arrays import check_mesh
from warpbots.scene.field_types import checked

__all__ = ["mesh_distance"]


@checked
def mesh_distance(points: torch.Tensor, vertices: torch.Tensor, faces: torch.Tensor) -> torch.Tensor:
    """Signed distance of points to a closed triangle mesh, concave or not [m], negative inside, shape (n,).

    The distance is exact up to rounding in double precision. Let x_c = sum_k l_k v_k be the point of the mesh nearest
    to x, on a face with the corners v_k, and n = (x - x_c) / d. In the derivatives of the distance d, the barycentric
    coordinates l_k of the nearest point are constant (envelope theorem):

        d = n . (x - x_c),   dd/dx = n,   dd/dv_k = -l_k n

    If several points are equally near, the derivatives are the derivatives of the distance to one of these points. For
    a point on the surface, n is the normal of the face.

    Args:
        points: Points [m], shape (n, 3), float64.
        vertices: Vertices [m], shape (k, 3), float64.
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.

    Raises:
        ValueError: An argument has the wrong type or shape, or a face has the index of a vertex that does not exist.
        NotImplementedError: A second derivative is requested.
    """
    check_mesh(vertices, faces, "mesh_distance")
    if points.dim() != 2 or points.shape[1] != 3:
        raise ValueError(f"mesh_distance: points must have shape (n, 3), got {tuple(points.shape)}")
    return _Distance.apply(points, vertices, faces)


class _Distance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: torch.Tensor, vertices: torch.Tensor, faces: torch.Tensor) -> torch.Tensor:
        found = nearest_on_mesh(*(a.detach().cpu().numpy() for a in (vertices, faces, points)))
        distance, face, share, normal = (
            torch.as_tensor(a, device=points.device)
            for a in (found.distance, found.face, found.barycentric, found.normal)
        )
        ctx.save_for_backward(points, vertices)
        ctx.corners, ctx.share, ctx.normal = faces[face.long()], share, normal
        return distance

    @staticmethod
    def backward(ctx: Any, distance_adj: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        return *_Slope.apply(ctx, distance_adj, *ctx.saved_tensors), None


class _Slope(torch.autograd.Function):
    """The gradient of a distance; differentiating this function again raises an error."""

    @staticmethod
    def forward(
        ctx: Any, call: Any, distance_adj: torch.Tensor, points: torch.Tensor, vertices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        points_adj = distance_adj[:, None] * call.normal
        each = -call.share[..., None] * points_adj[:, None]
        return points_adj, torch.zeros_like(vertices).index_add(0, call.corners.reshape(-1), each.reshape(-1, 3))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> None:
        raise NotImplementedError("mesh_distance has first derivatives only; take differences of its gradient")
