"""The error of a rollout that fails during a search."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from warpbots.simulation import SimulationError

if TYPE_CHECKING:
    from warpbots.optimize.history import History

__all__ = ["RolloutError", "described"]

_FEW = 6  # numbers of an unknown that a message lists


class RolloutError(SimulationError, FloatingPointError):
    """A rollout of a search did not converge or diverged, or its loss, a constraint or a gradient is not finite.

    Attributes:
        unknowns: Values of the unknowns in the rollout that failed, by name.
        episodes: Number of rollouts of the search so far, including the rollout that failed.
        history: History of the search so far; the unknowns now have the best values that the search has found. None if
            the search had not begun.
    """

    def __init__(
        self,
        message: str,
        unknowns: Mapping[str, torch.Tensor],
        episodes: int = 0,
        history: "History | None" = None,
    ):
        """Create the error; `message` says which values were tried, why the rollout failed, and how to prevent this."""
        super().__init__(message)
        self.unknowns, self.episodes, self.history = dict(unknowns), episodes, history


def described(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> str:
    """Text with the names and values of unknowns; of many values only the smallest and the largest are given."""
    return ", ".join(f"{name!r} = {_numbers(tensor)}" for name, tensor in zip(names, tensors, strict=True))


def _numbers(tensor: torch.Tensor) -> str:
    values = tensor.detach().reshape(-1).tolist()
    if len(values) > _FEW:
        return f"{min(values):.6g} to {max(values):.6g} ({len(values)} values)"
    text = ", ".join(f"{v:.6g}" for v in values)
    return text if tensor.dim() == 0 else f"[{text}]"
