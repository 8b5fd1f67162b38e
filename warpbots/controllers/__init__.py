"""Controllers: torch modules (state, time) -> control. Rollouts accept any other callable of this form as well."""

from warpbots.controllers.mlp import MLP
from warpbots.controllers.open_loop import OpenLoop

__all__ = ["MLP", "OpenLoop"]
