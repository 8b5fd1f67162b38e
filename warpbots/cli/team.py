"""Processes that ``torchrun`` started, and the worlds that each of them simulates."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed

import warpbots as wb

__all__ = ["VARIED", "share", "team", "variations"]

VARIED = ("youngs_modulus", "density", "mass", "friction")
"""Parameters that are varied between worlds, if the solver has them."""


@contextlib.contextmanager
def team(device: str | None) -> Iterator[Any]:
    """The group of the processes that ``torchrun`` started; None if it did not start this one."""
    if torch.distributed.is_initialized():
        yield torch.distributed.group.WORLD
        return
    if not torch.distributed.is_torchelastic_launched():
        yield None
        return
    on_gpu = device is not None and device.startswith("cuda")
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield torch.distributed.group.WORLD
    finally:
        with contextlib.suppress(RuntimeError):  # another process has been killed
            torch.distributed.destroy_process_group()


def share(worlds: int, group: Any) -> range:
    """The worlds that this process simulates.

    Raises:
        ValueError: The worlds cannot be divided equally.
    """
    rank, count = (0, 1) if group is None else (torch.distributed.get_rank(), torch.distributed.get_world_size())
    if worlds % count:
        raise ValueError(
            f"--worlds must be a multiple of the number of processes, got {worlds} worlds for {count} processes"
        )
    each = worlds // count
    return range(rank * each, (rank + 1) * each)


def variations(simulation: wb.Simulation, mine: range, spread: float, seed: int) -> dict[str, torch.Tensor]:
    """Parameters of worlds, multiplied by factors between 1 - spread and 1 + spread; the first world is unchanged.

    The factors of a world do not depend on the process that simulates it.

    Args:
        simulation: A simulation of as many worlds as there are in `mine`.
        mine: Numbers of these worlds.
        spread: Largest relative difference.
        seed: Seed of the factors.
    """
    if mine == range(1):
        return {}
    found = {}
    for name in (n for n in VARIED if n in simulation.parameters()):
        value = simulation.parameter(name)
        factors = [_factor(seed, world, VARIED.index(name), spread) for world in mine]
        found[name] = value * value.new_tensor(factors).view(-1, *(1,) * (value.dim() - 1))
    return found


def _factor(seed: int, world: int, which: int, spread: float) -> float:
    draw = np.random.default_rng((abs(seed), world, which)).uniform(-spread, spread)
    return 1.0 if world == 0 else 1.0 + draw
