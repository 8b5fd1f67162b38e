"""The file from which a search over candidates is resumed."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from warpbots.optimize.checkpoint_files import differences, plain, read_state, version
from warpbots.optimize.random_state import random_state, set_random_state
from warpbots.optimize.search_history import SearchHistory, SearchRun
from warpbots.output_files import replacing

__all__ = ["SearchCheckpoint"]


class SearchCheckpoint:
    """Keeps the progress of a search in a file that is replaced atomically after every run.

    A run is one run of the method on one candidate. During a run, there is a second checkpoint file next to the
    file of the search, with the number of the run in its name; the second file is deleted when the run has ended.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any], history: SearchHistory):
        """Prepare to keep `history` in the file `path`; if `path` is None, nothing will be written.

        Args:
            path: The file.
            about: Settings that identify the search, by name.
            history: The history of the search.
        """
        self._path = None if path is None else Path(path)
        self._about = {**plain(about), "warpbots": version()}
        self._history = history

    def begin(self) -> list[SearchRun]:
        """Write the file of a new search, and return the list of its runs, which is empty."""
        self.keep()
        return []

    def keep(self) -> None:
        """Write the history so far and the random states to the file.

        Raises:
            OSError: The file cannot be written.
        """
        if self._path is not None:
            with replacing(self._path) as (temporary,):
                torch.save(self._state(), temporary)
            for run in self._path.parent.iterdir():
                if re.fullmatch(f"{re.escape(self._path.stem)}-run[0-9]+{re.escape(self._path.suffix)}", run.name):
                    run.unlink()

    def load(self) -> list[SearchRun]:
        """Read the file, restore the best values and the random states from it, and return the runs.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a checkpoint of a search, or belongs to a search with other settings or
                candidates.
        """
        state = read_state(self._path, self._state(), "warpbots.search")
        faults = differences(state["about"], self._about)
        if state["candidates"] != list(self._history.candidates):
            faults.append("its candidates differ, or are in another order")
        if faults:
            raise ValueError(
                f"cannot resume {self._path}: {'; '.join(faults)}; use the settings of that search, or begin a new one "
                f"without resume"
            )
        self._history.values.update(state["values"])
        set_random_state(state["random"])
        return [SearchRun(**run) for run in state["runs"]]

    def of_run(self) -> dict[str, Any]:
        """Options ``checkpoint`` and ``resume`` of `warpbots.minimize` for the next run; empty if `path` was None."""
        if self._path is None:
            return {}
        path = self._path.with_name(f"{self._path.stem}-run{len(self._history.runs)}{self._path.suffix}")
        return {"checkpoint": path, "resume": path.exists()}

    def _state(self) -> dict[str, Any]:
        return {
            "about": self._about,
            "candidates": list(self._history.candidates),
            "runs": [dataclasses.asdict(run) for run in self._history.runs],
            "values": dict(self._history.values),
            "random": random_state(),
        }
