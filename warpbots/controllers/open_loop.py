"""Open-loop control."""

from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from warpbots.scene.field_types import fitted
from warpbots.solvers import State

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["OpenLoop"]


class OpenLoop(torch.nn.Module):
    """A table of controls, one row per control interval, bounded by tanh.

    Attributes:
        table: The parameter, shape (steps, channels); the control is its tanh.
    """

    def __init__(self, simulation: "Simulation[Any]", steps: int):
        """Start at rest: all controls zero.

        Args:
            simulation: The simulation to control.
            steps: Number of control intervals.

        Raises:
            ValueError: `steps` is not an integer, or below 1.
        """
        super().__init__()
        if fitted(steps, int, "OpenLoop: steps") < 1:
            raise ValueError(f"OpenLoop: steps must be at least 1, got {steps}")
        self._dt, self._worlds = simulation.dt, simulation.worlds
        dtype, device = wp.dtype_to_torch(simulation.model.scalar), wp.device_to_torch(simulation.model.device)
        self.table = torch.nn.Parameter(torch.zeros(steps, simulation.channels, dtype=dtype, device=device))

    def forward(self, state: State, time: float) -> torch.Tensor:
        """Control at `time` [s], shape (worlds, channels).

        Raises:
            IndexError: `time` is past the end of the table.
        """
        step = round(time / self._dt)
        if step >= len(self.table):
            raise IndexError(
                f"OpenLoop: the table has {len(self.table)} control intervals, but interval {step} was requested; make "
                f"it with steps={step + 1} or more"
            )
        return torch.tanh(self.table[step]).expand(self._worlds, -1)
