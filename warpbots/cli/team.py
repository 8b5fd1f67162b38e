"""The processes that ``torchrun`` has started, and the worlds that each process simulates."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed

import warpbots as wb

__all__ = ["VARIED", "share", "team", "variations"]

VARIED = ("youngs_modulus", "density", "mass", "friction")
"""Parameters that differ between worlds in a training with several worlds, if the model has them."""


@contextlib.contextmanager
def team(device: str | None) -> Iterator[Any]:
    """Context with the group of processes that ``torchrun`` started.

    None if ``torchrun`` did not start this process.
    """
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

    Args:
        worlds: Number of worlds of all processes together.
        group: The group of processes; None for this process alone.

    Raises:
        ValueError: The worlds cannot be divided equally among the processes.
    """
    rank, count = (0, 1) if group is None else (torch.distributed.get_rank(), torch.distributed.get_world_size())
    if worlds % count:
        raise ValueError(
            f"--worlds must be a multiple of the number of processes, got {worlds} worlds for {count} processes"
        )
    each = worlds // count
    return range(rank * each, (rank + 1) * each)


def variations(simulation: wb.Simulation, mine: range, spread: float, seed: int) -> dict[str, torch.Tensor]:
    """The parameters `VARIED` of worlds, multiplied by random factors between 1 - spread and 1 + spread.

    World 0 of all processes keeps its parameters. The factors of a world do not depend on the process that simulates
    the world.

    Args:
        simulation: A simulation with one world for each index in `mine`.
        mine: Indices of the worlds of this process among the worlds of all processes.
        spread: Largest relative change of a parameter.
        seed: Seed of the random factors.
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
