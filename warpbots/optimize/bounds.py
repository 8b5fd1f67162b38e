"""Parameters with bounds, by a reparametrisation."""

import torch

from warpbots.scene.field_types import checked

__all__ = ["Bounded"]


class Bounded(torch.nn.Module):
    """A tensor that stays between two bounds: value = lower + (upper - lower) sigmoid(raw).

    A call of the module returns the value; pass ``parameters()`` of the module to an optimiser.

    Attributes:
        raw: The parameter without bounds, of any shape.
    """

    @checked
    def __init__(self, value: torch.Tensor, lower: float, upper: float):
        """Set the tensor to an initial value.

        Args:
            value: Initial value of any shape, strictly between the bounds.
            lower: Lower bound.
            upper: Upper bound.

        Raises:
            ValueError: `value` is not strictly between the bounds.
        """
        super().__init__()
        if not ((value > lower) & (value < upper)).all():
            raise ValueError(
                f"Bounded: the start must lie strictly between {lower:g} and {upper:g}, got {value.min().item():g} to "
                f"{value.max().item():g}"
            )
        self._lower, self._upper = lower, upper
        self.raw = torch.nn.Parameter(torch.logit((value.detach() - lower) / (upper - lower)))

    def forward(self) -> torch.Tensor:
        """The value, which lies between the bounds."""
        return self._lower + (self._upper - self._lower) * torch.sigmoid(self.raw)
