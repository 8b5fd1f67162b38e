"""Training with a torch optimiser, a simple form of `warpbots.minimize` without constraints."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from warpbots.optimize.history import History
from warpbots.optimize.methods.torch_method import Torch
from warpbots.optimize.minimize import minimize
from warpbots.scene.field_types import checked, shown

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["fit"]


@checked
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
    group: "ProcessGroup | None" = None,
    **options: Any,
) -> History:
    """Minimise `loss` with a torch optimiser, and set the parameters to the best values at the end.

    The function is a shorthand for `warpbots.minimize` with ``methods.Torch(optimizer, **options)``, whose docstring
    explains each argument in more detail.

    Args:
        parameters: The parameters to optimise, changed in place; parameters that require no gradient are left out.
        loss: Function that computes the scalar to minimise; it is called at least once per iteration.
        optimizer: Class (or function) that makes a torch optimiser from the parameters and `options`.
        iterations: Number of iterations, including the iterations of a resumed run.
        max_norm: Gradients are clipped to this norm before each step; None for no clipping.
        progress: Whether to show a progress bar with the loss and the remaining time.
        project: Function that projects the parameters back into their bounds; it is called after every step.
        on_best: Function that is called with the history whenever the loss is the smallest so far, while the parameters
            have the values of this loss.
        checkpoint: File for the state of the run; None for no file.
        resume: Whether to continue from `checkpoint` instead of from the current parameters.
        about: Settings that identify the run, by name, in addition to the optimiser and its options; a checkpoint with
            other settings is not resumed.
        group: Group of processes that together minimise the mean of their losses.
        options: Options of `optimizer`, such as ``lr=1e-2``.

    Returns:
        The history, with the loss of every iteration; the last entry is the loss after the last step.

    Raises:
        ValueError: `iterations` is below 1 or below the number of iterations that a resumed run has completed, there is
            nothing to optimise, the loss does not depend on a parameter, or the checkpoint belongs to another run.
        OSError: There is no checkpoint to resume, or the checkpoint cannot be written.
        RolloutError: A rollout failed, or its loss is not finite.
        FloatingPointError: A gradient is not finite.
    """
    tensors = list(parameters)
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"fit: parameters[{i}] must be a torch tensor, got {shown(tensor)}")
    return minimize(
        loss,
        [p for p in tensors if p.requires_grad],
        Torch(optimizer, max_norm=max_norm, project=project, **options),
        iterations=iterations,
        progress=progress,
        on_best=on_best,
        checkpoint=checkpoint,
        resume=resume,
        about=about,
        group=group,
    )
