"""One way to state an optimisation problem and to solve it by any method."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from warpbots.optimize.history import History
from warpbots.optimize.loggers import Logger, loggers_of
from warpbots.optimize.problem import Outcome, Problem
from warpbots.optimize.processes import Processes
from warpbots.optimize.progress_bar import progress_bar
from warpbots.optimize.run import Method, Run
from warpbots.optimize.unknowns import UnknownLike, Unknowns
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["minimize"]


@checked
def minimize(
    loss: Callable[[], torch.Tensor | Outcome],
    unknowns: UnknownLike | Iterable[UnknownLike] | Mapping[str, UnknownLike],
    method: Method,
    *,
    iterations: int = 30,
    episodes: int | None = None,
    window: int = 1,
    allowed_violation: float = 1e-3,
    progress: bool = True,
    callback: Callable[[History], bool | None] | None = None,
    on_best: Callable[[History], None] | None = None,
    log: Logger | Sequence[Logger] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    group: "ProcessGroup | None" = None,
) -> History:
    """Minimise a loss, under constraints if there are any, and leave the best unknowns found in place.

    Ctrl-C ends the search early: the best unknowns so far are kept and the history says so. With a `checkpoint` a run
    that was killed at any moment is resumed after its last complete iteration, and ends with the same bits as an
    uninterrupted one. The checkpoint contains the unknowns, the best ones, the state of the method, the history, and
    the random states of torch, of ``numpy.random`` and of ``random``; a loss with its own generator, or with any other
    memory, must save it by itself.

    A checkpoint is resumed only with the unknowns, bounds, scales and settings that it was written with. The last
    rollout is repeated with the same random numbers: its loss must agree with the checkpoint to 3e-4 (relative), and
    its constraints in their names and shapes. A loss that takes random numbers from elsewhere cannot be compared; set
    `window` above 1 for such a loss. A run that has ended needs no further rollout, unless it ended at the limit of
    iterations and `iterations` is now larger.

    A rollout may fail during the search, because a trial goes too far. SLSQP, trust-constr and L-BFGS-B then take a
    smaller step, CMA-ES ranks it last, and `warpbots.methods.MultiStart` goes on with the next start.
    `History.failures` counts such rollouts, and `History.reason` says why the search ended.

    Args:
        loss: Runs a rollout and returns its loss as a tensor, or loss and constraints of the same rollout as a
            `warpbots.Outcome`.
        unknowns: The unknowns to optimise, changed in place: a tensor, a torch module, a `warpbots.Unknown` with bounds
            and scale, several of them, or several by name.
        method: A method of `warpbots.methods`.
        iterations: Largest number of iterations, including those of a resumed run. What an iteration is depends on the
            method: a step, a major iteration, a generation.
        episodes: Largest number of rollouts, at which the search ends even within an iteration; None for no limit. A
            resumed run that ended at this limit goes on from its last complete iteration.
        window: For random losses: the moving average of this many recent losses, instead of a single lucky loss,
            decides which iteration is best.
        allowed_violation: Largest violation of a constraint that counts as none, in the units of the constraint.
        progress: Whether to show a progress bar with the loss and the remaining time.
        callback: Called with the history in every iteration, while the unknowns have its values; the search ends if it
            returns a true value.
        on_best: Called with the history whenever an iteration is the best so far, while the unknowns have its values.
        log: Receives loss, violation, gradient norm and episodes of every iteration: anything with a method
            ``add_scalar(name, value, iteration)`` or ``log(values, step=iteration)``, or several of them.
        checkpoint: File for the state of the run, replaced atomically before the first and after every iteration; None
            for none.
        resume: Whether to continue from `checkpoint` instead of from the present values.
        about: Settings that identify the run, by name, besides those of the method, such as ``{"dx": 0.01}``; a
            checkpoint with other settings is not resumed.
        group: Processes that minimise the mean of their losses together, as ``torch.distributed.group.WORLD``: loss,
            constraints and gradients are means over them, so that each takes a part of a batch of worlds. All of them
            call this function with the same arguments and end with the same unknowns. The first process writes the
            checkpoint, shows the progress, logs, and calls `callback` and `on_best`. None if this process works alone.

    Returns:
        The history; its last entry is the state after the last iteration.

    Raises:
        ValueError: A number is out of range, there is nothing to optimise, an unknown has no gradient path, its bounds
            are reversed or its start outside, the method takes no constraints, constraints change their shape, or the
            checkpoint belongs to another run.
        TypeError: An unknown, a constraint, a logger or a result of `loss` has the wrong type.
        OSError: There is no checkpoint to resume, or it cannot be written.
        RuntimeError: The processes of `group` have drifted apart.
        RolloutError: The first rollout failed (`SimulationError`, or a loss or constraint that is not finite); or a
            later rollout failed and the method cannot take a smaller step; or a gradient is not finite. The error has
            the values that were tried and the history. The unknowns have the best values so far, and the checkpoint has
            the last complete iteration.
    """
    if iterations < 1 or window < 1 or not allowed_violation >= 0.0:
        raise ValueError(
            f"minimize: iterations and window must be at least 1 and allowed_violation at least 0, got {iterations}, "
            f"{window} and {allowed_violation:g}"
        )
    if episodes is not None and episodes < 1:
        raise ValueError(f"minimize: episodes must be at least 1, or None for no limit, got {episodes}")
    if resume and checkpoint is None:
        raise ValueError("minimize: resume needs a checkpoint to continue from, got None")
    processes = Processes(group)
    limit = math.inf if episodes is None else episodes
    problem = Problem(loss, Unknowns(unknowns), method.constrained, processes, limit)
    history = History(window=window, allowed_violation=allowed_violation)
    loggers, search = loggers_of(log), method.search(problem)
    # TQDM_DISABLE applies unless the bar is switched off here
    with progress_bar(
        total=iterations, unit="it", desc="training", **({} if progress and processes.first else {"disable": True})
    ) as bar:
        run = Run(
            problem,
            search,
            iterations,
            {**method.about(), "window": window, "allowed_violation": allowed_violation, **(about or {})},
            history,
            bar,
            checkpoint=checkpoint,
            on_best=on_best,
            callback=callback,
            loggers=loggers,
        )
        if resume:
            run.load()
        run.work()
    return history
