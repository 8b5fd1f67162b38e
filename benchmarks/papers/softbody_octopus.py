"""Soft multi-body paper, figure 4b: an octopus with 16 muscles learns to swim to a target in 400 steps.

    python benchmarks/papers/softbody_octopus.py [--seeds N] [--episodes N] [--json FILE] [--out FOLDER]

Each muscle has four segments, 64 signals in 400 steps, which are 25,600 unknowns. Adam and CMA-ES (with a diagonal
covariance) have as many episodes from the same noise. Prints a table, the memory of the process before and after the
first and the last episode, and writes ``softbody_octopus.png`` and film strips beside this file; motions as USD to
``--out``.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from fast import figures, sized
from softbody_octopus_scene import octopus
from softbody_strokes import Stroke, compare, refine, show

import warpbots as wb

HERE = figures(__file__)
"""Where figures go."""
NAME = "softbody_octopus"
"""Of figures and of the stored stroke."""
STEP, STEPS = 0.01, sized(400, 4)
WAY = (-0.4, -0.4, 0.8)
"""From the start to the target [m]; the paper's second axis is up, our third."""
LONGEST = 1e-3
"""Norm to which gradients are clipped [m], shorter than those that were seen, so that Adam sees directions.

A gradient that is several times as long as the others would lead its mean for episodes.
"""
LAG = 0.04
"""Standard deviation of the times over which muscles average their signals [s]."""


def simulation(fineness: int = 1, tolerance: float = 1e-4, worlds: int = 1, substeps: int = 1) -> wb.Simulation:
    """Simulation of the octopus; for the gradient, a number of states near the square root of all states is kept."""
    solver = wb.ProjectiveDynamics(0.05, tolerance, collisions=False)
    return wb.Simulation(octopus(fineness), solver, STEP, substeps, worlds=worlds)


def make_stroke() -> Stroke:
    """The stroke to the target, with the settings of its search."""
    settings = {"lag": LAG, "rate": 0.5, "fade": 0.97, "longest": LONGEST, "memory": 0.99}
    return Stroke(simulation(), simulation(substeps=4), WAY, STEPS, **settings)


def resident() -> float:
    """Memory of this process [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS"))


def check(stroke: Stroke) -> None:
    """Print sizes, the CPU time of an episode and of its gradient, and the memory after each of three episodes."""
    mesh, used = stroke.sim.model.matter, [resident()]
    for _ in range(sized(3, 2)):
        begun = time.process_time()
        loss = stroke.distance()
        between = time.process_time()
        torch.autograd.grad(loss, stroke.raw)
        ended = time.process_time()
        used.append(resident())
    print(
        f"{stroke.sim.scene.name}: {len(mesh)} nodes, {len(mesh.tets)} tetrahedra, {stroke.raw.numel()} unknowns; an "
        f"episode takes {between - begun:.2f} s, its gradient {ended - between:.2f} s; memory before and after each "
        f"episode {', '.join(f'{m:.0f}' for m in used)} MB",
        flush=True,
    )


def main() -> None:
    """Learn the stroke by all methods."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--episodes", type=int, default=sized(50, 2), help="of every method (%(default)s)")
    parser.add_argument("--json", type=Path, help="where to write all results")
    parser.add_argument("--out", type=Path, help="folder for motions as USD; default: none are written")
    refined.option(parser)
    options = parser.parse_args()
    stroke = make_stroke()
    if options.refine:
        refine({NAME: stroke}, simulation)
        return
    check(stroke)
    runs = compare(NAME, stroke, options.seeds, options.episodes)
    print(f"memory at the end {resident():.0f} MB")
    show(NAME, stroke, runs, HERE, options.out)
    if options.json:
        options.json.write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
