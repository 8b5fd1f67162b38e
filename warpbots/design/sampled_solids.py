"""Samples of the signed distance of meshes that move under a design."""

import math
from typing import Any

import numpy as np
import torch

from warpbots.contact.sample_grid import SampleGrid
from warpbots.contact.solid import grid_of
from warpbots.design.mesh_distance import mesh_distance
from warpbots.scene.shapes import TriangleMesh
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
    sim: Simulation[Any], name: str, vertices: torch.Tensor, faces: torch.Tensor
) -> tuple[slice, torch.Tensor] | None:
    """Samples of a rigid body as a solid where its mesh has moved, differentiable with respect to its vertices.

    Args:
        sim: A simulation of a scene that has the body, under `Articulated`.
        name: Name of the body.
        vertices: Vertices of its mesh [m], shape (k, 3), float64.
        faces: Vertices of the faces, counter-clockwise seen from outside, shape (m, 3), int.

    Returns:
        Which of the samples of the parameter `solid_distance` are those of the body, and their coefficients [m], shape
        (n,); None if no contact has the body as a solid.

    Raises:
        ValueError: The scene has another shape of the body than a mesh, or the mesh has left its samples.
        SceneError: Most of its surface is lost between the samples.
    """
    model = sim.model
    solids = np.flatnonzero(model.solids.body.numpy() == model.robot.body(name))
    if not len(solids):
        return None
    (shape,) = (body.shape for body in model.scene.rigid if body.name == name)
    if not isinstance(shape, TriangleMesh):
        raise ValueError(
            f"CagedBody {name!r}: contacts have it as a solid, whose shape in the scene is a {type(shape).__name__}, "
            f"which does not follow its handles; use the body that CagedBody.rigid_body makes, a TriangleMesh"
        )
    grid = grid_of(model.solids, int(solids[0]))
    _refuse_growth(sim, name, vertices.detach(), grid)
    distance = mesh_distance(torch.as_tensor(grid.positions), vertices.cpu(), faces.cpu())
    found = spline_coefficients(distance, grid)
    mesh = TriangleMesh(vertices.detach().cpu().numpy(), faces.cpu().numpy())
    refuse_thin_walls(grid, found.detach().numpy(), mesh, name, 2)
    return slice(grid.first, grid.first + grid.size), found


def _refuse_growth(sim: Simulation[Any], name: str, vertices: torch.Tensor, grid: SampleGrid) -> None:
    """Raise if a mesh has left its samples."""
    lower, upper = vertices.min(dim=0).values.numpy(), vertices.max(dim=0).values.numpy()
    excess = grid.excess(lower, upper)
    if excess > 0.0:
        needed = sim.solver.room + excess + 0.5 * grid.spacing  # of which rounding to whole samples may use a half
        digit = 10.0 ** math.floor(math.log10(needed) - 1.0)
        raise ValueError(
            f"CagedBody {name!r}: its handles move its mesh by {excess:.2g} m out of the samples of its solid, which "
            f"were laid when the simulation was made; use Articulated(room={digit * math.ceil(needed / digit):.2g}) or "
            f"more [m], or change the design less"
        )
