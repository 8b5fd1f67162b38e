"""Gradients through simulations: schedules, replayable control intervals, and the bridge to torch."""

from warpbots.gradients.checkpoints import Checkpoints
from warpbots.gradients.interval import Interval, Tensors
from warpbots.gradients.torch_bridge import Bridge, Segment

__all__ = ["Bridge", "Checkpoints", "Interval", "Segment", "Tensors"]
