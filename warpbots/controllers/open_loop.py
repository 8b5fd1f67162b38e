"""Open-loop control."""

import math
from typing import Any

import torch
import warp as wp

from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.simulation.ages import age
from warpbots.simulation.rollouts import Rollout, innermost_rollout
from warpbots.solvers import State
from warpbots.user_warning import warn_user

__all__ = ["OpenLoop"]

_ROUNDING = 1e-2
"""Deviation of a time from the beginning of a control interval that counts as rounding [control intervals]."""


class OpenLoop(torch.nn.Module):
    """A table of control signals, with one row for each control interval; tanh bounds the signals.

    A rollout with control intervals twice as long uses every second row; a warning says how many rows are never used.

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
        self._last: Rollout | None = None  # the rollout that was last examined for rows that it leaves out
        dtype, device = wp.dtype_to_torch(simulation.model.scalar), wp.device_to_torch(simulation.model.device)
        self.table = torch.nn.Parameter(torch.zeros(steps, simulation.channels, dtype=dtype, device=device))

    def forward(self, state: State, time: float | torch.Tensor) -> torch.Tensor:
        """Control signals at `time`, shape (worlds, channels).

        Args:
            state: The state, which has no effect.
            time: Time since the start of the worlds [s]: a single number, or one number for each world,
                shape (worlds,). The table has no clock of its own: in a loop of `Simulation.step`, control interval k
                begins at ``k * sim.dt``.

        Raises:
            IndexError: `time` is outside the table.
            ValueError: `time` is neither a number nor one number for each world, or it is between two rows, as in a
                simulation with shorter control intervals.
        """
        begun = age(time, self._worlds, self.table.device, "OpenLoop: time")
        self._warn_of_unused_rows()
        if isinstance(begun, float):
            return torch.tanh(self.table[self._row(begun)]).expand(self._worlds, -1)
        return torch.tanh(self.table[[self._row(each) for each in begun.tolist()]])

    def _warn_of_unused_rows(self) -> None:
        """Warn once in each rollout whose control intervals are so long that it passes over rows."""
        rollout, rows = innermost_rollout(), len(self.table)
        if rollout is None or rollout is self._last:
            return
        self._last = rollout
        stride = round(rollout.dt / self._dt)
        if stride > 1 and rows > 1:
            used = math.ceil(rows / stride)
            warn_user(
                f"OpenLoop: the table has a row for every {self._dt:g} s, but this rollout has control intervals of "
                f"{rollout.dt:g} s and uses one row in {stride}: {rows - used} of {rows} rows are never used, and have "
                f"a zero gradient; make the table with the simulation that it controls"
            )

    def _row(self, time: float) -> int:
        """Index of the row of the table for the control interval that begins at `time` [s]."""
        step = round(time / self._dt)
        if abs(time - step * self._dt) > _ROUNDING * self._dt:
            raise ValueError(
                f"OpenLoop: the table has a row for every {self._dt:g} s, but the signal at {time:g} s was requested; "
                f"make it with the simulation that it controls, whose dt its rows have"
            )
        if not 0 <= step < len(self.table):
            counted = time == round(time) and 0 < time < len(self.table)
            hint = f"; if {time:g} is the number of an interval, give its time, {time:g} * sim.dt" if counted else ""
            raise IndexError(
                f"OpenLoop: the table has {len(self.table)} control intervals, but interval {step} was requested; "
                + (f"make it with steps={step + 1} or more{hint}" if step > 0 else "time begins at 0")
            )
        return step
