"""Gradients through simulations: schedules, replayable control intervals, and the bridge to torch."""

from warpbots.gradients.checkpoints import Checkpoints
from warpbots.gradients.interval import interval, reading
from warpbots.gradients.replay import Replay, Tensors, turn
from warpbots.gradients.segment import Segment
from warpbots.gradients.torch_bridge import Bridge, refuse_transforms

__all__ = ["Bridge", "Checkpoints", "Replay", "Segment", "Tensors", "interval", "reading", "refuse_transforms", "turn"]
