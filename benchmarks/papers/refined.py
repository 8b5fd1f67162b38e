"""Refinement: a motion that a search has found is played again in half the step and on a finer grid, without a search.

A script keeps the results of the searches of seed 0 in the folder ``stored`` beside this file. With ``--refine`` it
searches for nothing: it plays these results as they were found, in half the step, and on the next finer grid or mesh,
and prints the share of the result that each of these keeps. A gait that is right keeps all of it.
"""

import argparse
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import FAST

import warpbots as wb

__all__ = [
    "ENOUGH",
    "Fields",
    "Refinement",
    "again",
    "keep",
    "kept",
    "measure",
    "option",
    "resolve",
    "stored_as",
    "table",
]

FOLDER = Path(__file__).resolve().parent / "stored"
"""Results of searches, a file each."""
ENOUGH = 0.85
"""Share below which a result belongs to its step or its grid."""


@dataclasses.dataclass(frozen=True)
class Refinement:
    """How much finer a motion is simulated than it was found.

    Attributes:
        steps: Factor of the number of time steps.
        cells: Factor of the size of cells.
    """

    steps: int = 1
    cells: float = 1.0


Play = Callable[[Refinement], float]
"""Plays a stored result again and returns its measure, of which more is better."""


def option(parser: argparse.ArgumentParser) -> None:
    """Add ``--refine`` to a command line."""
    parser.add_argument("--refine", action="store_true", help="play the stored results again, finer")


def stored_as(name: str, size: str) -> str:
    """Name of a result and its figures in a size; the small size has the name alone."""
    return name if size == "small" else f"{name}_{size}"


def keep(name: str, **values: torch.Tensor | np.ndarray) -> None:
    """Store what a search has found, in single precision; a test run stores nothing."""
    if not FAST:
        FOLDER.mkdir(exist_ok=True)
        arrays = {key: torch.as_tensor(value).detach().cpu().numpy() for key, value in values.items()}
        np.savez_compressed(FOLDER / f"{name}.npz", **{key: array.astype(np.float32) for key, array in arrays.items()})


def is_kept(name: str) -> bool:
    """Whether `keep` has stored a result."""
    return (FOLDER / f"{name}.npz").exists()


def kept(name: str) -> dict[str, torch.Tensor]:
    """What `keep` has stored.

    Raises:
        FileNotFoundError: The search has not been run.
    """
    path = FOLDER / f"{name}.npz"
    if not is_kept(name):
        raise FileNotFoundError(f"{path}: there is no stored result; run the script without --refine first")
    with np.load(path) as arrays:
        return {key: torch.as_tensor(arrays[key]).to(torch.get_default_dtype()) for key in arrays.files}


Fields = Callable[[wb.Simulation], Mapping[str, torch.Tensor]]
"""Fields that were designed, by name, on the matter of a simulation."""


def again(sim: wb.Simulation, how: Refinement, cell: str, fields: Fields | None = None) -> wb.Simulation:
    """The same scene, with a finer grid and in shorter steps.

    Args:
        sim: The simulation with which the motion was found.
        how: The refinement; on a finer grid steps are as long as its stability bound permits, divided by `how.steps`.
        cell: Field of the solver with the size of cells, such as ``"dx"``.
        fields: The designed fields with which the motion will be played, as stiffer or lighter matter has a lower
            bound; None if the scene keeps its matter.
    """
    solver: Any = sim.solver
    substeps = sim.substeps
    if how.cells != 1.0:
        solver = dataclasses.replace(solver, **{cell: how.cells * getattr(solver, cell)})
        finer = wb.Simulation(sim.scene, solver, sim.dt, device=sim.model.device)
        substeps = finer.substeps
        if fields is not None:
            designed = wb.Simulation(finer.scene_with(**fields(finer)), solver, sim.dt, device=sim.model.device)
            substeps = max(substeps, designed.substeps)
    return wb.Simulation(
        sim.scene, solver, sim.dt, how.steps * substeps, worlds=sim.worlds, device=sim.model.device,
        checkpoints=sim.checkpoints,
    )  # fmt: skip


def resolve(
    loss: Callable[[wb.Simulation], torch.Tensor],
    sims: Mapping[Refinement, wb.Simulation],
    unknowns: Any,
    method: wb.methods.Torch,
    iterations: int,
    text: Callable[[float], str],
    mean: Callable[[torch.Tensor], torch.Tensor] = torch.mean,
) -> tuple[wb.optimize.History, float]:
    """Optimise a motion in several discretisations at once, so that it belongs to none of them, and print its losses.

    The best iteration is kept: later ones may be better in one discretisation and worse in another. A rollout that
    fails ends the search.

    Args:
        loss: Function of a simulation: the loss in it.
        sims: A simulation for each discretisation.
        unknowns: The values that are optimised.
        method: The method.
        iterations: Number of iterations, each of which has a rollout in every discretisation.
        text: Function of a loss: its text.
        mean: Function of the losses in all discretisations, shape (n,): their mean.

    Returns:
        The history, and the CPU time [s].
    """
    found: list[list[str]] = []

    def losses() -> torch.Tensor:
        each = torch.stack([loss(sim) for sim in sims.values()])
        found.append([text(value) for value in each.tolist()])
        print(", ".join(found[-1]), flush=True)
        return mean(each)

    begun = time.process_time()
    try:
        history = wb.minimize(losses, unknowns, method, iterations=iterations, progress=False)
    except wb.optimize.RolloutError as fault:  # the unknowns have the best values before it
        if not (fault.history and fault.history.loss):
            raise
        print(f"the search ended: {fault}", flush=True)
        history = fault.history
    seconds = time.process_time() - begun
    for how, first, best in zip(sims, found[0], found[history.best], strict=True):
        print(f"{how.steps} x steps, cells of {how.cells:g} times the size: {first} -> {best}")
    print(f"iteration {history.best} of {iterations}, {seconds:.0f} s of CPU time", flush=True)
    return history, seconds


def table(plays: Mapping[str, Play], cells: float, unit: str = "m") -> dict[str, tuple[float, float, float]]:
    """Play all results again, print the table of the shares that they keep, and return the measures.

    Args:
        plays: The results by name.
        cells: Factor of the size of cells on the finer grid or mesh.
        unit: Unit of the measures.
    """
    print(f"| stored result | as found [{unit}] | in half the step | cells of {cells:g} times the size |")
    print("|---|---|---|---|")
    found = {}
    for name, play in plays.items():
        measures = tuple(measure(play, how) for how in (Refinement(), Refinement(steps=2), Refinement(cells=cells)))
        texts = [f"{m:.3f} ({_share(m / measures[0])})" for m in measures[1:]]
        print("| " + " | ".join((name, f"{measures[0]:.3f}", *texts)) + " |", flush=True)
        found[name] = measures
    return found


def measure(play: Play, how: Refinement) -> float:
    """The measure, or NaN if the simulation fails, whose reason is printed."""
    try:
        with torch.no_grad():
            return play(how)
    except wb.SimulationError as fault:
        print(f"    {how}: {str(fault)[:160]}", flush=True)
        return math.nan


def _share(share: float) -> str:
    if math.isnan(share):
        return "fails"
    return f"{100.0 * share:.0f} %" + (f", below {100.0 * ENOUGH:g} %" if share < ENOUGH else "")
