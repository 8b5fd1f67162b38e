"""Reading and restoring of the states of the global random generators, for checkpoints."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["random_state", "set_random_state"]


def random_state() -> dict[str, Any]:
    """States of the global random generators of torch, NumPy and Python."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": (name, keys.tolist(), *rest),
        "python": random.getstate(),
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restore the states of the generators that `random_state` returned."""
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    random.setstate(state["python"])
