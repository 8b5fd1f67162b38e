"""DiffHand's Flip Box for boxes of several sizes: a finger and controls that flip them all, open loop.

    python benchmarks/papers/diffhand_sizes.py [--iterations N]

The finger and the controls of `diffhand_compare`, optimised for a box of 6 cm, are tried with boxes of 4 to 8 cm. Then
one design and one table of controls are optimised for several sizes at once, beginning with these: the loss is the mean
of the losses of Flip Box over the sizes `LEARNT`, and a rollout is an episode for each size. Both are judged with sizes
in between, too. A box has been flipped if it ends within 5 degrees of a quarter turn. Writes ``diffhand_sizes.png`` and
the result, ``diffhand_sizes.json``, beside this file.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from diffhand_hands import CM, SIDE, finger, flip_scene
from diffhand_tasks import TASKS, Task
from fast import figures, sized

import warpbots as wb
from warpbots.optimize.run import Method

HERE = figures(__file__)
"""Where figure and result go."""
LEARNT = sized((4.0, 5.0, 6.0, 7.0, 8.0), (5.0, 6.0))
"""Edges of the boxes that the search sees [cm]."""
JUDGED = sized(tuple(np.arange(4.0, 8.01, 0.25).tolist()), (5.0, 6.0))
"""Edges of the boxes with which a result is tried [cm]."""
NEAR = 5.0
"""Deviation from a quarter turn up to which a box counts as flipped [degrees]."""


def task_of(side: float = SIDE / CM, points: int = 1, steps: int = 1) -> Task:
    """Flip Box with a box of some edge [cm], and with factors of the numbers of contact points and of time steps."""
    task, hand = TASKS["flip"](), finger(density=points)
    sim = wb.Simulation(
        flip_scene(hand, side=side * CM), task.sim.solver, task.sim.dt, steps * task.sim.substeps,
        checkpoints=wb.Checkpoints.all(),
    )  # fmt: skip
    task.hand, task.sim, task.alone = hand, sim, sim
    return task


def stored() -> tuple[torch.Tensor, torch.Tensor]:
    """Controls, shape (intervals, channels), and factors, shape (n,), of `diffhand_compare`, as unknowns."""
    found = refined.kept("diffhand_flip_after")
    controls = found["controls"][: TASKS["flip"]().intervals]
    return tuple(value.double().requires_grad_() for value in (controls, found["factors"]))


def missing(controls: torch.Tensor, factors: torch.Tensor) -> np.ndarray:
    """What is missing of a quarter turn with each of the boxes `JUDGED` [degrees]."""
    with torch.no_grad():
        return np.array([float(task_of(side).evaluate(controls[None], factors)[1]) for side in JUDGED])


def learn(
    tasks: Sequence[Task], controls: torch.Tensor, factors: torch.Tensor, method: Method, iterations: int
) -> wb.optimize.History:
    """Optimise controls and factors for all tasks at once, in place."""
    _, unknowns = tasks[0].problem(controls, factors)

    def loss() -> torch.Tensor:
        return torch.stack([task.evaluate(controls[None], factors)[0].sum() for task in tasks]).mean()

    return wb.minimize(loss, unknowns, method, iterations=iterations, progress=False)


def say(label: str, angles: np.ndarray) -> None:
    """Print which boxes are flipped."""
    each = ", ".join(f"{side:g} cm {angle:.1f}" for side, angle in zip(JUDGED, angles, strict=True))
    print(f"{label}: {(angles < NEAR).sum()} of {len(angles)} boxes flipped; missing [degrees]: {each}", flush=True)


def draw(results: dict[str, np.ndarray]) -> None:
    """Draw what is missing of a quarter turn over the size of the box."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.0), dpi=110, layout="constrained")
    ax = figure.subplots()
    for (label, angles), mark in zip(results.items(), "os", strict=True):
        ax.semilogy(JUDGED, np.maximum(angles, 1e-2), f"{mark}-", label=label)
    ax.axhline(NEAR, color="0.5", lw=0.8)
    for side in LEARNT:
        ax.axvline(side, color="0.85", lw=0.8, zorder=0)
    ax.set(xlabel="edge of the box [cm]", ylabel="missing of a quarter turn [degrees]", title="Flip Box, open loop")
    ax.legend(frameon=False)
    figure.savefig(HERE / "diffhand_sizes.png")


def main() -> None:
    """Try the stored result, optimise it for all sizes, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=sized(100, 1))
    options = parser.parse_args()
    controls, factors = stored()
    results = {"for 6 cm": missing(controls, factors)}
    say("designed for 6 cm", results["for 6 cm"])
    begun = time.process_time()
    tasks, method = [task_of(side) for side in LEARNT], wb.methods.SciPy("L-BFGS-B")
    history = learn(tasks, controls, factors, method, options.iterations)
    seconds = time.process_time() - begun
    label = f"for {', '.join(f'{side:g}' for side in LEARNT)} cm"
    results[label] = missing(controls, factors)
    print(
        f"mean loss {history.loss[0]:.0f} to {min(history.loss):.0f} in {history.episodes[-1]} episodes of "
        f"{len(LEARNT)} boxes, {seconds:.0f} s of CPU time"
    )
    say(f"designed {label}", results[label])
    (HERE / "diffhand_sizes.json").write_text(json.dumps({"controls": controls.tolist(), "factors": factors.tolist()}))
    draw(results)


if __name__ == "__main__":
    main()
