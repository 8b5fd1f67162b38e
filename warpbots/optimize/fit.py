"""The training loop: a loss, a torch optimiser, a progress bar, and the best parameters at the end."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpbots.optimize.history import History
from warpbots.optimize.progress_bar import progress_bar
from warpbots.optimize.run import Run

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
    checkpoint: str | Path | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    **options: Any,
) -> History:
    """Minimise `loss` and leave the best parameters found in place.

    Ctrl-C ends the loop early: the best parameters so far are kept and the history says so. With a `checkpoint` a run
    that was killed at any moment is resumed after its last complete iteration, and ends with the same bits as an
    uninterrupted one. The checkpoint contains the parameters, the best ones, the optimiser, the history, and the random
    states of torch, of ``numpy.random`` and of ``random``; a loss with a generator of its own, or with any other
    memory, has to save it by itself.

    Args:
        parameters: What to optimise, changed in place.
        loss: Computes the scalar to minimise; called at least once per iteration.
        optimizer: Class (or function) that makes a torch optimiser from the parameters and `options`. Optimisers that
            evaluate the loss several times per iteration, such as `torch.optim.LBFGS`, work as well; LBFGS stops when
            the gradient is below 1e-7 in the units of the loss, so scale the loss to order one.
        iterations: Number of iterations, including those of a resumed run.
        max_norm: Gradients are clipped to this norm before each step, so that one chaotic rollout cannot move the
            parameters far away; None for no clipping. The history has the norms before clipping.
        progress: Whether to show a progress bar with the loss and the remaining time.
        project: Called after every step to project parameters back into their bounds.
        on_best: Called with the history whenever the loss is the smallest so far, while the parameters have the values
            that gave it.
        checkpoint: File for the state of the run, replaced atomically before the first and after every iteration; None
            for none.
        resume: Whether to continue from `checkpoint` instead of from the current parameters.
        about: Settings that identify the run, by name, besides the optimiser and its options, such as ``{"dx": 0.01}``;
            a checkpoint with other settings is not resumed.
        options: Options of `optimizer`, such as ``lr=1e-2``.

    Returns:
        The history, with the loss of every iteration; the last entry is the loss after the last step.

    Raises:
        ValueError: `iterations` is below 1 or below those that a resumed run has completed, there is nothing to
            optimise, or the checkpoint belongs to another run.
        OSError: There is no checkpoint to resume, or it cannot be written.
        FloatingPointError: The loss is not finite.
    """
    parameters = [p for p in parameters if p.requires_grad]
    if iterations < 1 or not parameters:
        raise ValueError(f"fit: needs at least 1 iteration and 1 parameter, got {iterations} and {len(parameters)}")
    if resume and checkpoint is None:
        raise ValueError("fit: resume needs a checkpoint to continue from, got None")
    options = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
    rule = optimizer(parameters, **options)
    about = {"optimizer": optimizer, **options, "max_norm": max_norm, **(about or {})}
    run = Run(parameters, rule, iterations, _plain(about))
    if resume:
        run.load(checkpoint)
    history = run.history
    done = len(history.loss)
    start = time.perf_counter() - (history.seconds[-1] if history.seconds else 0.0)

    def note(value: float) -> None:
        history.loss.append(value)
        history.seconds.append(time.perf_counter() - start)
        if history.best == len(history.loss) - 1:
            run.keep()
            if on_best is not None:
                on_best(history)

    def save() -> None:
        if checkpoint is not None:
            run.save(checkpoint)

    def evaluate(iteration: int) -> tuple[torch.Tensor, float]:
        loss_now = loss()
        value = loss_now.item()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss is {value} in iteration {iteration}; use a smaller learning rate or a bounded loss"
            )
        return loss_now, value

    try:
        quiet = {} if progress else {"disable": True}  # only then, so that TQDM_DISABLE applies otherwise
        with progress_bar(total=iterations, initial=done, unit="it", desc="training", **quiet) as bar:
            save()
            for iteration in range(done, iterations):
                seen: list[float] = []

                def closure(iteration: int = iteration, seen: list[float] = seen) -> torch.Tensor:
                    rule.zero_grad()
                    loss_now, value = evaluate(iteration)
                    if not seen:  # the first evaluation has the parameters of the start of the iteration
                        seen.append(value)
                        note(value)
                        bar.set_postfix_str(f"loss {value:.5g}, best {history.loss[history.best]:.5g}")
                    loss_now.backward()
                    norm = torch.nn.utils.clip_grad_norm_(parameters, math.inf if max_norm is None else max_norm)
                    if len(history.gradient_norm) < len(history.loss):
                        history.gradient_norm.append(norm.item())
                    return loss_now

                rule.step(closure)
                if project is not None:
                    with torch.no_grad():
                        project()
                save()
                bar.update()
            with torch.no_grad():
                note(evaluate(iterations)[1])
    except KeyboardInterrupt:
        history.interrupted = True
    finally:
        run.restore()
    return history


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in a form that a checkpoint can hold and compare."""
    return {
        name: value
        if type(value) in (bool, int, float, str, type(None))
        else getattr(value, "__qualname__", repr(value))
        for name, value in settings.items()
    }
