"""Observer of soft bodies on a grid, similar to a camera: density and momentum of matter in each cell."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import torch

from warpbots.observers.observer import Observation, refuse_unknown
from warpbots.observers.region import points_of
from warpbots.observers.rest_samples import RestSamples
from warpbots.scene.field_types import checked, conform
from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["Grid", "GridFields"]


@dataclasses.dataclass(frozen=True)
class Grid:
    """Density and momentum of matter in the cells of a grid that moves with the centre of mass.

    Points of matter are distributed to cells with quadratic B-splines, as in the material point method. In ChainQueen
    §4 an encoder observes the cells of the simulation's own grid. The observation is scaled for a neural network: it
    holds the density of each cell divided by the density of the robot at rest [1], followed by the momentum of each
    cell divided by the mass of a full cell and by the length of the robot [1/s].

    Attributes:
        cells: Number of cells along the longest side of the robot at rest.
        margin: Size of the grid divided by the size of the robot at rest; matter outside the grid is not observed.
        region: Name of the region that is observed, or None for all matter.
    """

    cells: int = 8
    margin: float = 2.0
    region: str | None = None

    def __post_init__(self):
        conform(self)
        if self.cells < 2 or not self.margin >= 1.0:
            raise ValueError(
                f"Grid: cells must be at least 2 and margin at least 1, got {self.cells} and {self.margin:g}"
            )

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the observation, shape (worlds, (1 + dim) * n_cells).

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name.
        """
        fields = GridFields(self, simulation)

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            refuse_unknown(simulation, parameters)
            return fields(state).flatten(start_dim=1)

        return observe


class GridFields:
    """Function that computes the fields of a `Grid`, in the form of an image with 1 + dim channels.

    The result has shape (worlds, 1 + dim, nx, ny) in 2D, or (worlds, 1 + dim, nx, ny, nz) in 3D.

    Attributes:
        shape: Number of cells along each axis.
        spacing: Edge of a cell [m].
    """

    def __init__(self, grid: Grid, simulation: "Simulation[Any]", multiple: int = 1):
        """Choose the cells of the grid.

        Args:
            grid: Settings of the grid.
            simulation: The simulation whose matter is observed.
            multiple: The number of cells along each axis is rounded up to a multiple of this number.
        """
        matter, self._points = simulation.model.matter, points_of(simulation, grid.region, "Grid")
        mass, volume = (matter.density * matter.volume)[self._points], matter.volume[self._points]
        size = RestSamples(simulation, grid.region, "Grid").size  # the same grid at every resolution
        self.spacing = float(size.max()) / grid.cells
        self.shape = tuple(int(-(-max(n, 1.0) // multiple) * multiple) for n in grid.margin * size / self.spacing)
        like = simulation.state().position
        self._share = like.new_tensor(mass / mass.sum())
        full = mass.sum() / volume.sum() * self.spacing ** len(size)
        self._mass = like.new_tensor(mass / full)
        self._length = float(size.max())

    def __call__(self, state: State) -> torch.Tensor:
        """Compute the fields of a state."""
        x, v = state.position[:, self._points], state.velocity[:, self._points] / self._length
        middle = 0.5 * torch.tensor(self.shape, dtype=x.dtype, device=x.device)
        place = (x - (self._share @ x)[:, None]) / self.spacing + middle  # in cells from the corner
        base = torch.floor(place).detach()
        away = place - base - 0.5  # from the middle of the cell
        weights = 0.5 * (0.5 - away) ** 2, 0.75 - away**2, 0.5 * (0.5 + away) ** 2
        carried = torch.cat([self._mass.expand(x.shape[:2])[..., None], self._mass[:, None] * v], dim=-1)
        fields = carried.new_zeros(len(x), int(np.prod(self.shape)), carried.shape[-1])
        strides = [int(np.prod(self.shape[axis + 1 :])) for axis in range(len(self.shape))]
        for offset in itertools.product((-1, 0, 1), repeat=len(self.shape)):
            cell = base + base.new_tensor(offset)
            inside = ((cell >= 0) & (cell < 2.0 * middle)).all(dim=-1)
            weight = torch.stack([weights[o + 1][..., axis] for axis, o in enumerate(offset)]).prod(dim=0) * inside
            index = (cell * base.new_tensor(strides)).sum(dim=-1).long() * inside
            part = weight[..., None] * carried
            fields = fields.scatter_add(1, index[..., None].expand_as(part), part)
        return fields.mT.reshape(len(x), -1, *self.shape)
