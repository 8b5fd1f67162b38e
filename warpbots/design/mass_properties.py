"""Volume, mass, centre of mass and inertia of closed triangle meshes, differentiable with respect to the vertices."""

import dataclasses

import torch

from warpbots.design.mesh_arrays import check_mesh, refuse_open
from warpbots.scene.field_types import checked

__all__ = ["MassProperties", "closed_mass_properties", "mass_properties"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass properties of a solid.

    Attributes:
        volume: Volume [m^3], shape ().
        mass: Mass [kg], shape ().
        center: Centre of mass [m], shape (3,).
        inertia: Moments of inertia about the centre of mass [kg m^2], shape (3, 3).
    """

    volume: torch.Tensor
    mass: torch.Tensor
    center: torch.Tensor
    inertia: torch.Tensor


@checked
def mass_properties(vertices: torch.Tensor, faces: torch.Tensor, density: float | torch.Tensor = 1.0) -> MassProperties:
    """Mass properties of the solid that a closed triangle mesh encloses.

    The result is exact. A tetrahedron connects each face to one common point. The integrals of 1, x and x x^T over a
    tetrahedron are polynomials of its corners (Tonon 2004), and are added with the sign of the volume of the
    tetrahedron. With the corners a, b, c of a face relative to the common point and det = det(a, b, c),

        V = sum det / 6,   V c = sum det / 24 (a + b + c)
        integral of x x^T = sum det / 120 (a a^T + b b^T + c c^T + (a + b + c)(a + b + c)^T)

    Args:
        vertices: Vertices [m], shape (k, 3).
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
        density: Density [kg/m^3].

    Raises:
        ValueError: An argument has the wrong type or shape, a face has the index of a vertex that does not exist, the
            mesh is open, or the density is not positive.
    """
    check_mesh(vertices, faces, "mass_properties")
    refuse_open(vertices.detach().cpu().numpy(), faces.cpu().numpy(), "mass_properties")
    if isinstance(density, torch.Tensor) and density.numel() != 1:
        raise ValueError(f"mass_properties: density must be one number [kg/m^3], got shape {tuple(density.shape)}")
    if not density > 0.0:
        raise ValueError(f"mass_properties: density must be positive [kg/m^3], got {float(density):g}")
    return closed_mass_properties(vertices, faces, density)


def closed_mass_properties(
    vertices: torch.Tensor, faces: torch.Tensor, density: float | torch.Tensor = 1.0
) -> MassProperties:
    """The result of `mass_properties` for a mesh that is known to be closed, without checks of the arguments."""
    origin = vertices.detach().mean(dim=0)  # where tetrahedra have few digits to lose
    r = (vertices - origin).T.contiguous()  # by coordinate: half the time of (k, 3)
    a, b, c = (r.index_select(1, corner) for corner in faces.T)
    det = (a * torch.linalg.cross(b, c, dim=0)).sum(dim=0)
    total = a + b + c
    volume = det.sum() / 6.0
    center = total @ det / (24.0 * volume)
    terms = torch.cat([a, b, c, total], dim=1)
    second = (det.repeat(4) * terms) @ terms.T / 120.0 - volume * torch.outer(center, center)
    second = 0.5 * (second + second.T)  # to the last bit
    identity = torch.eye(3, dtype=vertices.dtype, device=vertices.device)
    inertia = density * (second.trace() * identity - second)
    return MassProperties(volume, density * volume, origin + center, inertia)
