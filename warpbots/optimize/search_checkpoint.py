"""The file from which a search over candidates is resumed."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from warpbots.optimize.random_state import random_state, set_random_state
from warpbots.optimize.run import differences, plain, read_state, version
from warpbots.optimize.search_history import Leg, SearchHistory
from warpbots.output_files import replacing

__all__ = ["SearchCheckpoint"]


class SearchCheckpoint:
    """The progress of a search, in a file that is replaced atomically after every leg.

    A running leg has its own checkpoint beside this file, with the number of the leg in its name; it is deleted when
    the leg has ended.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any], history: SearchHistory):
        """Keep `history` in the file `path`, with settings that identify the search; nowhere if there is no path."""
        self._path = None if path is None else Path(path)
        self._about = {**plain(about), "warpbots": version()}
        self._history = history

    def begin(self) -> list[Leg]:
        """Begin a new search, without any legs."""
        self.keep()
        return []

    def keep(self) -> None:
        """Write the progress so far.

        Raises:
            OSError: The file cannot be written.
        """
        if self._path is not None:
            with replacing(self._path) as (temporary,):
                torch.save(self._state(), temporary)
            for leg in self._path.parent.iterdir():
                if re.fullmatch(f"{re.escape(self._path.stem)}-leg[0-9]+{re.escape(self._path.suffix)}", leg.name):
                    leg.unlink()

    def load(self) -> list[Leg]:
        """Legs of the search in the file; its best values and its random states are restored.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is no checkpoint of a search, or belongs to a search with other settings or candidates.
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
        return [Leg(**leg) for leg in state["legs"]]

    def of_leg(self) -> dict[str, Any]:
        """Checkpoint of the next leg, and whether to resume it, as options of `warpbots.minimize`."""
        if self._path is None:
            return {}
        path = self._path.with_name(f"{self._path.stem}-leg{len(self._history.legs)}{self._path.suffix}")
        return {"checkpoint": path, "resume": path.exists()}

    def _state(self) -> dict[str, Any]:
        return {
            "about": self._about,
            "candidates": list(self._history.candidates),
            "legs": [dataclasses.asdict(leg) for leg in self._history.legs],
            "values": dict(self._history.values),
            "random": random_state(),
        }
