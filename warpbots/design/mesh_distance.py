"""Signed distance to triangle meshes, differentiable with respect to vertices and points."""

from typing import Any

import torch

from warpbots.contact.mesh_distance import nearest_on_mesh
from warpbots.design.mesh_arrays import check_mesh
from warpbots.scene.field_types import checked

__all__ = ["mesh_distance"]


@checked
def mesh_distance(points: torch.Tensor, vertices: torch.Tensor, faces: torch.Tensor) -> torch.Tensor:
    """Signed distance of points to a closed triangle mesh, concave or not [m], negative inside, shape (n,).

    Exact up to rounding in double precision. With the nearest point x_c = sum_k l_k v_k, on a face with corners v_k,
    and the normal n = (x - x_c) / d, the nearest point of a moved mesh moves with the face, to first order (envelope
    theorem):

        d = n . (x - x_c),   dd/dx = n,   dd/dv_k = -l_k n

    Where several points are equally near, these are the derivatives of one of their distances; on the surface n is the
    normal of the face.

    Args:
        points: Points [m], shape (n, 3), float64.
        vertices: Vertices [m], shape (k, 3), float64.
        faces: Vertices of the faces, counter-clockwise seen from outside, shape (m, 3), int.

    Raises:
        ValueError: An argument has the wrong type or shape, or faces name vertices that do not exist.
        NotImplementedError: A second derivative is asked for.
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
    """The gradient of a distance, as a function that cannot be differentiated again."""

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
