"""Degenerate contacts by incremental potential contact (Li et al. 2020) and projective dynamics, in the same run.

    python benchmarks/contacts_compared.py [KIND ...] [--steps S ...] [--under SUPPORT ...]

Scenes, steps and the criterion for intersections are the same as in ``degenerate_contacts.py``. The reference is
``incremental_potential.py``, which needs the IPC Toolkit (``pip install ipctk``). For each length of step the first
table gives the number of scenes in which every step was found, the number of scenes in which a step was divided into
shorter steps, and the CPU time of a step, without the recording of launches. The second table gives the distance
between both results for barriers that begin closer and closer to the distance that surfaces keep under projective
dynamics; friction is iterated until it no longer lags.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import itertools
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from degenerate_contacts import Begin, Ending, Steps, options_of, run, table, tell
from incremental_potential import IncrementalPotential

import warpbots as wb

STEPS = (0.001, 0.01, 0.1)
KEPT = 0.01
"""Distance that surfaces keep from one another under projective dynamics [mean edges of the finer body]."""
NEARER = (1e-2, 1e-3, 1e-4)
"""Distances beyond `KEPT` at which barriers begin, in the second table [mean edges]."""
LAGS = 30
"""Largest number of times that friction is updated from the last minimum in the second table; once in the first."""


def beside(kind: str, support: str, dt: float, **options) -> tuple[Ending, Ending, IncrementalPotential]:
    """Simulate a scene with both methods.

    Returns the ending with projective dynamics, and the ending and the solver of incremental potential contact.
    """
    solvers: list[IncrementalPotential] = []

    def steps(described: wb.Scene, dt: float) -> Begin:
        def begin() -> Steps:
            solvers.append(IncrementalPotential(described, dt, **options))
            return solvers[-1].step

        return begin

    ours, theirs = run(kind, support, dt), run(kind, support, dt, steps)
    for name, ending in (("projective dynamics", ours), ("incremental potential", theirs)):
        tell(f"{kind}, {support}, {dt:g} s, {name}", ending)
    return ours, theirs, solvers[-1]


def times(kinds: list[str], support: str, dt: float) -> tuple[str, dict[str, float]]:
    """A row of the first table, and the CPU time of each part of incremental potential contact [s]."""
    ends = [beside(kind, support, dt) for kind in kinds]
    ours, theirs, solvers = zip(*ends, strict=True)
    cells, medians, spent = [support, f"{dt:g}"], [], defaultdict(float)
    for endings in (ours, theirs):
        ms = np.array([1e3 * np.mean(ending.seconds) for ending in endings])
        medians.append(np.median(ms))
        cells += [str(sum(ending.end == "found" for ending in endings)), f"{medians[-1]:.1f} ({ms.max():.0f})"]
    cells.insert(3, str(sum(ending.shorter > 0 for ending in ours)))
    iterations = [np.mean(solver.iterations) for solver in solvers]
    most = max(max(solver.iterations) for solver in solvers)
    cells += [f"{np.median(iterations):.1f} ({most})", f"{medians[0] / medians[1]:.1f}"]
    for solver, ending in zip(solvers, theirs, strict=True):
        for part, seconds in solver.clock.seconds.items():
            spent[part] += seconds
        spent["total"] += sum(ending.seconds)
    return f"| {' | '.join(cells)} |", spent


def apart(kinds: list[str], support: str, dt: float, activation: float) -> str:
    """A row of the second table: the largest distance between the positions of a node under both methods [mm].

    Only scenes count in which no step was divided and friction does not lag.
    """
    distances = {}
    for kind in kinds:
        ours, theirs, solver = beside(kind, support, dt, lags=LAGS, activation=activation, least=KEPT)
        if ours.end == theirs.end == "found" and not ours.shorter and not solver.lagging:
            distances[kind] = 1e3 * np.linalg.norm(ours.path - theirs.path, axis=-1).max()
    far = sorted(distances, key=distances.__getitem__, reverse=True)[:3]
    farthest = ", ".join(f"{distances[kind]:.2f} ({kind})" for kind in far)
    return f"| {support} | {activation:g} | {len(distances)} | {np.median(list(distances.values())):.3f} | {farthest} |"


def main() -> None:
    """Run the scenes under both solvers and print the tables."""
    options = options_of(__doc__, STEPS, "spike in a wedge")
    rows, spent = [], defaultdict(float)
    for support, dt in itertools.product(options.under, options.steps):
        row, parts = times(options.kinds, support, dt)
        rows.append(row)
        for part, seconds in parts.items():
            spent[part] += seconds
    heads = "below", "step [s]", "projective dynamics: found", "in shorter steps", "step [ms]"
    print(table(*heads, "incremental potential: found", "step [ms]", "Newton iterations", "ratio"), *rows, sep="\n")
    total = spent.pop("total")
    shares = ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in spent.items())
    print(f"\nTime of incremental potential contact: {shares}, rest {1 - sum(spent.values()) / total:.0%}\n")
    print(table("below", "barriers begin [edges]", "scenes", "apart, median [mm]", "largest [mm]"))
    for support, activation in itertools.product([u for u in options.under if u != "obstacle"], NEARER):
        print(apart(options.kinds, support, 0.01, activation))


if __name__ == "__main__":
    main()
