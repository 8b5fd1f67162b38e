"""ChainQueen figure 11: a biped whose controller is optimised with or without stiffness, mass and Poisson's ratio.

    python benchmarks/papers/chainqueen_codesign.py [--size full] [--seeds 5] [--processes 2] [--no-clock]

Two legs, each of two chambers side by side, carry a body; a perceptron observes seven clusters and drives the four
pressures. Young's modulus, density and Poisson's ratio are fields with a value for each particle, within the paper's
bounds. All eight subsets of these fields are optimised from the same seeds, for the same number of iterations. The
result printed in the paper is a gait that is nearly 50 % better with all three fields, and an order of effects E > mass
> nu. With ``--no-clock`` the perceptron sees no time, and there are two subsets: none and all fields. Writes
``chainqueen_codesign.png`` and film strips beside this file.
"""

import functools
import itertools
import math
import time
from pathlib import Path

import numpy as np
import refined
import torch
from chainqueen_common import (
    KILO,
    SIZES,
    cost,
    curves,
    designed_by,
    distance,
    film,
    in_processes,
    keep_walk,
    options,
    sized,
    stored_walk,
    wb,
)  # fmt: skip
from scipy.stats import t

DX = 1 / 80
"""Size of a cell at the small size [m]."""
STEPS = {"small": sized(200, 4), "full": sized(400, 4)}
"""Control intervals of 10 ms: the motion of the paper, of 4 s, has the full size."""
ITERATIONS = sized(40, 2)
CLOCK = 0.4
"""Period of the clock [s]."""
RATE = 1e-2
"""Learning rate of Adam, of the controller and, relative to their ranges, of the fields."""
FIELDS = {
    "E": ("youngs_modulus", 7 * KILO, 20 * KILO),
    "mass": ("density", 0.7 * KILO, 2.0 * KILO),
    "nu": ("poissons_ratio", 0.2, 0.4),
}
"""Fields, with their bounds: those of the paper, as their initial values 10, 1 and 0.3 are."""


@functools.lru_cache(2)  # all seeds share the graphs of a simulation, which take ten seconds to record
def biped(device: str | None, size: str) -> wb.Simulation:
    """Simulation of the robot in a size; pressures reach 2 in the paper's units.

    Small rollouts keep all states for the gradient, which is the fastest schedule. At full size there are 11,520
    particles; the paper has 12,800.
    """
    box, floor = wb.shapes.Box, 0.1
    chambers = {f"chamber {k}": box((x, floor), (x + 0.05, floor + 0.1)) for k, x in enumerate((0.4, 0.45, 0.6, 0.65))}
    shape = wb.shapes.Union((*chambers.values(), box((0.4, floor + 0.1), (0.7, floor + 0.2))))
    body = wb.SoftBody("biped", shape, wb.Material(10 * KILO, 0.3, KILO), chambers)
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    ground = wb.floor(floor, friction=0.5, dim=2)
    scene = wb.Scene([body], pressures, [ground], gravity=(0.0, -2.0), domain=((0.0, 0.0), (2.5, 0.6)))
    schedule = wb.Checkpoints.all() if size == "small" else wb.Checkpoints.sqrt()
    solver, substeps = SIZES[size].solver(DX, 2), round(10 / SIZES[size].cells)
    return wb.Simulation(scene, solver, dt=1e-2, substeps=substeps, device=device, checkpoints=schedule)


def designed(sim: wb.Simulation, subset: tuple[str, ...]) -> tuple[dict[str, torch.Tensor], dict[str, wb.Unknown]]:
    """The fields of a subset, first as tensors by names of parameters, then as unknowns with bounds."""
    chosen = [FIELDS[short] for short in subset]
    fields = {name: sim.parameter(name).requires_grad_() for name, _, _ in chosen}
    return fields, {name: wb.Unknown(fields[name], low, high, scale=high - low) for name, low, high in chosen}


def controller(sim: wb.Simulation, seed: int = 0, clock: float | None = CLOCK) -> wb.controllers.MLP:
    """The perceptron that drives the pressures, which observes a clock of some period [s], or none."""
    return wb.controllers.MLP(sim, wb.observers.Clusters(7), clock=clock, seed=seed)


def learn(
    sim: wb.Simulation, size: str, subset: tuple[str, ...], seed: int, clock: float | None = CLOCK
) -> tuple[np.ndarray, wb.Trajectory]:
    """Learn from a seed; return the distances of all iterations [m], and the motion of the best iteration."""
    policy = controller(sim, seed, clock)
    fields, unknowns = designed(sim, subset)

    def loss() -> torch.Tensor:
        return cost(sim.rollout(policy, STEPS[size], **fields))

    history = wb.minimize(
        loss,
        {"policy": policy} | unknowns,
        wb.methods.Torch(lr=RATE, max_norm=0.1),
        iterations=ITERATIONS,
        progress=False,
    )
    if seed == 0 and clock and len(subset) in (0, len(FIELDS)):
        keep_walk(stored_name(subset, size), sim, policy, fields, biped("cpu", "small").model.matter.position)
    with torch.no_grad():
        return -np.array(history.loss), sim.rollout(policy, STEPS[size], **fields)


def stored_name(subset: tuple[str, ...], size: str) -> str:
    """Name of the stored gait, of control alone or with all fields."""
    return refined.stored_as(f"chainqueen_codesign_{'designed' if subset else 'control'}", size)


def refine(sim: wb.Simulation, size: str) -> None:
    """Play the stored gaits of a size again, finer; those for several grids are of `chainqueen_resolved`."""

    def play(how: refined.Refinement, name: str) -> float:
        finer = refined.again(sim, how, "dx", designed_by(name))
        return float(distance(stored_walk(name, finer, controller(finer), STEPS[size])))

    gaits = {named(subset): stored_name(subset, size) for subset in ((), tuple(FIELDS))}
    if size == "small":
        gaits |= {f"{label}, for several grids": f"{name}_grids" for label, name in gaits.items()}
    refined.table({label: functools.partial(play, name=name) for label, name in gaits.items()}, 0.75)


def run(
    device: str | None, size: str, subset: tuple[str, ...], seed: int, out: Path | None, clock: float | None = CLOCK
) -> tuple[np.ndarray, float]:
    """Learn from a seed, and draw the first runs with a clock, with no field and with all fields.

    Returns the distances of all iterations [m], and the CPU time [s].
    """
    began = time.process_time()
    distances, motion = learn(biped(device, size), size, subset, seed, clock)
    if seed == 0 and clock and len(subset) in (0, len(FIELDS)):
        film(refined.stored_as(f"chainqueen_codesign_{'after' if subset else 'before'}", size), motion, out)
    seconds = time.process_time() - began
    print(f"{named(subset)}, seed {seed}: {distances.max():.3f} m, {seconds:.0f} s", flush=True)
    return distances, seconds


def named(subset: tuple[str, ...]) -> str:
    """Words for the quantities that are optimised."""
    return " and ".join(("control", *subset))


def interval(values: list[float]) -> str:
    """Text of the mean of `values` with its confidence interval of 90 %."""
    if len(values) < 2:
        return f"{values[0]:.3f}"
    half = t.ppf(0.95, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.3f} +- {half:.3f}"


def main() -> None:
    """Print the table, and draw the figures."""
    chosen = options(
        __doc__, "processes", "out", "refine", seeds=5, sizes=SIZES,
        flags={"--no-clock": "the perceptron sees no time"},
    )  # fmt: skip
    sim = biped(chosen.device, chosen.size)
    print(sim.model.summary(), flush=True)
    if chosen.refine:
        refine(sim, chosen.size)
        return
    subsets = [subset for size in range(len(FIELDS) + 1) for subset in itertools.combinations(FIELDS, size)]
    subsets, clock = ([(), tuple(FIELDS)], None) if chosen.no_clock else (subsets, CLOCK)
    jobs = list(itertools.product(subsets, range(chosen.seeds)))
    work = [(chosen.device, chosen.size, *job, chosen.out, clock) for job in jobs]
    found = in_processes(run, work, chosen.processes)
    of = {s: [result for (own, _), result in zip(jobs, found, strict=True) if own == s] for s in subsets}
    runs = {s: [distances for distances, _ in results] for s, results in of.items()}
    best = {subset: [float(d.max()) for d in distances] for subset, distances in runs.items()}
    alone = best[()]
    print("| optimised | distance [m] | gain of the mean | gain seed by seed [m] |\n|---|---|---|---|")
    for subset in subsets:
        gain = np.mean(best[subset]) / np.mean(alone) - 1.0
        each = [b - a for a, b in zip(alone, best[subset], strict=True)]
        print(f"| {named(subset)} | {interval(best[subset])} | {100 * gain:+.0f} % | {interval(each)} |")
    print(f"{np.mean([seconds for _, seconds in found]):.0f} s of CPU time a run")
    shown = [subset for subset in subsets if len(subset) != 2]
    few = {named(subset): runs[subset] for subset in shown}
    times = {named(subset): [seconds for _, seconds in of[subset]] for subset in shown}
    name = refined.stored_as("chainqueen_codesign" + "_no_clock" * chosen.no_clock, chosen.size)
    curves(name, few, "distance [m]", times)


if __name__ == "__main__":
    main()
