"""Controllers: torch modules (state, time) -> control. Any callable of that form works as well."""

from warpbots.controllers.mlp import MLP
from warpbots.controllers.open_loop import OpenLoop

__all__ = ["MLP", "OpenLoop"]
