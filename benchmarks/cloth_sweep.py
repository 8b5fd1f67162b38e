"""Random scenes of thin cloth in steps of 10 ms: number of steps that converge, are divided, or fail.

    python benchmarks/cloth_sweep.py [--scenes N] [--steps N] [--halvings N] [--memory N] [--iterations N] [--only ...]

Sheets of 12 to 24 cm with a flexural rigidity from 1e-6 to 1e-4 N m fall on a ball, over the edge of a table and over
its corner, hang from two corners, or are pushed together between two held sides until they buckle. Prints a line for
each scene and the sums.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fast import sized

import warpbots as wb

STEP = 0.01
KINDS = ("ball", "edge", "corner", "pinned", "buckled")


def scene(number: int) -> tuple[wb.Scene, str]:
    """Make a random scene, and describe the scene in words."""
    rng, kind = np.random.default_rng([7, number]), KINDS[number % len(KINDS)]
    side, cells, rigidity = rng.uniform(0.12, 0.24), int(rng.integers(6, 11)), 10.0 ** rng.uniform(-6.0, -4.0)
    stiffness, friction = 10.0 ** rng.uniform(5.0, 6.5), float(rng.choice([0.0, 0.3, 0.6]))
    half, height = 0.5 * side, 0.002 if kind in ("ball", "edge", "corner") else 0.0
    lower, upper = (-half, -half), (half, half)
    if kind == "buckled":  # held along two sides, closer together than the length of the sheet at rest
        lower, upper = (-half, -0.5 * half), (half, 0.5 * half)
    sheet = wb.shapes.Sheet.rectangle(lower, upper, 5e-4, (cells, cells), height=height, bending=rigidity)
    regions, held, obstacles = {}, (), ()
    if kind == "ball":
        obstacles = (wb.Obstacle(wb.shapes.Sphere((*rng.uniform(-0.01, 0.01, 2), -0.06), 0.06), friction=friction),)
    if kind in ("edge", "corner"):
        y = 1.0 if kind == "edge" else rng.uniform(0.0, 0.3) * half
        table = wb.shapes.Box((-1.0, -1.0, -1.0), (rng.uniform(0.0, 0.4) * half, y, 0.0))
        obstacles = (wb.Obstacle(table, friction=friction),)
    if kind == "pinned":
        ends = [(s * half, half, 0.0) for s in (-1, 1)]
        regions = {f"pin {k}": wb.shapes.Sphere(end, 1e-3) for k, end in enumerate(ends)}
    if kind == "buckled":
        regions = {f"side {s:+d}": wb.shapes.HalfSpace((s * (half - 1e-6), 0, 0), (-s, 0, 0)) for s in (-1, 1)}
    held = tuple(wb.Constraint(name, name=name) for name in regions)
    body = wb.SoftBody("cloth", sheet, wb.Material(stiffness, 0.3, 300.0), regions, friction=friction)
    words = f"{kind}, {100 * side:.0f} cm, {cells} cells, D = {rigidity:.1e} N m, E = {stiffness:.1e} Pa"
    return wb.Scene((body,), obstacles=obstacles, constraints=held), words


def run(number: int, steps: int, solver: wb.ProjectiveDynamics) -> dict[str, float]:
    """Simulate a scene; return the numbers of steps and iterations, and the CPU time [s]."""
    made, words = scene(number)
    sim = wb.Simulation(made, solver, STEP)
    state, found = sim.state(), {"whole": 0, "halved": 0, "shorter": 0, "lost": 0, "iterations": 0, "most": 0}
    start, anchor = time.process_time(), None
    if "anchor" in sim.parameters():
        anchor = sim.parameter("anchor")
    for k in range(steps):
        options = {}
        if "buckled" in words:  # the sides approach one another by up to a third
            options["anchor"] = anchor * torch.tensor([1.0 - 0.33 * min(1.0, (k + 1) / 25), 1.0, 1.0])
        try:
            state = sim.step(state, torch.zeros(0), **options)
        except wb.SimulationError as fault:
            found["lost"], found["why"] = 1, str(fault)[:160]
            break
        report = sim.report()
        taken = int(report.shorter_steps[0])
        found["whole" if not taken else "halved"] += 1
        found["shorter"] += taken
        found["iterations"] += int(report.iterations[0])
        found["most"] = max(found["most"], int(report.iterations[0]))
    found["seconds"] = time.process_time() - start
    print(
        f"{number:3d} {words:62s} whole {found['whole']:3d}, halved {found['halved']:2d} into {found['shorter']:3d}, "
        f"lost {found['lost']}, iterations {found['iterations'] / max(1, found['whole'] + found['halved']):6.1f}, "
        f"most {found['most']:5d}, {found['seconds']:5.1f} s {found.get('why', '')}",
        flush=True,
    )
    return found


def main() -> None:
    """Run all scenes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scenes", type=int, default=sized(20, 2), help="number of scenes")
    parser.add_argument("--steps", type=int, default=sized(40, 2), help="steps of each")
    parser.add_argument("--halvings", type=int, default=5, help="max_halvings of the solver")
    parser.add_argument("--memory", type=int, default=20, help="memory of the solver")
    parser.add_argument("--iterations", type=int, default=2000, help="max_iterations of the solver")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the scenes to run")
    asked = parser.parse_args()
    solver = wb.ProjectiveDynamics(
        0.02, memory=asked.memory, max_halvings=asked.halvings, max_iterations=asked.iterations
    )
    numbers = asked.only if asked.only else range(asked.scenes)
    all_found = [run(number, asked.steps, solver) for number in numbers]
    whole, halved, shorter, lost = (sum(f[n] for f in all_found) for n in ("whole", "halved", "shorter", "lost"))
    print(
        f"{len(all_found)} scenes: {whole} steps taken whole, {halved} taken as {shorter} shorter ones, {lost} scenes "
        f"lost; {sum(f['seconds'] for f in all_found):.0f} s"
    )


if __name__ == "__main__":
    main()
