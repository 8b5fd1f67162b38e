"""Samples of the signed distance to meshes whose vertices a design moves."""

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
    """Coefficients of the splines that interpolate samples [m], shape (n,), as in the parameter `solid_distance`.

    Args:
        distance: Signed distances at the samples of the grid, in the order of the grid [m], shape (n,), float64.
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
    """Distance samples of a rigid body whose meshes have moved, differentiable with respect to the vertices.

    Args:
        sim: A simulation, with the solver `Articulated`, of a scene that has the body.
        name: Name of the body.
        solids: Indices of the solids of the model that belong to the body.
        meshes: The mesh of the body, or the meshes of its `Union`, each as vertices [m], shape (k, 3), float64, and
            faces, counter-clockwise seen from outside, shape (m, 3), int.

    Returns:
        For each mesh, the slice of the parameter `solid_distance` that belongs to the mesh, and the new values of this
        slice [m], shape (n,); an empty list if the body is not the solid of any contact.

    Raises:
        ValueError: The shape of the body in the scene does not consist of these meshes, or a mesh has left the grid of
            its samples.
        SceneError: The samples of a mesh miss most of its surface.
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
    """The result of `mesh_samples` for one solid: the slice, and the new values of the slice."""
    grid = grid_of(sim.model.solids, solid)
    _refuse_growth(sim, name, vertices.detach(), grid)
    distance = mesh_distance(torch.as_tensor(grid.positions), vertices.cpu(), faces.cpu())
    found = spline_coefficients(distance, grid)
    mesh = TriangleMesh(vertices.detach().cpu().numpy(), faces.cpu().numpy())
    refuse_thin_walls(grid, found.detach().numpy(), mesh, name)
    return slice(grid.first, grid.first + grid.size), found


def _refuse_growth(sim: Simulation[Any], name: str, vertices: torch.Tensor, grid: SampleGrid) -> None:
    """Raise if a mesh has left the grid of its samples."""
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
