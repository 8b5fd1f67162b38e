"""ChainQueen figure 11: a biped whose controller is optimised together with any of stiffness, mass and Poisson's ratio.

    python benchmarks/papers/chainqueen_codesign.py --seeds 3

Two legs, each of two chambers side by side, under a body; a perceptron sees seven clusters and drives the four
pressures. Young's modulus, density and Poisson's ratio are fields with a value for each particle, within the paper's
bounds. All eight subsets run from the same seeds, for the same number of iterations; "printed" is a gait that is nearly
50 % better with all three, and an order of effects E > mass > nu. Writes ``chainqueen_codesign.png`` and film strips
beside this file.
"""

import itertools
import math
import time

import numpy as np
import torch
from chainqueen_common import KILO, curves, film, options, sized, wb
from scipy.stats import t

STEPS = sized(200, 4)
"""Control intervals of 10 ms."""
ITERATIONS = sized(40, 2)
FIELDS = {
    "E": ("youngs_modulus", 7 * KILO, 20 * KILO),
    "mass": ("density", 0.7 * KILO, 2.0 * KILO),
    "nu": ("poissons_ratio", 0.2, 0.4),
}
"""Fields, with their bounds: those of the paper, as their initial values 10, 1 and 0.3 are."""


def biped(device: str | None) -> wb.Simulation:
    """The robot; pressures reach 2 in the paper's units."""
    box, floor = wb.shapes.Box, 0.1
    chambers = {f"chamber {k}": box((x, floor), (x + 0.05, floor + 0.1)) for k, x in enumerate((0.4, 0.45, 0.6, 0.65))}
    shape = wb.shapes.Union((*chambers.values(), box((0.4, floor + 0.1), (0.7, floor + 0.2))))
    body = wb.SoftBody("biped", shape, wb.Material(10 * KILO, 0.3, KILO), chambers)
    pressures = [wb.Pressure(name, name, 2 * KILO) for name in chambers]
    ground = wb.floor(floor, friction=0.5, dim=2)
    scene = wb.Scene([body], pressures, [ground], gravity=(0.0, -2.0), domain=((0.0, 0.0), (2.5, 0.6)))
    return wb.Simulation(scene, wb.MPM(dx=1 / 80), dt=1e-2, substeps=10, device=device)


def learn(sim: wb.Simulation, subset: tuple[str, ...], seed: int) -> tuple[np.ndarray, wb.Trajectory]:
    """Distances of all iterations [m], and the motion of the best."""
    policy = wb.controllers.MLP(sim, wb.observers.Clusters(7), clock=0.4, seed=seed)
    start = sim.center_of_mass(sim.state())[0, 0].item()
    fields = {FIELDS[name][0]: sim.parameter(FIELDS[name][0]).requires_grad_() for name in subset}
    unknowns = {"policy": policy} | {
        name: wb.Unknown(fields[name], low, high, scale=high - low)
        for name, low, high in (FIELDS[short] for short in subset)
    }

    def loss() -> torch.Tensor:
        walk = sim.rollout(policy, STEPS, **fields)
        x = walk.final.position[0, :, 0].mean()  # the mean of the particles, as in the paper
        return start - x + 0.5e-6 * walk.control.square().sum()

    history = wb.minimize(
        loss, unknowns, wb.methods.Torch(lr=1e-2, max_norm=0.1), iterations=ITERATIONS, progress=False
    )
    with torch.no_grad():
        return -np.array(history.loss), sim.rollout(policy, STEPS, **fields)


def interval(values: list[float]) -> str:
    """A mean with its interval of 90 %."""
    if len(values) < 2:
        return f"{values[0]:.3f}"
    half = t.ppf(0.95, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.3f} +- {half:.3f}"


def main() -> None:
    """Print the table, and draw."""
    chosen = options(__doc__, seeds=3)
    sim, best, runs = biped(chosen.device), {}, {}
    print(sim.model.summary(), flush=True)
    for size in range(4):
        for subset in itertools.combinations(FIELDS, size):
            name, began = " and ".join(("control", *subset)), time.perf_counter()
            found = [learn(sim, subset, seed) for seed in range(chosen.seeds)]
            best[subset], runs[name] = [float(distances.max()) for distances, _ in found], [d for d, _ in found]
            gain = np.mean(best[subset]) / np.mean(best[()]) - 1.0
            each = [b / a - 1.0 for a, b in zip(best[()], best[subset], strict=True)]
            print(
                f"{name}: {interval(best[subset])} m, {100 * gain:+.0f} % (seed by seed {interval(each)}), "
                f"{time.perf_counter() - began:.0f} s",
                flush=True,
            )
            if size in (0, 3):
                film(f"chainqueen_codesign_{'after' if size else 'before'}", found[0][1], chosen.out)
    few = ("control", "control and E", "control and mass", "control and nu", "control and E and mass and nu")
    curves("chainqueen_codesign", {name: runs[name] for name in few}, "distance [m]")


if __name__ == "__main__":
    main()
