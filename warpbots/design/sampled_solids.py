"""Samples of the signed distance of meshes that move under a design."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from warpbots.contact.sample_grid import SampleGrid
from warpbots.contact.solid_forms import grid_of
from warpbots.design.mesh_distance import mesh_distance
from warpbots.scene.shapes import TriangleMesh, parts_of
from warpbots.simulation import Simulation
from warpbots.solvers.articulated.thin_walls import refuse_thin_walls

__all__ = ["mesh_samples", "spline_coefficients"]


def spline_coefficients(distance: torch.Tensor, grid: SampleGrid) -> torch.Tensor:
    """Coefficients of the splines through distances at samples [m], shape (n,), as in the parameter `solid_distance`.

    Args:
        distance: Signed distances at the samples of a grid, in its order [m], shape (n,), float64.
        grid: The grid.
    """
    found = distance.reshape(grid.counts)
    for matrix in grid.filters():  # along the first axis, which becomes the last
        found = torch.tensordot(found, torch.as_tensor(matrix).to(distance), dims=([0], [1]))
    return found.reshape(-1)


def mesh_samples(
    sim: Simulation[Any],
    name: str,
    solids: Sequence[int] | np.ndarray,
    meshes: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> list[tuple[slice, torch.Tensor]]:
    """Distance samples of a rigid body whose meshes have moved, differentiable with respect to their vertices.

    Args:
        sim: A simulation of a scene that has the body, under `Articulated`.
        name: Name of the body.
        solids: Numbers of the solids of the model that it carries.
        meshes: Its mesh, or the meshes of its union: vertices [m], shape (k, 3), float64, and the vertices of faces,
            counter-clockwise seen from outside, shape (m, 3), int.

    Returns:
        For each mesh, which samples of the parameter `solid_distance` belong to it, and their coefficients [m], shape
        (n,); nothing if no contact has the body as a solid.

    Raises:
        ValueError: The scene has another shape of the body than these meshes, or a mesh has left its samples.
        SceneError: Most of the surface of a mesh is lost between the samples.
    """
    if not len(solids):
        return []
    (shape,) = (body.shape for body in sim.model.scene.rigid if body.name == name)
    parts = parts_of(shape)
    if len(parts) != len(meshes) or not all(isinstance(part, TriangleMesh) for part in parts):
        kinds = ", ".join(dict.fromkeys(type(part).__name__ for part in parts))
        raise ValueError(
            f"body {name!r}: contacts have it as a solid, whose shape in the scene is {len(parts)} x {kinds} and does "
            f"not follow a design of {len(meshes)} x TriangleMesh; use the body that the design makes"
        )
    return [_samples_of(sim, name, int(solid), *mesh) for solid, mesh in zip(solids, meshes, strict=True)]


def _samples_of(
    sim: Simulation[Any], name: str, solid: int, vertices: torch.Tensor, faces: torch.Tensor
) -> tuple[slice, torch.Tensor]:
    """Samples of one solid."""
    grid = grid_of(sim.model.solids, solid)
    _refuse_growth(sim, name, vertices.detach(), grid)
    distance = mesh_distance(torch.as_tensor(grid.positions), vertices.cpu(), faces.cpu())
    found = spline_coefficients(distance, grid)
    mesh = TriangleMesh(vertices.detach().cpu().numpy(), faces.cpu().numpy())
    refuse_thin_walls(grid, found.detach().numpy(), mesh, name)
    return slice(grid.first, grid.first + grid.size), found


def _refuse_growth(sim: Simulation[Any], name: str, vertices: torch.Tensor, grid: SampleGrid) -> None:
    """Raise if a mesh has left its samples."""
    lower, upper = vertices.min(dim=0).values.numpy(), vertices.max(dim=0).values.numpy()
    excess = grid.excess(lower, upper)
    if excess > 0.0:
        needed = sim.solver.room + excess + 0.5 * grid.spacing  # of which rounding to whole samples may use a half
        digit = 10.0 ** math.floor(math.log10(needed) - 1.0)
        raise ValueError(
            f"body {name!r}: the design moves its mesh by {excess:.2g} m out of the samples of its solid, which "
            f"were laid when the simulation was made; use Articulated(room={digit * math.ceil(needed / digit):.2g}) or "
            f"more [m], or change the design less"
        )
