"""One robot under several solvers: comparison of motions and wall times.

    python benchmarks/solvers.py

A walker in 2D, from a USD file, under MPM and springs: writes ``solvers.png`` beside this file, with the midpoint of
the body and the heights of its ends over time, and prints the difference between the curves of springs and MPM. A
walker in 3D under MPM, springs and projective dynamics: writes ``walkers.png``, with its centre of mass over time and a
picture of each at the end, and prints the distance and the wall time per second of motion. Every muscle is driven by a
sine with its own phase.
"""

import itertools
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from fast import figures, sized  # noqa: E402
from scenes import walker  # noqa: E402

import warpbots as wb  # noqa: E402

INTERVAL, STEPS = 5e-3, sized(200, 4)
FLAT = {
    "MPM, cells of 12.5 mm": (wb.MPM(1 / 80), 5),
    "springs of 12.5 mm": (wb.MassSpring(1 / 80, damping=2e-3), 20),
    "springs of 6.25 mm": (wb.MassSpring(1 / 160, damping=2e-3), 60),
}
"""Solvers in 2D with their substeps."""

FRAME, FRAMES = 1e-2, sized(150, 2)
SPATIAL = {
    "MPM, cells of 12.5 mm": (wb.MPM(1 / 80), None),
    "springs of 12.5 mm": (wb.MassSpring(1 / 80, damping=1e-3, contact_stiffness=1e7), None),
    "tetrahedra of 25 mm, steps of 2.5 ms": (wb.ProjectiveDynamics(0.025, collisions=False), 4),
    "tetrahedra of 25 mm, steps of 10 ms": (wb.ProjectiveDynamics(0.025, collisions=False), 1),
}
"""Solvers in 3D with their substeps; None for the safe minimum."""


def gait(interval: float, steps: int, frequency: float, phases: tuple[float, ...]) -> torch.Tensor:
    """Controls, shape (steps, 4): sines of a frequency [Hz] and phases [rad] with a smooth start."""
    t = interval * torch.arange(steps)[:, None]
    return (t / 0.2).clamp(max=1.0) * torch.sin(2.0 * torch.pi * frequency * t + torch.tensor(phases))


def curves(solver: wb.MPM | wb.MassSpring, substeps: int) -> dict[str, np.ndarray]:
    """Curves to compare in 2D [m], each of shape (STEPS,), by name."""
    sim = wb.Simulation(wb.usd.read(HERE.parent / "usd_scenes" / "walker.usda"), solver, INTERVAL, substeps)
    rest = sim.model.matter.position
    mass = torch.as_tensor(sim.model.matter.volume)
    chosen = {
        "middle, x": (np.ones(len(rest), dtype=bool), 0),
        "rear top, y": ((rest[:, 0] < 0.23) & (rest[:, 1] > 0.17), 1),
        "front top, y": ((rest[:, 0] > 0.47) & (rest[:, 1] > 0.17), 1),
    }
    weights = {n: (mass * torch.as_tensor(c) / mass[torch.as_tensor(c)].sum(), axis) for n, (c, axis) in chosen.items()}
    with torch.no_grad():
        observed = sim.rollout(
            gait(INTERVAL, STEPS, 2.5, (0.0, 1.5, 3.0, 4.5)), STEPS,
            observe=lambda s: torch.stack([s.position[..., a].double() @ w for w, a in weights.values()], dim=-1),
        ).observation[0]  # fmt: skip
    return {n: observed[:, k].numpy() - float(w @ rest[:, a]) for k, (n, (w, a)) in enumerate(weights.items())}


def walk(solver: wb.MPM | wb.MassSpring | wb.ProjectiveDynamics, substeps: int | None) -> tuple:
    """Simulate the walker in 3D.

    Returns the simulation, the motion, the centre of mass [m], shape (FRAMES, 3), and the wall time [s].
    """
    sim = wb.Simulation(walker(), solver, FRAME, substeps)
    controls = gait(FRAME, FRAMES, 4.5, tuple(torch.pi * k / 2.0 for k in (0, -1, 3, 2)))
    with torch.no_grad():
        sim.rollout(controls[:2], 2)  # kernels are compiled, matrices are factored
        start = time.perf_counter()
        motion = sim.rollout(controls, FRAMES, observe=sim.center_of_mass)
        seconds = time.perf_counter() - start
    return sim, motion, (motion.observation - sim.center_of_mass(motion.start)[:, None])[0].numpy(), seconds


def compare_flat() -> None:
    """Simulate, print and draw the walker in 2D."""
    from matplotlib.figure import Figure

    found = {name: curves(*options) for name, options in FLAT.items()}
    reference, *others = found
    figure = Figure(figsize=(9.0, 3.3), dpi=110, layout="constrained")
    axes = figure.subplots(1, 3)
    t = INTERVAL * np.arange(1, STEPS + 1)
    for ax, what in zip(axes, found[reference], strict=True):
        for name, values in found.items():
            ax.plot(t, 1e3 * values[what], label=name)
        ax.set_title(what)
        ax.set_xlabel("t [s]")
        ax.set_ylabel("displacement [mm]")
        for name in others:
            away = np.sqrt(np.mean((found[name][what] - found[reference][what]) ** 2))
            span = np.ptp(found[reference][what])
            print(f"{what}: {name} is {1e3 * away:.1f} mm (rms) from {reference}, which moves by {1e3 * span:.1f} mm")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(figures(__file__) / "solvers.png")


def compare_spatial() -> None:
    """Simulate, print and draw the walker in 3D."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 8.0), dpi=110, layout="constrained")
    across, height, *pictures = figure.subplots(3, 2, height_ratios=(1.1, 1.0, 1.0)).flat
    t = FRAME * np.arange(1, FRAMES + 1)
    scene = walker()
    camera = wb.view.Camera.around(scene, list(itertools.product((0.0, 0.4), (0.0, 0.15), (0.0, 0.28))))
    for ax, (name, options) in zip(pictures, SPATIAL.items(), strict=True):
        sim, motion, centre, seconds = walk(*options)
        across.plot(t, 1e2 * centre[:, 0], label=name)
        height.plot(t, 1e3 * centre[:, 2])
        wb.view.draw(scene, sim.model.matter, motion.final.position[0], ax, camera=camera)
        ax.set_title(f"{name}, t = {t[-1]:g} s", fontsize=8)
        print(
            f"{name}: {sim.substeps} steps of {1e3 * FRAME / sim.substeps:.2g} ms for {1e3 * FRAME:g} ms, "
            f"{1e2 * centre[-1, 0]:.1f} cm in {t[-1]:g} s, {1e3 * seconds / t[-1]:.0f} ms of wall time for a second"
        )
    across.set(xlabel="t [s]", ylabel="x of the centre of mass [cm]")
    height.set(xlabel="t [s]", ylabel="its height over that at rest [mm]")
    figure.legend(*across.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(figures(__file__) / "walkers.png")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # springs have their own Poisson's ratio
        compare_flat()
        compare_spatial()
