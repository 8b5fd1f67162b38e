"""Second derivatives of a loss along a direction, by differences of its gradient."""

from collections.abc import Callable

import torch

__all__ = ["hessian_product"]


def hessian_product(
    loss: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, direction: torch.Tensor, step: float | None = None
) -> torch.Tensor:
    """Product of the Hessian of `loss` at `x` with `direction`: H v = (g(x + h v) - g(x - h v)) / 2 h.

    Simulations have exact first derivatives and no second ones. This takes two gradients; its error is of order h^2,
    plus the rounding error of a gradient divided by h. Motions with contact have kinks, across which H means little.

    Args:
        loss: A scalar function of `x`, such as one of a rollout.
        x: Point at which to evaluate H, any shape.
        direction: v, of the shape of `x`.
        step: Largest change of an entry of `x`, in the units of `x`; None for the cube root of the rounding unit times
            the largest entry of `x` (or one if all are zero).

    Raises:
        ValueError: The shapes differ, or `direction` is zero.
    """
    x, direction = x.detach(), direction.detach()
    same = direction.shape == x.shape and x.numel() > 0
    largest, longest = torch.stack([x.abs().max(), direction.abs().max()]).tolist() if same else (0.0, 0.0)
    if longest == 0.0:
        raise ValueError(
            f"hessian_product: direction must have the shape {tuple(x.shape)} of x and not be zero, got "
            f"{tuple(direction.shape)}"
        )
    if step is None:
        step = torch.finfo(x.dtype).eps ** (1 / 3) * (largest or 1.0)
    h = step / longest

    def gradient(at: torch.Tensor) -> torch.Tensor:
        at = at.requires_grad_()
        return torch.autograd.grad(loss(at), at)[0]

    return (gradient(x + h * direction) - gradient(x - h * direction)) / (2.0 * h)
