"""Differences between versions of MuJoCo from 3.14 on: the only module that depends on the version."""

import re
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["LATER_FIELDS", "LEAST_VERSION", "discard_visual", "field", "refuse_older"]

LEAST_VERSION = (3, 14)
"""The oldest version with which the tests pass; older versions crash on reading the parent of the world."""

LATER_FIELDS = {"jnt_springyield": "4.0.0"}
"""Fields of `mujoco.MjModel`, and the first version that has them; files for earlier versions cannot set them."""

_COUNTS = {"jnt": "njnt"}


def refuse_older(mujoco: ModuleType) -> None:
    """Raise if the version of MuJoCo is older than `LEAST_VERSION`.

    Raises:
        ImportError: The version of MuJoCo is older than `LEAST_VERSION`.
    """
    version = tuple(int(number) for number in re.findall(r"\d+", mujoco.__version__)[:2])
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise ImportError(
            f"robots need MuJoCo {least} or later, got {mujoco.__version__}, which would end the interpreter; install "
            f"it with: pip install 'mujoco>={least}'"
        )


def field(model: Any, name: str, default: float = 0.0) -> np.ndarray:
    """A field of a `mujoco.MjModel`; in versions without this field, an array with `default` for each element."""
    if name in LATER_FIELDS and not hasattr(model, name):
        return np.full(getattr(model, _COUNTS[name.partition("_")[0]]), default)
    return getattr(model, name)


def discard_visual(spec: Any) -> None:
    """Remove visual geoms, which do not affect the motion, from a `mujoco.MjSpec`; no effect before MuJoCo 3.16.0."""
    if hasattr(spec, "discard_visual"):
        spec.discard_visual()
