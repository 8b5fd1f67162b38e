"""Control signals that show how a robot can move."""

import math
from typing import Any

import torch
import warp as wp

from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation

__all__ = ["demonstration"]

_AMPLITUDE = 0.5  # half of the range of a signal
_PERIOD = 1.0  # of a wave [s]; shorter motions contain one wave


@checked
def demonstration(simulation: "Simulation[Any]", steps: int) -> torch.Tensor:
    """Control signals by which all actuators of a robot move, one after another.

    Each channel follows a sine wave of half of its range and one second, which grows from zero during the first half of
    the period. The wave of channel k of n begins k/n of a period after that of channel 0.

    Args:
        simulation: The simulation of the robot.
        steps: Number of control intervals.

    Returns:
        Signals in [-0.5, 0.5], shape (steps, channels).

    Raises:
        ValueError: `steps` is below 1.
    """
    if steps < 1:
        raise ValueError(f"demonstration: steps must be at least 1, got {steps}")
    dtype, device = wp.dtype_to_torch(simulation.model.scalar), wp.device_to_torch(simulation.model.device)
    period, n = min(_PERIOD, steps * simulation.dt), simulation.channels
    time = (torch.arange(steps, dtype=torch.float64)[:, None] + 0.5) * simulation.dt
    age = (time - period * torch.arange(n, dtype=torch.float64) / max(n, 1)).clamp(min=0.0) / period
    wave = _AMPLITUDE * (2.0 * age).clamp(max=1.0) * torch.sin(2.0 * math.pi * age)
    return wave.to(dtype=dtype, device=device)
