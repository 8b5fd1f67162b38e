"""A search over candidates, by successive halving, and over the unknowns of each candidate, by any method."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import torch

from warpbots.optimize.doubts import OptimizeWarning
from warpbots.optimize.halving import Planned, fewest_episodes, schedule
from warpbots.optimize.history import History
from warpbots.optimize.minimize import minimize
from warpbots.optimize.problem import Outcome
from warpbots.optimize.progress_bar import progress_bar
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.run import FAILED, SPENT, Method
from warpbots.optimize.search_checkpoint import SearchCheckpoint
from warpbots.optimize.search_history import SearchHistory, SearchRun
from warpbots.optimize.unknowns import Unknown, UnknownLike, named_unknowns
from warpbots.scene import SceneError
from warpbots.scene.field_types import checked
from warpbots.simulation import SimulationError
from warpbots.user_warning import warn_user

__all__ = ["search"]

_Candidate = TypeVar("_Candidate")

_Stated: TypeAlias = tuple[
    Callable[[], torch.Tensor | Outcome], UnknownLike | Iterable[UnknownLike] | Mapping[str, UnknownLike]
]
"""Loss and unknowns, as `warpbots.minimize` takes them."""


@checked
def search(
    candidates: Mapping[str, _Candidate],
    problem: Callable[[_Candidate], _Stated],
    method: Method,
    *,
    episodes: int,
    reduction: int = 2,
    allowed_violation: float = 1e-3,
    progress: bool = True,
    callback: Callable[[SearchHistory], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
) -> SearchHistory:
    """Minimise a loss over candidates, such as topologies of robots, and over unknowns of each, such as sizes.

    Rollouts (episodes) are distributed among the candidates by successive halving (Karnin, Koren and Somekh 2013;
    Jamieson and Talwalkar 2016). There are about log(number of candidates) rounds. In each round `method` improves
    every remaining candidate with the same number of episodes, starting from the best values of the candidate so far;
    then the best candidates, one in `reduction`, go on to the next round. One run of `method` on one candidate is
    a `SearchRun`. Episodes that converged candidates do not need are given to the other candidates. The search makes at
    most `episodes` rollouts, and fewer only if no candidate can be improved any further.

    If the first rollout of a candidate fails, or `problem` raises a `SceneError` or `SimulationError` for it, the
    candidate is ranked last and the search goes on. If a later rollout fails and the method cannot take a smaller step,
    the candidate keeps its best values and gets no more episodes. The history contains the reasons. If no candidate has
    a loss or fulfils the constraints at the end, there is an `OptimizeWarning`.

    With a `checkpoint`, a search that was killed at any moment can be resumed after the last complete iteration of its
    method, and gives the same result to the last bit as an uninterrupted search. The rollout that a resumed run repeats
    to compare the loss (see `warpbots.minimize`) is not counted. While the search runs, there is a second file next to
    the checkpoint, with ``-run`` and the number of the run in its name.

    Args:
        candidates: The candidates by name.
        problem: Function that returns the loss and the unknowns of a candidate, in the forms that `warpbots.minimize`
            takes. The function is called for every run and must return the same problem each time; the loss may use
            random numbers of torch, NumPy and Python.
        method: A method of `warpbots.methods`.
        episodes: Largest number of rollouts of all candidates together.
        reduction: One in `reduction` candidates goes on to the next round; at least 2.
        allowed_violation: Largest violation of a constraint with which the constraint still counts as fulfilled.
        progress: Whether to show a progress bar.
        callback: Function that is called with the history after every run; the search ends if the function returns a
            true value.
        checkpoint: File for the state of the search; None for no file.
        resume: Whether to continue from `checkpoint`.
        about: Settings that identify the search, by name; a checkpoint with other settings is not resumed.

    Returns:
        The history. `SearchHistory.best` is the name of the best candidate; `SearchHistory.values` has the best values
        of the unknowns of every candidate.

    Raises:
        ValueError: There are no candidates, too few episodes, or a reduction below 2; the checkpoint belongs to another
            search; or `warpbots.minimize` raises a ValueError.
        OSError: There is no checkpoint to resume, or the checkpoint cannot be written.
    """
    _refuse(candidates, episodes, reduction, checkpoint, resume)
    settings = {"episodes": episodes, "reduction": reduction, "allowed_violation": allowed_violation}
    history = SearchHistory(tuple(candidates), allowed_violation)
    file = SearchCheckpoint(checkpoint, {**method.about(), **settings, **(about or {})}, history)
    recorded = file.load() if resume else file.begin()
    with progress_bar(total=episodes, unit="ep", desc="search", **({} if progress else {"disable": True})) as bar:
        for number, planned in enumerate(schedule(history, episodes, reduction)):
            new = number >= len(recorded)
            run = _run(planned, candidates, problem, method, history, file) if new else recorded[number]
            history.runs.append(run)
            bar.update(run.episodes)
            bar.set_postfix_str(f"round {run.round}, best {history.ranking[0].loss:.5g}")
            if run.reason == "interrupted":
                history.reason = "interrupted"
                return history
            if new:
                file.keep()
            if new and callback is not None and callback(history):
                history.reason = "callback"
                return history
    history.reason = "episode limit" if history.episodes >= episodes else "nothing goes on"
    if doubt := history.doubt:
        warn_user(OptimizeWarning(f"search: {doubt}"))
    return history


def _run(
    planned: Planned,
    candidates: Mapping[str, _Candidate],
    problem: Callable[[_Candidate], _Stated],
    method: Method,
    history: SearchHistory,
    file: SearchCheckpoint,
) -> SearchRun:
    """Carry out a planned run from the best values of its candidate so far; store better values in the history."""
    name, options = planned.candidate, {"candidate": planned.candidate, "run": len(history.runs)}
    try:
        loss, stated = problem(candidates[name])
    except (SceneError, SimulationError) as fault:
        return SearchRun(name, planned.round, 0, 0, math.inf, 0.0, "not built", str(fault))
    unknowns = dict(named_unknowns(stated))
    _assign(name, unknowns, history.values.get(name))
    calls = 0

    def counted() -> torch.Tensor | Outcome:
        nonlocal calls
        calls += 1
        return loss()

    try:
        with warnings.catch_warnings(action="ignore", category=OptimizeWarning):  # a run is a part of the search
            found = minimize(
                counted,
                unknowns,
                method,
                iterations=planned.episodes,
                episodes=planned.episodes,
                allowed_violation=history.allowed_violation,
                progress=False,
                about=options,
                **file.of_run(),
            )
    except RolloutError as fault:
        found, calls = cast(History, fault.history), fault.episodes
    if not found.loss and found.reason == SPENT:
        text = f"{planned.episodes} episodes are too few for an iteration of the method; give more, or fewer candidates"
        if not history.runs:
            raise ValueError(f"search: {text}")
        found.reason, found.message = "too few episodes", text
    run = _finished(planned, found, calls)
    if history.better(run):
        history.values[name] = {key: unknown.tensor.detach().cpu().clone() for key, unknown in unknowns.items()}
    return run


def _finished(planned: Planned, found: History, calls: int) -> SearchRun:
    """The record of a finished run; `found` is the history of the run, and `calls` its number of rollouts."""
    own = planned.candidate, planned.round
    if not found.loss:
        return SearchRun(*own, calls, calls * (found.reason == FAILED), math.inf, 0.0, found.reason, found.message)
    counts = found.episodes[-1], found.failures[-1]
    return SearchRun(*own, *counts, found.loss[found.best], found.violation[found.best], found.reason, found.message)


def _assign(name: str, unknowns: Mapping[str, Unknown], values: Mapping[str, torch.Tensor] | None) -> None:
    """Set the unknowns of candidate `name` to `values`, its best values so far; do nothing if `values` is None."""
    if values is None:
        return
    shapes = [{key: tuple(t.shape) for key, t in own.items()} for own in (values, _tensors(unknowns))]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"search: the unknowns of {name!r} had the shapes {shapes[0]} and have {shapes[1]} now; state the same "
            f"problem each time"
        )
    with torch.no_grad():
        for key, tensor in _tensors(unknowns).items():
            tensor.copy_(values[key])


def _tensors(unknowns: Mapping[str, Unknown]) -> dict[str, torch.Tensor]:
    return {key: unknown.tensor for key, unknown in unknowns.items()}


def _refuse(
    candidates: Mapping[str, Any], episodes: int, reduction: int, checkpoint: str | Path | None, resume: bool
) -> None:
    if not candidates or reduction < 2:
        raise ValueError(
            f"search: needs at least 1 candidate and a reduction of at least 2, got {len(candidates)} and {reduction}"
        )
    fewest = fewest_episodes(len(candidates), reduction)
    if episodes < fewest:
        raise ValueError(
            f"search: {len(candidates)} candidates need at least {fewest} episodes, so that each has 2 in every round, "
            f"got {episodes}; give more episodes, fewer candidates or a larger reduction"
        )
    if resume and checkpoint is None:
        raise ValueError("search: resume needs a checkpoint to continue from, got None")
