"""ChainQueen section 5.3.2: walkers on four, six and eight legs, whose matter is optimised with their control.

    python benchmarks/papers/chainqueen_walkers.py [quadruped] [hexapod] [octoped] [--size full] [--seeds 3]

Legs of 0.1 x 0.1 x 0.1, each of four chambers side by side, stand under both sides of a slab; a perceptron observes the
centre of mass and a clock, and drives the pressure of every chamber. The controller is optimised by itself, and
together with Young's modulus, density and Poisson's ratio of every particle, within the paper's bounds. The result
printed in the paper is a gait that is about 33 % better with these fields, within an hour. Controllers that were
optimised by themselves under MPM are then run under masses and springs and under projective dynamics. Writes
``chainqueen_walkers.png`` and film strips beside this file.
"""

import functools
import itertools
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import refined
import torch
from chainqueen_codesign import FIELDS, designed, interval
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

LEGS = {"quadruped": 4, "hexapod": 6, "octoped": 8}
LEG = 0.1
DX = LEG / 3
"""Size of a cell at the small size [m]."""
SUBSTEPS = {"small": 5, "full": 12}
"""Solver steps per control interval: at most 0.74 and 0.61 of the stability bound of the stiffest matter allowed."""
DT = 0.02
STEPS = sized(150, 3)
"""Control intervals: 3 s, as in the paper."""
ITERATIONS = sized(40, 1)
CLOCK = 0.5
"""Period of the clock [s]."""
RESOLVED = ("quadruped", False), ("quadruped", True), ("octoped", True)
"""Robots, and whether their matter is designed, of which `chainqueen_resolved` has gaits for several grids."""


def scene(legs: int) -> wb.Scene:
    """A walker with half of its legs on each side, 0.1 apart; pressures reach 2 in the paper's units."""
    box, rows = wb.shapes.Box, legs // 2
    chambers, feet = {}, []
    for row, side in itertools.product(range(rows), (0, 1)):
        x, y = 2.0 * LEG * row, 2.0 * LEG * side
        feet.append(box((x, y, 0.0), (x + LEG, y + LEG, LEG)))
        for i, j in itertools.product((0, 1), (0, 1)):
            a, b = x + 0.5 * LEG * i, y + 0.5 * LEG * j
            chambers[f"leg {row}{side} chamber {i}{j}"] = box((a, b, 0.0), (a + 0.5 * LEG, b + 0.5 * LEG, LEG))
    length = (2 * rows - 1) * LEG
    shape = wb.shapes.Union((*feet, box((0.0, 0.0, LEG), (length, 3.0 * LEG, 2.0 * LEG))))
    body = wb.SoftBody("walker", shape, wb.Material(10 * KILO, 0.3, KILO), chambers)
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    return wb.Scene(
        [body], pressures, [wb.floor(friction=0.5)], gravity=(0.0, 0.0, -2.0),
        domain=((-0.5, -0.3, 0.0), (length + 2.0, 0.6, 0.4)),
    )  # fmt: skip


def simulation(legs: int, solver: Any, device: str | None, substeps: int | None = None) -> wb.Simulation:
    """Simulation of the walker by a solver."""
    return wb.Simulation(scene(legs), solver, DT, substeps, device=device)


def walker(robot: str, size: str, device: str | None) -> wb.Simulation:
    """Simulation of a robot by MPM in a size; at full size 90 to 122 % of the paper's numbers of particles."""
    return simulation(LEGS[robot], SIZES[size].solver(DX, 3), device, SUBSTEPS[size])


def controller(sim: wb.Simulation, seed: int = 0) -> wb.controllers.MLP:
    """The perceptron that drives the pressures."""
    return wb.controllers.MLP(sim, clock=CLOCK, seed=seed)


def learn(sim: wb.Simulation, subset: tuple[str, ...], seed: int) -> tuple[np.ndarray, wb.controllers.MLP, dict]:
    """Learn from a seed; return the distances of all iterations [m], the controller and the fields."""
    policy = controller(sim, seed)
    fields, unknowns = designed(sim, subset)

    def loss() -> torch.Tensor:
        return cost(sim.rollout(policy, STEPS, **fields))

    method = wb.methods.Torch(lr=3e-2, max_norm=0.1)
    history = wb.minimize(loss, {"policy": policy} | unknowns, method, iterations=ITERATIONS, progress=False)
    return -np.array(history.loss), policy, fields


def play(policy: wb.controllers.MLP, legs: int, device: str | None) -> dict[str, float]:
    """Run a controller under the other solvers; return the distances [m] by solver."""
    solvers = {
        "springs": (wb.MassSpring(0.5 * LEG), None),
        "projective dynamics": (wb.ProjectiveDynamics(0.5 * LEG), sized(8, 1)),
    }
    found = {}
    for name, (solver, substeps) in solvers.items():
        sim = simulation(legs, solver, device, substeps)
        same = controller(sim)
        same.load_state_dict(policy.state_dict())
        with torch.no_grad():
            found[name] = distance(sim.rollout(same, STEPS)).item()
    return found


def run(
    device: str | None, size: str, robot: str, subset: tuple[str, ...], seed: int, out: Path | None
) -> tuple[np.ndarray, dict[str, float], float]:
    """Learn from a seed.

    Returns the distances of all iterations and under the other solvers [m], and the CPU time [s].
    """
    sim, began = walker(robot, size, device), time.process_time()
    distances, policy, fields = learn(sim, subset, seed)
    seconds = time.process_time() - began
    if seed == 0:
        places = walker(robot, "small", "cpu").model.matter.position
        keep_walk(stored_name(robot, subset, size), sim, policy, fields, places)
        with torch.no_grad():
            film(stored_name(robot, subset, size), sim.rollout(policy, STEPS, **fields), out)
    others = {} if subset else play(policy, LEGS[robot], device)
    text = "".join(f", {name} {d:.3f} m" for name, d in others.items())
    print(
        f"{robot}, control{' and matter' * bool(subset)}, seed {seed}: {distances.max():.3f} m, {seconds:.0f} s{text}",
        flush=True,
    )
    return distances, others, seconds


def stored_name(robot: str, subset: tuple[str, ...], size: str) -> str:
    """Name of a gait and of its film strip."""
    return refined.stored_as(f"chainqueen_{robot}_{'designed' if subset else 'control'}", size)


def refine(robots: list[str], subsets: list[tuple[str, ...]], size: str, device: str | None) -> None:
    """Play the stored gaits of a size again, finer; those for several grids are of `chainqueen_resolved`."""

    def play(how: refined.Refinement, robot: str, name: str) -> float:
        finer = refined.again(walker(robot, size, device), how, "dx", designed_by(name))
        return float(distance(stored_walk(name, finer, controller(finer), STEPS)))

    plays = {}
    for robot, subset in itertools.product(robots, subsets):
        label, name = f"{robot}{', designed' * bool(subset)}", stored_name(robot, subset, size)
        plays[label] = functools.partial(play, robot=robot, name=name)
        if size == "small" and (robot, bool(subset)) in RESOLVED:
            plays[f"{label}, for several grids"] = functools.partial(play, robot=robot, name=f"{name}_grids")
    refined.table(plays, 0.75)


def main() -> None:
    """Print the tables, and draw the figures."""
    chosen = options(__doc__, "processes", "out", "refine", seeds=3, names=LEGS, sizes=SIZES)
    subsets = [(), tuple(FIELDS)]
    if chosen.refine:
        refine(chosen.names, subsets, chosen.size, chosen.device)
        return
    jobs = list(itertools.product(chosen.names, subsets, range(chosen.seeds)))
    work = [(chosen.device, chosen.size, *job, chosen.out) for job in jobs]
    found = dict(zip(jobs, in_processes(run, work, chosen.processes), strict=True))
    runs, times = {}, {}
    print("| walker | control [m] | control and matter [m] | gain, seed by seed | springs | projective dynamics |")
    print("|---|---|---|---|---|---|")
    for robot in chosen.names:
        of = {s: [found[robot, s, k] for k in range(chosen.seeds)] for s in subsets}
        best = {s: [float(d.max()) for d, _, _ in results] for s, results in of.items()}
        gain = [b / a - 1.0 for a, b in zip(*(best[s] for s in subsets), strict=True)]
        kept = {
            name: [others[name] / a for (_, others, _), a in zip(of[()], best[()], strict=True)]
            for name in of[()][0][1]
        }
        cells = [*(interval(best[s]) for s in subsets), interval(gain), *(interval(k) for k in kept.values())]
        print("| " + " | ".join((robot, *cells)) + " |")
        for subset, results in of.items():
            kind = f"{robot}{', designed' * bool(subset)}"
            runs[kind], times[kind] = [d for d, _, _ in results], [seconds for *_, seconds in results]
    print(f"{math.ceil(max(seconds for _, _, seconds in found.values()))} s a run at most")
    curves(refined.stored_as("chainqueen_walkers", chosen.size), runs, "distance [m]", times)


if __name__ == "__main__":
    main()
