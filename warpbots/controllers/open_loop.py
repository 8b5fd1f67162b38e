"""Open-loop control."""

from typing import Any

import torch
import warp as wp

from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.simulation.ages import age
from warpbots.solvers import State

__all__ = ["OpenLoop"]


class OpenLoop(torch.nn.Module):
    """A table of control signals, with one row for each control interval; tanh bounds the signals.

    Attributes:
        table: The parameter to optimise, shape (steps, channels); the control signals are tanh(table).
    """

    @checked
    def __init__(self, simulation: "Simulation[Any]", steps: int):
        """Make a table of zeros.

        Args:
            simulation: The simulation to control.
            steps: Number of control intervals.

        Raises:
            ValueError: `steps` is not an integer, or is below 1.
        """
        super().__init__()
        if steps < 1:
            raise ValueError(f"OpenLoop: steps must be at least 1, got {steps}")
        self._dt, self._worlds = simulation.dt, simulation.worlds
        dtype, device = wp.dtype_to_torch(simulation.model.scalar), wp.device_to_torch(simulation.model.device)
        self.table = torch.nn.Parameter(torch.zeros(steps, simulation.channels, dtype=dtype, device=device))

    def forward(self, state: State, time: float | torch.Tensor) -> torch.Tensor:
        """Control signals at `time`, shape (worlds, channels).

        Args:
            state: The state, which has no effect.
            time: Time since the start of the worlds [s]: a single number, or one number for each world,
                shape (worlds,).

        Raises:
            IndexError: `time` is outside the table.
            ValueError: `time` is neither a number nor one number for each world.
        """
        begun = age(time, self._worlds, self.table.device, "OpenLoop: time")
        if isinstance(begun, float):
            return torch.tanh(self.table[self._row(begun)]).expand(self._worlds, -1)
        return torch.tanh(self.table[[self._row(each) for each in begun.tolist()]])

    def _row(self, time: float) -> int:
        """Index of the row of the table for the control interval that begins at `time` [s]."""
        step = round(time / self._dt)
        if not 0 <= step < len(self.table):
            raise IndexError(
                f"OpenLoop: the table has {len(self.table)} control intervals, but interval {step} was requested; "
                + (f"make it with steps={step + 1} or more" if step > 0 else "time begins at 0")
            )
        return step
