"""A resumable optimisation: its state, its checkpoint, and its reports to progress bars, loggers and callbacks."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from tqdm import tqdm

from warpbots.optimize.checkpoint_files import differences, plain, read_state, version
from warpbots.optimize.history import History
from warpbots.optimize.loggers import Logger, write
from warpbots.optimize.problem import Problem, Spent
from warpbots.optimize.random_state import random_state, set_random_state
from warpbots.optimize.rollout_error import RolloutError
from warpbots.output_files import replacing
from warpbots.simulation import SimulationError
from warpbots.user_warning import warn_user

__all__ = [
    "FAILED",
    "LIMIT",
    "SPENT",
    "Complete",
    "Ending",
    "Method",
    "Progress",
    "Run",
    "Search",
    "Stopped",
]


class Ending(NamedTuple):
    """Why a search ended: reason and message as in `warpbots.optimize.History`."""

    reason: str
    message: str


LIMIT = Ending("iteration limit", "all iterations are done")
FAILED = "rollout failed"
SPENT = "episode limit"
_INTERRUPTED = Ending("interrupted", "interrupted by the user")
_STOPPED = Ending("callback", "the callback asked to stop")


class Stopped(Exception):
    """Raised when a callback asks to stop the search."""


class Complete(Exception):
    """Raised when all iterations are done."""


class Progress(Protocol):
    """The interface of a run that a search uses; see `Run`.

    Attributes:
        iterations: Total number of iterations.
        done: Number of iterations that are complete.
        history: The history so far.
    """

    iterations: int
    done: int
    history: History

    def note(self, loss: float, violation: float = 0.0, gradient_norm: float | None = None) -> None:
        """Record the loss at the start of an iteration."""

    def complete(self) -> None:
        """Count a complete iteration, and save the state."""

    def save(self) -> None:
        """Write the state to the checkpoint."""


class Search(Protocol):
    """A search for the minimum of a problem by one method."""

    def run(self, run: Progress) -> Ending:
        """Work until `run.iterations` are done or the method has ended; note and save each iteration.

        Raises:
            Complete: All iterations are done.
            Stopped: The callback asked to stop.
        """

    def state_dict(self) -> dict[str, Any]:
        """All data on which the rest of the search depends, except the unknowns.

        The data have types that `torch.save` can write.
        """

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""


@runtime_checkable
class Method(Protocol):
    """Settings of an optimisation method."""

    @property
    def constrained(self) -> bool:
        """Whether the method can take constraints."""

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""

    def search(self, problem: Problem) -> Search:
        """A search for the minimum of `problem` by this method, from the present values of the unknowns."""


class Run:
    """An optimisation and its progress.

    Attributes:
        problem: The problem to solve.
        search: The search for its minimum.
        best: Values of the unknowns in the best iteration.
        iterations: Total number of iterations.
        done: Number of iterations that are complete.
        history: The history so far.
        about: Settings that identify the run, plain values by name; a checkpoint with other settings is not loaded.
    """

    def __init__(
        self,
        problem: Problem,
        search: Search,
        iterations: int,
        about: Mapping[str, Any],
        history: History,
        bar: tqdm,
        *,
        checkpoint: str | Path | None = None,
        on_best: Callable[[History], None] | None = None,
        callback: Callable[[History], bool | None] | None = None,
        loggers: Sequence[Logger] = (),
    ):
        """Begin with the current values of the unknowns; `warpbots.minimize` describes the options."""
        self.problem, self.search, self.iterations, self.history = problem, search, iterations, history
        self.about = {**plain(about), "warpbots": version()}
        if problem.processes.count > 1:
            self.about["processes"] = problem.processes.count
        self.done = 0
        self._bar, self._checkpoint, self._on_best, self._callback = bar, checkpoint, on_best, callback
        self._loggers = loggers
        self._start = time.perf_counter()
        self._ended = False
        self.keep()

    def work(self) -> None:
        """Search to the end, unless a resumed run has ended already, and set the unknowns to the best values.

        Raises:
            RolloutError: A rollout failed and the method cannot go on; the attribute `history` of the error is the
                history of the search.
        """
        try:
            if self._ended:
                self.problem.confirm()
            else:
                self._end(self.search.run(self), final=True)
        except Complete:
            self._end(LIMIT, final=True)
        except Spent as end:
            self._end(Ending(SPENT, str(end)))
        except Stopped:
            self._end(_STOPPED)
        except KeyboardInterrupt:
            self._end(_INTERRUPTED)
        except RolloutError as fault:
            raise self._failed(fault) from fault.__cause__
        except (SimulationError, FloatingPointError) as error:  # of a backward pass
            raise self._failed(self.problem.failed(str(error), self.done)) from error
        finally:
            self.restore()

    def _end(self, ending: Ending, final: bool = False) -> None:
        """Record why the search ended.

        Args:
            ending: Reason and message.
            final: Whether to add the result to the checkpoint, which keeps the state from which a run can go on.
        """
        history = self.history
        history.reason, history.message = ending
        if history.episodes:  # rollouts after the last iteration have found nothing better
            history.episodes[-1], history.failures[-1] = self.problem.episodes, self.problem.failures
            history.lost_worlds[-1] = self.problem.lost_worlds
        if final and self._checkpoint is not None and self.problem.processes.first:
            state = torch.load(self._checkpoint, map_location="cpu", weights_only=True)
            state["result"] = {
                "history": history.saved(),
                "best": self.best,
                "ending": tuple(ending),
                "iterations": self.iterations,
            }
            self._write(state)

    def _failed(self, fault: RolloutError) -> RolloutError:
        """Record that a rollout has failed, add the history to the error, and return the error."""
        self._end(Ending(FAILED, str(fault)))
        fault.history = self.history
        return fault

    def keep(self) -> None:
        """Store the current values of the unknowns as the best values."""
        self.best = self.problem.kept()

    def restore(self) -> None:
        """Set the unknowns to the best values."""
        self.problem.unknowns.assign(self.best)

    def note(self, loss: float, violation: float = 0.0, gradient_norm: float | None = None) -> None:
        """Record the loss at the start of an iteration; the unknowns must have the values of this loss.

        Raises:
            Stopped: The callback asked to stop.
        """
        history = self.history
        history.loss.append(loss)
        history.violation.append(violation)
        history.seconds.append(time.perf_counter() - self._start)
        history.episodes.append(self.problem.episodes)
        history.failures.append(self.problem.failures)
        history.lost_worlds.append(self.problem.lost_worlds)
        values = {"loss": loss, "violation": violation, "episodes": self.problem.episodes}
        if gradient_norm is not None:
            history.gradient_norm.append(gradient_norm)
            values["gradient_norm"] = gradient_norm
            first = len(history.loss) == 1 and self.problem.processes.first
            if gradient_norm == 0.0 and violation == 0.0 and first:  # a violated constraint moves the unknowns
                _warn_of_a_zero_gradient()
        last, best = len(history.loss) - 1, history.best
        if best == last:
            self.keep()
            if self._on_best is not None and self.problem.processes.first:
                self._on_best(history)
        violated = f", violation {violation:.2g}" if violation > 0.0 else ""
        where = f" in iteration {best}" if best < last else ""
        failed = f", {self.problem.failures} rollouts failed" if self.problem.failures else ""
        lost = f", {self.problem.lost_worlds} worlds lost" if self.problem.lost_worlds else ""
        self._bar.set_postfix_str(f"loss {loss:.5g}{violated}, best {history.loss[best]:.5g}{where}{failed}{lost}")
        processes = self.problem.processes
        if processes.first:
            write(self._loggers, values, last)
        if self._callback is not None and processes.agreed(processes.first and bool(self._callback(history))):
            raise Stopped

    def complete(self) -> None:
        """Count a complete iteration, and save the state."""
        self.done += 1
        self.save()
        self._bar.update()

    def state_dict(self) -> dict[str, Any]:
        """All data that the rest of the run depends on: tensors, numbers, strings, and containers of these."""
        return {
            "about": self.about,
            "problem": self.problem.unknowns.about(),
            "last": self.problem.last_of_all(),
            "done": self.done,
            "unknowns": [t.detach() for t in self.problem.unknowns.tensors],
            "best": self.best,
            "method": self.search.state_dict(),
            "history": self.history.saved(),
            "counts": (self.problem.episodes, self.problem.failures, self.problem.lost_worlds),
            "random": self.problem.processes.gathered(random_state()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, including the random states.

        Raises:
            ValueError: The state belongs to a run with other settings, has other unknowns, bounds or scales, or has
                completed more than `iterations`; nothing was changed.
        """
        self._refuse(state)
        if (result := state.get("result")) is not None:
            ending = Ending(*result["ending"])
            if ending.reason != LIMIT.reason or self.iterations <= result["iterations"]:
                self._ended = True
                self.history.reason, self.history.message = ending
                counts = tuple(result["history"][name][-1] for name in ("episodes", "failures", "lost_worlds"))
                state = {**state, "history": result["history"], "best": result["best"], "counts": counts}
        unknowns = self.problem.unknowns
        unknowns.assign(state["unknowns"])
        unknowns.to_leaves()
        self.best = [b.to(t.device) for b, t in zip(state["best"], unknowns.tensors, strict=True)]
        self.done = state["done"]
        for name, column in state["history"].items():
            getattr(self.history, name)[:] = column
        self.problem.episodes, self.problem.failures, self.problem.lost_worlds = state["counts"]
        self.problem.expect(state["last"], self.history.window)
        self._start = time.perf_counter() - (self.history.seconds[-1] if self.history.seconds else 0.0)
        self.search.load_state_dict(state["method"])
        set_random_state(state["random"][self.problem.processes.rank])
        self._bar.update(self.done)

    def save(self) -> None:
        """Write the state to the checkpoint, if there is one; an older file is replaced atomically.

        Raises:
            OSError: The file cannot be written.
        """
        if self._checkpoint is not None:
            state = self.state_dict()
            if self.problem.processes.first:
                self._write(state)

    def load(self) -> None:
        """Read the checkpoint that `save` has written, and restore its state.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a checkpoint, or belongs to another run.
        """
        path = self._checkpoint
        state = read_state(path, self.state_dict(), "warpbots.minimize")
        try:
            self.load_state_dict(state)
        except ValueError as fault:
            raise ValueError(
                f"cannot resume {path}: {fault}; use the settings of that run, or begin a new one without resume"
            ) from None

    def _write(self, state: Mapping[str, Any]) -> None:
        with replacing(self._checkpoint) as (temporary,):
            torch.save(state, temporary)

    def _refuse(self, state: Mapping[str, Any]) -> None:
        faults = differences(state["about"], self.about)
        both = state["unknowns"], self.problem.unknowns.tensors
        shapes = [[(tuple(t.shape), t.dtype) for t in tensors] for tensors in both]
        if shapes[0] != shapes[1]:
            texts = [", ".join(f"{shape} of {dtype}" for shape, dtype in listed) for listed in shapes]
            faults.append(f"its unknowns have the shapes {texts[0]} there and {texts[1]} here")
        else:
            faults += self.problem.unknowns.differences(state["problem"])
        if state["done"] > self.iterations:
            faults.append(
                f"{state['done']} iterations are done already, which count towards the {self.iterations} requested"
            )
        if faults:
            raise ValueError("; ".join(faults))


def _warn_of_a_zero_gradient() -> None:
    warn_user(
        "minimize: the gradient of the loss is exactly zero in the first iteration, so that the unknowns do not "
        "change: they are at an optimum or have no effect, for example because a cable is slack, nothing touches, or a "
        "body is held; start elsewhere, or add a term to the loss that leads away from there (the documentation of "
        "gradients has a table)"
    )
