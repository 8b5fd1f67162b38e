"""Product of the Hessian of a loss and a direction, computed by differences of the gradient."""

from collections.abc import Callable

import torch

from warpbots.scene.field_types import checked

__all__ = ["hessian_product"]


@checked
def hessian_product(
    loss: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    direction: torch.Tensor,
    step: float | None = None,
    *,
    noise: float | None = None,
) -> torch.Tensor:
    """Product of the Hessian of `loss` at `x` and `direction`: H v = (g(x + h v) - g(x - h v)) / 2 h.

    g is the gradient of `loss`, v the direction and h the step. Simulations have exact first derivatives, but no second
    derivatives; the product takes two gradients. Let ε be the error of a gradient divided by H x, and let third
    derivatives be of the order of H / x. The relative error of the product is then ε x / h + (h / x)² / 6, which is
    smallest for h = (3 ε)^(1/3) x: by default 10 % of `x` in float32 and 0.4 % in float64. If a Hessian is assembled
    from products with several directions, its asymmetry shows how large the error is. With contact, gradients have
    kinks; if the step crosses a kink, the product means little.

    Args:
        loss: A scalar function of `x`, such as the loss of a rollout.
        x: Point at which to evaluate H, any shape.
        direction: The direction v, with the shape of `x`.
        step: Largest change of an entry of `x`, in the units of `x`. None for (3 ε)^(1/3) times the size of `x` along
            the direction: the largest abs(v x) divided by the largest abs(v), or 1 if this quotient is zero.
        noise: Relative error ε of a gradient. None for the square root of the rounding unit, because iterative solvers
            are accurate to about half of the digits.

    Raises:
        ValueError: The shapes differ, `direction` is zero, or `step` or `noise` is not positive.
    """
    x, direction = x.detach(), direction.detach()
    same = direction.shape == x.shape and x.numel() > 0
    size, longest = torch.stack([(x * direction).abs().max(), direction.abs().max()]).tolist() if same else (0.0, 0.0)
    if longest == 0.0:
        raise ValueError(
            f"hessian_product: direction must have the shape {tuple(x.shape)} of x and not be zero, got "
            f"{tuple(direction.shape)}"
        )
    if not all(number is None or number > 0.0 for number in (step, noise)):
        raise ValueError(f"hessian_product: step and noise must be positive or None, got {step} and {noise}")
    if step is None:
        noise = torch.finfo(x.dtype).eps ** 0.5 if noise is None else noise
        step = (3.0 * noise) ** (1 / 3) * (size / longest or 1.0)
    h = step / longest

    def gradient(at: torch.Tensor) -> torch.Tensor:
        at = at.requires_grad_()
        return torch.autograd.grad(loss(at), at)[0]

    return (gradient(x + h * direction) - gradient(x - h * direction)) / (2.0 * h)
