"""Gradients through simulations: checkpoint schedules, replays of control intervals, and the bridge to torch."""

from warpbots.gradients.checkpoints import Checkpoints
from warpbots.gradients.deferred_checks import BackwardWatch, Found, Watch
from warpbots.gradients.finite_checks import flaw
from warpbots.gradients.interval import interval, reading
from warpbots.gradients.lost_worlds import FIELD as LOST
from warpbots.gradients.lost_worlds import FailurePoint, Losses, LostWorldWarning, counting_losses, known_losses
from warpbots.gradients.replay import Replay, Share, Tensors
from warpbots.gradients.segment import Segment
from warpbots.gradients.shared_replay import SharedReplay
from warpbots.gradients.streams import at_turn, turn
from warpbots.gradients.tensors import tensor_of
from warpbots.gradients.torch_bridge import Bridge, refuse_transforms

__all__ = [
    "BackwardWatch",
    "Bridge",
    "Checkpoints",
    "Found",
    "LOST",
    "Losses",
    "LostWorldWarning",
    "FailurePoint",
    "Replay",
    "Segment",
    "Share",
    "SharedReplay",
    "Tensors",
    "Watch",
    "at_turn",
    "counting_losses",
    "flaw",
    "interval",
    "known_losses",
    "reading",
    "refuse_transforms",
    "tensor_of",
    "turn",
]
