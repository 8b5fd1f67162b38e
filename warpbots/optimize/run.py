"""A resumable optimisation: its state, as in torch, and the file that keeps it."""

import contextlib
import random
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch

from warpbots.optimize.history import History
from warpbots.output_files import replacing

__all__ = ["Run"]


class Run:
    """An optimisation and its progress.

    Attributes:
        parameters: The optimised tensors.
        best: Values of the parameters that gave the smallest loss.
        optimizer: The optimiser.
        iterations: Total number of iterations.
        history: Losses so far.
        about: Settings that identify the run, plain values by name; a run with other settings is not loaded.
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        optimizer: torch.optim.Optimizer,
        iterations: int,
        about: Mapping[str, Any],
    ):
        """Begin with the current values of the parameters."""
        self.parameters, self.optimizer, self.iterations, self.about = parameters, optimizer, iterations, dict(about)
        self.history = History()
        self.keep()

    def keep(self) -> None:
        """Store the current values of the parameters as the best ones."""
        self.best = [p.detach().clone() for p in self.parameters]

    def restore(self) -> None:
        """Set the parameters to the best values."""
        _copy(self.best, self.parameters)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on: tensors, numbers, strings, and containers of them."""
        history = self.history
        return {
            "about": self.about,
            "parameters": [p.detach() for p in self.parameters],
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
            "history": {"loss": history.loss, "seconds": history.seconds, "gradient_norm": history.gradient_norm},
            "random": _random_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state at the call of `state_dict`, random numbers included.

        Raises:
            ValueError: The state belongs to a run with other settings, has parameters of other shapes, or more
                iterations than this run shall have; nothing was changed.
        """
        self._refuse(state)
        _copy(state["parameters"], self.parameters)
        self.best = [b.to(p.device) for b, p in zip(state["best"], self.parameters, strict=True)]
        self.optimizer.load_state_dict(state["optimizer"])
        self.history = History(**{name: list(column) for name, column in state["history"].items()})
        _set_random_state(state["random"])

    def save(self, path: str | Path) -> None:
        """Write the state; what was there is replaced in one piece.

        Raises:
            OSError: The file cannot be written.
        """
        with replacing(path) as (temporary,):
            torch.save(self.state_dict(), temporary)

    def load(self, path: str | Path) -> None:
        """Read the state that `save` has written.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is not a checkpoint, or one of another run.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no checkpoint {path} to resume; begin a new run without resume")
        state = None
        if zipfile.is_zipfile(path):  # otherwise the error of torch depends on the first bytes
            with contextlib.suppress(UnpicklingError, RuntimeError):
                state = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state, dict) or not state.keys() >= self.state_dict().keys():
            raise ValueError(f"{path} is not a checkpoint of warpbots.fit; begin a new run without resume")
        try:
            self.load_state_dict(state)
        except ValueError as fault:
            raise ValueError(
                f"cannot resume {path}: {fault}; use the settings of that run, or begin a new one without resume"
            ) from None

    def _refuse(self, state: Mapping[str, Any]) -> None:
        there, here = state["about"], self.about
        faults = [
            f"{name} was {there.get(name)} there and is {here.get(name)} here"
            for name in {**there, **here}
            if there.get(name) != here.get(name)
        ]
        shapes = [[(tuple(t.shape), t.dtype) for t in tensors] for tensors in (state["parameters"], self.parameters)]
        if shapes[0] != shapes[1]:
            texts = [", ".join(f"{shape} of {dtype}" for shape, dtype in listed) for listed in shapes]
            faults.append(f"its parameters have the shapes {texts[0]} there and {texts[1]} here")
        done = len(state["history"]["loss"])
        if done > self.iterations:
            faults.append(f"{done} iterations are done already, which count towards the {self.iterations} requested")
        if faults:
            raise ValueError("; ".join(faults))


@torch.no_grad()
def _copy(values: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)


def _random_state() -> dict[str, Any]:
    """States of the global random generators of torch, NumPy and Python."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": (name, keys.tolist(), *rest),
        "python": random.getstate(),
    }


def _set_random_state(state: Mapping[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    random.setstate(state["python"])
