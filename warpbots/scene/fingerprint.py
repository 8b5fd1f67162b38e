"""A short hash that identifies a scene."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

from warpbots.scene.scene import Scene

__all__ = ["fingerprint"]


def fingerprint(scene: Scene) -> str:
    """Hash of all data of a scene except `source`; equal scenes have the same hash in every process."""
    found = hashlib.sha256()
    _add(found, scene)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if dataclasses.is_dataclass(value):
        found.update(f"{type(value).__name__}(".encode())
        for field in dataclasses.fields(value):
            if field.compare:
                found.update(f"{field.name}=".encode())
                _add(found, getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        if np.issubdtype(value.dtype, np.floating):
            value = value + np.zeros((), value.dtype)  # -0.0 equals 0.0
        found.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple):
        found.update(f"{len(value)}(".encode())
        for part in value:
            _add(found, part)
    elif isinstance(value, dict):
        _add(found, tuple(value.items()))
    else:
        value = value + 0.0 if isinstance(value, float) else value
        found.update(f"{value!r};".encode())
