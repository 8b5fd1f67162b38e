"""Checkpoints in files: reading one, and comparing the settings of its run with those of the present run."""

import contextlib
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from warpbots.read_limits import refuse_unpacking

__all__ = ["differences", "plain", "read_state", "version"]


def read_state(path: str | Path, like: Mapping[str, Any], maker: str) -> dict[str, Any]:
    """The state in a checkpoint file.

    Args:
        path: The file, written by `torch.save`.
        like: A state with the entries that the file must have.
        maker: Name of the function that writes such checkpoints, for messages.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not a checkpoint with these entries.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no checkpoint {path} to resume; begin a new run without resume")
    state = None
    refuse_unpacking(Path(path))
    if zipfile.is_zipfile(path):  # otherwise the error of torch depends on the first bytes
        with contextlib.suppress(UnpicklingError, RuntimeError):
            state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not state.keys() >= like.keys():
        raise ValueError(
            f"{path} is not a checkpoint of {maker}, or of an earlier version; begin a new run without resume"
        )
    return state


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Differences between the settings `there` of a stopped run and the settings `here` of this run, in words."""
    return [
        f"{name} was {there.get(name)} there and is {here.get(name)} here"
        for name in {**there, **here}
        if there.get(name) != here.get(name)
    ]


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with values of types that a checkpoint can hold and that can be compared."""
    return {
        name: value
        if type(value) in (bool, int, float, str, type(None))
        else getattr(value, "__qualname__", repr(value))
        for name, value in settings.items()
    }


def version() -> str:
    """The version of warpbots."""
    try:
        return metadata.version("warpbots")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "unknown"
