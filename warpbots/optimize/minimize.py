"""The function `minimize`, which solves an optimisation problem by any method of `warpbots.methods`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from warpbots.optimize.doubts import OptimizeWarning
from warpbots.optimize.history import History
from warpbots.optimize.loggers import Logger, loggers_of
from warpbots.optimize.problem import Outcome, Problem
from warpbots.optimize.processes import Processes
from warpbots.optimize.progress_bar import progress_bar
from warpbots.optimize.run import Method, Run
from warpbots.optimize.unknowns import UnknownLike, Unknowns
from warpbots.scene.field_types import checked
from warpbots.user_warning import warn_user

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
    """Minimise a loss, with or without constraints, and set the unknowns to their best values at the end.

    Ctrl-C ends the search early: the unknowns get their best values so far, and the history says that the search was
    interrupted. With a `checkpoint`, a run that was killed at any moment can be resumed after its last complete
    iteration, and gives the same result to the last bit as an uninterrupted run. The checkpoint contains the current
    and the best values of the unknowns, the state of the method, the history, and the random states of torch,
    ``numpy.random`` and ``random``. If the loss function has its own random generator or any other memory, it must save
    that state by itself.

    A checkpoint is resumed only if unknowns, bounds, scales and settings are the same as when it was written. The last
    rollout of the stopped run is repeated with the same random numbers: its loss must agree with the checkpoint to 3e-4
    (relative), and its constraints must have the same names and shapes. A loss that uses random numbers of another
    generator cannot be compared; set `window` above 1 for such a loss. If a run that has already ended is resumed, no
    rollout is made, unless the run ended at the limit of iterations and `iterations` is now larger.

    A rollout or its gradient may fail during the search, because the unknowns have changed too much. SLSQP,
    trust-constr and L-BFGS-B then take a smaller step, CMA-ES ranks the rollout last, and `warpbots.methods.MultiStart`
    goes on with the next start. `History.failures` counts failed rollouts, and `History.reason` says why the search
    ended.

    The result is the iteration `History.best`. If the result may be poor, an `OptimizeWarning` says why and what can be
    done: see `History.doubt`.

    Args:
        loss: Function that runs a rollout and returns its loss as a tensor, or its loss and constraints as a
            `warpbots.Outcome`.
        unknowns: The unknowns to optimise, changed in place: a tensor, a torch module, a `warpbots.Unknown` with bounds
            and scale, an iterable of such objects, or a mapping from names to such objects.
        method: A method of `warpbots.methods`.
        iterations: Largest number of iterations, including the iterations of a resumed run. Depending on the method, an
            iteration is a step, a major iteration or a generation.
        episodes: Largest number of rollouts, at which the search ends even within an iteration; None for no limit. A
            resumed run that ended at this limit continues from its last complete iteration.
        window: Number of recent losses whose mean is compared to find the best iteration. For random losses set the
            number above 1, so that a single lucky loss does not decide.
        allowed_violation: Largest violation of a constraint with which the constraint still counts as fulfilled, in the
            units of the constraint.
        progress: Whether to show a progress bar with the loss and the remaining time.
        callback: Function that is called with the history in every iteration, while the unknowns have the values of
            this iteration; the search ends if the function returns a true value.
        on_best: Function that is called with the history whenever an iteration is the best so far, while the unknowns
            have the values of this iteration.
        log: A logger, or several loggers, for loss, violation, gradient norm and episodes of every iteration. A logger
            is any object with a method ``add_scalar(name, value, iteration)`` or ``log(values, step=iteration)``.
        checkpoint: File for the state of the run, replaced atomically before the first and after every iteration; None
            for no file.
        resume: Whether to continue from `checkpoint` instead of from the current values of the unknowns.
        about: Settings that identify the run, by name, in addition to the settings of the method, such as
            ``{"dx": 0.01}``; a checkpoint with other settings is not resumed.
        group: Group of processes that together minimise the mean of their losses, such as
            ``torch.distributed.group.WORLD``; None if this process works alone. Loss, constraints and gradients are
            averaged over the processes, so that each process can simulate some of the worlds of a batch. All processes
            call this function with the same arguments and end with the same unknowns. The first process writes the
            checkpoint, shows the progress, passes values to the loggers, and calls `callback` and `on_best`.

    Returns:
        The history; its last entry is the state after the last iteration.

    Raises:
        ValueError: An argument is out of range, there is nothing to optimise, the loss does not depend on an unknown,
            the bounds of an unknown are reversed, an unknown starts outside its bounds, there are constraints although
            the method takes none, constraints change their shape, or the checkpoint belongs to another run.
        TypeError: An unknown, a constraint, a logger or a result of `loss` has the wrong type.
        OSError: There is no checkpoint to resume, or the checkpoint cannot be written.
        RuntimeError: The processes of `group` have different values of the unknowns.
        RolloutError: The first rollout failed (a `SimulationError`, or a loss or constraint that is not finite), a
            later rollout or gradient failed and the method cannot take a smaller step. The error
            contains the values that were tried and the history. The unknowns have the best values so far, and the
            checkpoint has the last complete iteration.
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
    if processes.first and (doubt := history.doubt):
        warn_user(OptimizeWarning(f"minimize: {doubt}"))
    return history
