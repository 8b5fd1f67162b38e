"""The same walker, from the same USD file, under MPM and under springs: how alike it moves.

    python benchmarks/solvers.py

Every muscle is driven by a sine of its own phase. Writes ``solvers.png`` beside this file: the middle of the body and
the heights of its ends in time, and prints how far the curves of the springs are from those of MPM.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import warpbots as wb  # noqa: E402

INTERVAL, STEPS = 5e-3, 200
SOLVERS = {
    "MPM, cells of 12.5 mm": (wb.MPM(1 / 80), 5),
    "springs of 12.5 mm": (wb.MassSpring(1 / 80, damping=2e-3), 20),
    "springs of 6.25 mm": (wb.MassSpring(1 / 160, damping=2e-3), 60),
}
"""Solvers with their substeps."""


def gait() -> torch.Tensor:
    """Controls, shape (STEPS, 4): sines of 2.5 Hz that start softly."""
    t = INTERVAL * torch.arange(STEPS)[:, None]
    return (t / 0.2).clamp(max=1.0) * torch.sin(2.0 * torch.pi * 2.5 * t + torch.tensor([0.0, 1.5, 3.0, 4.5]))


def curves(solver: wb.MPM | wb.MassSpring, substeps: int) -> dict[str, np.ndarray]:
    """What is compared, each of shape (STEPS,) [m]."""
    sim = wb.Simulation(wb.usd.read(HERE.parent / "usd_scenes" / "walker.usda"), solver, INTERVAL, substeps)
    rest = sim.model.particles.position
    mass = torch.as_tensor(sim.model.particles.volume)
    chosen = {
        "middle, x": (np.ones(len(rest), dtype=bool), 0),
        "rear top, y": ((rest[:, 0] < 0.23) & (rest[:, 1] > 0.17), 1),
        "front top, y": ((rest[:, 0] > 0.47) & (rest[:, 1] > 0.17), 1),
    }
    weights = {n: (mass * torch.as_tensor(c) / mass[torch.as_tensor(c)].sum(), axis) for n, (c, axis) in chosen.items()}
    with torch.no_grad():
        observed = sim.rollout(
            gait(), STEPS,
            observe=lambda s: torch.stack([s.position[..., a].double() @ w for w, a in weights.values()], dim=-1),
        ).observation[0]  # fmt: skip
    return {n: observed[:, k].numpy() - float(w @ rest[:, a]) for k, (n, (w, a)) in enumerate(weights.items())}


def main() -> None:
    """Simulate, print and draw."""
    from matplotlib.figure import Figure

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that springs have a Poisson's ratio of their own
        found = {name: curves(*options) for name, options in SOLVERS.items()}
    reference, *others = found
    figure = Figure(figsize=(9.0, 3.3), dpi=110, layout="constrained")
    axes = figure.subplots(1, 3)
    time = INTERVAL * np.arange(1, STEPS + 1)
    for ax, what in zip(axes, found[reference], strict=True):
        for name, values in found.items():
            ax.plot(time, 1e3 * values[what], label=name)
        ax.set_title(what)
        ax.set_xlabel("t [s]")
        ax.set_ylabel("displacement [mm]")
        for name in others:
            away = np.sqrt(np.mean((found[name][what] - found[reference][what]) ** 2))
            span = np.ptp(found[reference][what])
            print(f"{what}: {name} is {1e3 * away:.1f} mm (rms) from {reference}, which moves by {1e3 * span:.1f} mm")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(HERE / "solvers.png")


if __name__ == "__main__":
    main()
