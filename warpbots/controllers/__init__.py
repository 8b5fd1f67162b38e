"""Controllers: torch modules that map (state, time) to a control. Rollouts also accept any other such callable."""

from warpbots.controllers.demonstration import demonstration
from warpbots.controllers.mlp import MLP
from warpbots.controllers.open_loop import OpenLoop

__all__ = ["MLP", "OpenLoop", "demonstration"]
