"""ChainQueen section 3.7: numerical fracture of an actuated bar, over the number of particles in a cell.

    python benchmarks/papers/chainqueen_fracture.py

A bar of 0.6 x 0.05 is clamped at both ends. Muscles in its outer thirds contract more and more and stretch the middle
third, which is passive, until it tears: neighbours at rest are then farther apart than `TORN` cells, beyond the reach
of the grid. The material itself never breaks, so every tear is numerical. The paper says that a few particles in a cell
suffice, with "fast convergence in stability, even in the presence of actuation"; its figure is a video. Writes
``chainqueen_fracture.png`` beside this file.
"""

import numpy as np
import torch
from chainqueen_common import HERE, KILO, options, sized, wb

PARTICLES = sized((1, 4, 9, 16, 25), (1, 4))
"""Particles in a cell."""
LENGTH, WIDTH, CELLS = 0.6, 0.05, sized(4, 2)
"""Size of the bar [m], and cells across it."""
STEPS, DT = sized(200, 4), 0.01
TORN = 1.5
"""Distance of neighbours at which the bar is torn [cells]: half the width of a quadratic B-spline."""


def bar(particles: int, device: str | None) -> wb.Simulation:
    """Simulation of the bar; E = 10, nu = 0.3 and density 1 in the paper's units, and a stress of up to 60."""
    box, third = wb.shapes.Box, LENGTH / 3.0
    held = 0.025
    shape = box((0.0, 0.0), (LENGTH, WIDTH))
    regions = {
        "left end": box((0.0, 0.0), (held, WIDTH)), "right end": box((LENGTH - held, 0.0), (LENGTH, WIDTH)),
        "left": box((held, 0.0), (third, WIDTH)), "right": box((2.0 * third, 0.0), (LENGTH - held, WIDTH)),
    }  # fmt: skip
    body = wb.SoftBody("bar", shape, wb.Material(10 * KILO, 0.3, KILO, law="neo_hookean", damping=5e-3), regions)
    muscles = [wb.actuators.Muscle(side, side, (1.0, 0.0), 60 * KILO) for side in ("left", "right")]
    ends = [wb.Constraint(end, name=end) for end in ("left end", "right end")]
    scene = wb.Scene(
        [body], muscles, constraints=ends, gravity=(0.0, 0.0), domain=((-0.1, -0.1), (LENGTH + 0.1, WIDTH + 0.1))
    )
    return wb.Simulation(scene, wb.MPM(dx=WIDTH / CELLS, particles_per_cell=particles), DT, device=device)


def stretched(sim: wb.Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Contract the muscles, as slowly as the motion lasts.

    Returns the stretch of the middle third after each control interval, and the largest distance between columns of
    particles that are neighbours at rest [cells], each of shape (STEPS,).
    """
    rest = torch.as_tensor(sim.model.matter.position)
    columns, column = torch.unique(rest[:, 0].round(decimals=9), return_inverse=True)
    count = torch.bincount(column)
    middle = (columns > LENGTH / 3.0) & (columns < 2.0 * LENGTH / 3.0)
    inside = columns[middle]

    def observe(state: wb.solvers.State) -> torch.Tensor:
        x = state.position[:, :, 0].double()
        mean = torch.zeros((len(x), len(columns)), dtype=x.dtype).index_add(1, column, x) / count
        gap = mean.diff(dim=1).amax(dim=1) / sim.solver.dx
        along = mean[:, middle]
        return torch.stack([(along[:, -1] - along[:, 0]) / (inside[-1] - inside[0]), gap], dim=1)

    control = torch.linspace(0.0, 1.0, STEPS)[:, None].expand(STEPS, sim.channels)
    with torch.no_grad():
        return tuple(sim.rollout(control, STEPS, observe=observe).observation[0].double().numpy().T)


def main() -> None:
    """Print the table, and draw the figure."""
    from matplotlib.figure import Figure

    chosen = options(__doc__)
    figure = Figure(figsize=(11.0, 3.8), dpi=110, layout="constrained")
    axes = figure.subplots(1, 2)
    finest = None
    print("| particles in a cell | particles | torn at a stretch of | widest gap [cells] | stretch, from the finest |")
    print("|---|---|---|---|---|")
    for particles in reversed(PARTICLES):
        sim = bar(particles, chosen.device)
        stretch, gap = stretched(sim)
        finest = stretch if finest is None else finest
        torn = np.flatnonzero(gap > TORN)
        whole = slice(0, torn[0] if len(torn) else None)
        apart = np.abs(stretch[whole] / finest[whole] - 1.0).max() if torn.size == 0 or torn[0] else np.nan
        when = f"{stretch[torn[0]]:.2f}" if len(torn) else f"never (up to {stretch.max():.2f})"
        print(f"| {particles} | {len(sim.model.matter)} | {when} | {gap.max():.2f} | {apart:.2%} |", flush=True)
        u = np.linspace(0.0, 1.0, STEPS)
        axes[0].plot(u, stretch, label=f"{particles}")
        axes[1].plot(stretch, gap, label=f"{particles}")
    axes[0].set(xlabel="control signal", ylabel="stretch of the middle third")
    axes[1].set(xlabel="stretch of the middle third", ylabel="widest gap of neighbours [cells]")
    axes[1].axhline(TORN, color="0.6", lw=0.8)
    axes[0].legend(frameon=False, title="particles in a cell")
    figure.savefig(HERE / "chainqueen_fracture.png")


if __name__ == "__main__":
    main()
