"""The optimisation loop: a loss, an optimiser of torch, a progress bar, and the best parameters at the end."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from tqdm import tqdm

from warpbots.optimize.history import History

__all__ = ["fit"]


def fit(
    parameters: Iterable[torch.Tensor],
    loss: Callable[[], torch.Tensor],
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    *,
    iterations: int = 30,
    max_norm: float | None = None,
    progress: bool = True,
    project: Callable[[], None] | None = None,
    on_best: Callable[[History], None] | None = None,
    **options: Any,
) -> History:
    """Minimise `loss` and leave the best parameters found in place.

    Ctrl-C ends the loop early: the best parameters so far are kept and the history says so.

    Args:
        parameters: What to optimise, changed in place.
        loss: Computes the scalar to minimise; called at least once per iteration.
        optimizer: Class (or function) that makes an optimiser of torch from the parameters and `options`; those that
            evaluate the loss several times per iteration, such as `torch.optim.LBFGS`, work as well. That one stops by
            itself where a gradient is below 1e-7 in the units of the loss: give it one of order one.
        iterations: Number of iterations.
        max_norm: Gradients longer than this are shortened to it before each step, so that one chaotic rollout cannot
            throw the parameters far away; None to leave them as they are. Their lengths are in the history.
        progress: Whether to show a progress bar with the loss and the time left.
        project: Called after every step to put parameters back into their bounds.
        on_best: Called with the history whenever the loss is the smallest so far, with the parameters that gave it in
            place.
        options: For `optimizer`, such as ``lr=1e-2``.

    Returns:
        The loss of every iteration; that of the last entry is of the parameters after the last step.

    Raises:
        ValueError: `iterations` is below 1, or there is nothing to optimise.
        FloatingPointError: The loss is not finite.
    """
    parameters = [p for p in parameters if p.requires_grad]
    if iterations < 1 or not parameters:
        raise ValueError(f"fit: needs at least 1 iteration and 1 parameter, got {iterations} and {len(parameters)}")
    rule = optimizer(parameters, **options)
    history = History()
    best = [p.detach().clone() for p in parameters]
    start = time.perf_counter()

    def note(value: float) -> None:
        history.loss.append(value)
        history.seconds.append(time.perf_counter() - start)
        if history.best == len(history.loss) - 1:
            best[:] = [p.detach().clone() for p in parameters]
            if on_best is not None:
                on_best(history)

    def evaluate(iteration: int) -> torch.Tensor:
        value = loss()
        if not torch.isfinite(value).all():
            raise FloatingPointError(
                f"the loss is {value.item()} in iteration {iteration}; use a smaller learning rate or a loss that is "
                f"bounded"
            )
        return value

    try:
        quiet = {} if progress else {"disable": True}  # said only if so: else the user's TQDM_DISABLE counts
        with tqdm(total=iterations, unit="it", desc="training", **quiet) as bar:
            for iteration in range(iterations):
                seen: list[float] = []

                def closure(iteration: int = iteration, seen: list[float] = seen) -> torch.Tensor:
                    rule.zero_grad()
                    value = evaluate(iteration)
                    if not seen:  # the parameters are still those of the start of this iteration
                        seen.append(value.item())
                        note(value.item())
                        bar.set_postfix_str(f"loss {value.item():.5g}, best {history.loss[history.best]:.5g}")
                    value.backward()
                    norm = torch.nn.utils.clip_grad_norm_(parameters, math.inf if max_norm is None else max_norm)
                    if len(history.gradient_norm) < len(history.loss):
                        history.gradient_norm.append(norm.item())
                    return value

                rule.step(closure)
                if project is not None:
                    with torch.no_grad():
                        project()
                bar.update()
            with torch.no_grad():
                note(evaluate(iterations).item())
    except KeyboardInterrupt:
        history.interrupted = True
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, best, strict=True):
                parameter.copy_(value)
    return history
