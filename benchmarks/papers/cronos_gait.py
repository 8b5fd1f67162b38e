"""Beyond Cronos: the gait of the four-legged sheet of figure 1, optimised by gradient through every contact.

    python benchmarks/papers/cronos_gait.py [--iterations N] [--no-transfer]
    python benchmarks/papers/cronos_gait.py --resolved

Each of the five members has its own periodic control, the sigmoid of a Fourier series, because chambers only inflate.
The series start as the hand-made gait (``cronos_robots.py``), and the distance of the centre of mass in two cycles is
maximised. The gradient is checked against differences; the optimised gait is also simulated for longer, on a rigid
floor, and on a lattice of half the spacing. ``--resolved`` goes on from the stored gait with the mean distance on both
lattices, and tries the result in discretisations that it has not seen. ``--refine`` plays the stored gait again, finer.
Writes ``cronos_gait.png`` beside this file.
"""

import argparse
import functools
import math

import numpy as np
import refined
import torch
from cronos_robots import HERE, INTERVAL, PERIOD, SHARPNESS, WAVE, centre, path, simulation, sized, soft_start, wb

NAME = "cronos_gait"
"""Of the figure and of the stored gait."""
HARMONICS = 3
CYCLES = 2
"""How many are seen in training."""
STEPS = sized(round(CYCLES * PERIOD / INTERVAL), 2)
MARGIN = 0.4
"""Steps per stability bound. Longer steps move as well but hit the floor harder: gradients grow to metres at 0.6."""
LONGER = 8
"""Cycles for which a gait is followed afterwards."""
FINER = sized(2.5e-3, 5e-3)
"""Spacing of the lattice to which the gait is transferred [m]."""
FOUND, LATTICE = refined.Refinement(), refined.Refinement(cells=0.5)
LEARNT = FOUND, LATTICE
"""The lattices that ``--resolved`` sees."""
JUDGED = sized(
    (refined.Refinement(steps=2), refined.Refinement(cells=2 / 3), refined.Refinement(steps=2, cells=0.5)), ()
)
"""The discretisations in which its gait is tried afterwards."""
RATE, DECAY = 0.05, 0.93
"""Learning rate of ``--resolved`` in the first iteration, and its factor from each to the next."""
LINES = {"": "-", "hard floor": "--", f"springs of {1e3 * FINER} mm": ":"}
"""How the motion on another floor or lattice is drawn."""


def series_of_hand_gait(names: list[str]) -> torch.Tensor:
    """Coefficients of the hand-made gait, shape (members, 1 + 2 HARMONICS): constants, cosines and sines."""
    series = torch.zeros(len(names), 1 + 2 * HARMONICS)
    late = 2.0 * math.pi * torch.tensor([WAVE[name] for name in names])
    series[:, 1], series[:, 1 + HARMONICS] = -SHARPNESS * torch.cos(late), -SHARPNESS * torch.sin(late)
    return series


def controls(series: torch.Tensor, steps: int) -> torch.Tensor:
    """Controls in (0, 1), shape (steps, members); differentiable."""
    angle = 2.0 * math.pi / PERIOD * INTERVAL * torch.arange(steps)[:, None] * torch.arange(1, HARMONICS + 1)
    basis = torch.cat([torch.ones(steps, 1), torch.cos(angle), torch.sin(angle)], dim=1)
    return soft_start(steps) * torch.sigmoid(basis @ series.T)


def distance(sim: wb.Simulation, series: torch.Tensor) -> torch.Tensor:
    """Distance of the centre of mass along x in training [m]; differentiable."""
    end = sim.rollout(controls(series, STEPS), STEPS).final.position
    return (centre(sim, end) - centre(sim, sim.state().position))[0, 0]


def discretised(how: refined.Refinement) -> wb.Simulation:
    """The simulation in another discretisation."""
    spacing = None if how.cells == 1.0 else 2.0 * how.cells * FINER
    return simulation("multigait", spacing, margin=MARGIN / how.steps)


def refine() -> None:
    """Play the stored gait again, in shorter steps and on the finer lattice."""
    series = refined.kept(NAME)["series"]
    refined.table({"crawling sheet": lambda how: float(distance(discretised(how), series))}, LATTICE.cells)


def resolved(iterations: int) -> None:
    """Optimise the stored gait on both lattices at once, and try it in discretisations that the search has not seen."""
    series = refined.kept(NAME)["series"].requires_grad_()
    shorter = functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=DECAY)
    refined.resolve(
        lambda sim: -distance(sim, series), {how: discretised(how) for how in LEARNT}, series,
        wb.methods.Torch(lr=RATE, max_norm=0.1, scheduler=shorter), iterations, lambda loss: f"{-1e3 * loss:.1f} mm",
    )  # fmt: skip
    refined.keep(f"{NAME}_grids", series=series)
    for how in (*LEARNT, *JUDGED):
        way = refined.measure(lambda how: float(distance(discretised(how), series)), how)
        print(f"{how}{'' if how in LEARNT else ', not seen'}: {1e3 * way:.1f} mm", flush=True)


def check(sim: wb.Simulation, series: torch.Tensor, sizes: tuple[float, ...] = (1e-3, 2e-2)) -> None:
    """Print derivatives of the loss along its gradient and along a random direction, by gradient and by differences.

    There are differences with two steps: the small step checks the gradient, the large step shows how rough the loss
    is.
    """
    variable = series.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(distance(sim, variable), variable)
    chance = torch.randn(series.shape, generator=torch.Generator().manual_seed(0))
    for name, direction in (("the gradient", gradient), ("a random direction", chance)):
        direction = direction / direction.norm()
        said = [f"slope along {name} [mm]: {1e3 * float((gradient * direction).sum()):.3f}"]
        for size in sizes:
            with torch.no_grad():
                up, down = (distance(sim, series + s * size * direction) for s in (1.0, -1.0))
            said.append(f"by differences of {size:g} {1e3 * float(up - down) / (2.0 * size):.3f}")
        print(", ".join(said), flush=True)


def per_cycle(way: torch.Tensor) -> float:
    """Distance in a cycle [m], as the mean over the second half of a motion of `LONGER` cycles."""
    half = len(way) // 2
    return float(way[-1, 0] - way[half - 1, 0]) / (LONGER / 2)


def depth(sim: wb.Simulation, control: torch.Tensor) -> float:
    """Mean depth of the lowest mass below the floor over a motion [m]."""
    with torch.no_grad():
        low = sim.rollout(control, len(control), observe=lambda s: s.position[..., 2].amin(dim=1)).observation
    return float(-low.mean())


def report(name: str, sim: wb.Simulation, way: torch.Tensor) -> None:
    """Print the distance of a gait."""
    x = sim.model.lattice.position[:, 0]
    trained = float(way[STEPS - 1, 0])
    print(
        f"{name}: {1e3 * trained:.2f} mm in the first {CYCLES} cycles, {1e3 * float(way[-1, 0]):.1f} mm in "
        f"{LONGER}, then {1e3 * per_cycle(way):.2f} mm = {per_cycle(way) / np.ptp(x):.4f} body lengths per cycle, "
        f"{1e3 * float(way[-1, 1]):+.1f} mm aside",
        flush=True,
    )


def main() -> None:
    """Check, optimise, transfer, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=sized(12, 1))
    parser.add_argument("--lr", type=float, default=0.25, help="learning rate of Adam")
    parser.add_argument("--resolved", action="store_true", help="optimise the stored gait on both lattices")
    parser.add_argument("--no-transfer", action="store_true", help="leave out the finer lattice")
    refined.option(parser)
    options = parser.parse_args()
    if options.refine:
        refine()
        return
    if options.resolved:
        resolved(options.iterations)
        return
    sim = simulation("multigait", margin=MARGIN)
    members = [a.name for a in sim.scene.actuators]
    hand = series_of_hand_gait(members)
    check(sim, hand)
    series = hand.clone().requires_grad_()
    history = wb.fit(
        [series], lambda: -distance(sim, series), iterations=options.iterations, lr=options.lr, max_norm=0.1
    )
    refined.keep(NAME, series=series)
    print("distance [mm]:", " ".join(f"{-1e3 * d:.1f}" for d in history.loss))
    print("length of the gradient [mm]:", " ".join(f"{1e3 * g:.1f}" for g in history.gradient_norm))
    steps = sized(round(LONGER * PERIOD / INTERVAL), 2 * STEPS)
    found = {name: controls(s.detach(), steps) for name, s in (("hand-made", hand), ("optimised", series))}
    ways = {name: path(sim, control) for name, control in found.items()}
    for name, way in ways.items():
        report(name, sim, way)
    print(f"lowest mass {1e3 * depth(sim, found['optimised'][:STEPS]):.2f} mm in the floor on average")
    if not options.no_transfer:
        others = {"hard floor": {"contact": 0.0}, f"springs of {1e3 * FINER} mm": {"spacing": FINER}}
        for where, changed in others.items():
            other = simulation("multigait", margin=MARGIN, **changed)
            for name, control in found.items():
                moved = path(other, control[:STEPS])
                print(f"{where}, {name}: {1e3 * float(moved[-1, 0]):.2f} mm in {CYCLES} cycles", flush=True)
                ways[f"{name}, {where}"] = moved
    draw(members, found, ways)


def draw(members: list[str], found: dict[str, torch.Tensor], ways: dict[str, torch.Tensor]) -> None:
    """Draw the controls of one cycle before and after the optimisation, and the distance over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 6.0), dpi=110, layout="constrained")
    grid = figure.add_gridspec(5, 2, width_ratios=[1.0, 1.2])
    first = round(2 * PERIOD / INTERVAL)  # a cycle after the soft start
    cycle = slice(first, first + round(PERIOD / INTERVAL) + 1)
    colors = {"hand-made": "0.6", "optimised": "C0"}
    ax = None
    for k, member in enumerate(members):
        ax = figure.add_subplot(grid[k, 0], sharex=ax)
        for name, control in found.items():
            u = control[cycle, k].numpy()
            ax.plot(np.arange(len(u)) * INTERVAL / PERIOD, u, color=colors[name], label=name)
        ax.set(ylim=(-0.05, 1.05), yticks=(0, 1))
        ax.set_ylabel(member.replace("_", "\n"), rotation=0, ha="right", va="center")
        ax.tick_params(labelbottom=k == len(members) - 1)
    ax.set_xlabel("time [cycles]")
    ax = figure.add_subplot(grid[:, 1])
    for name, way in ways.items():
        kind, *elsewhere = name.split(", ")
        time = INTERVAL * np.arange(1, len(way) + 1)
        ax.plot(time, 1e3 * way[:, 0].numpy(), color=colors[kind], ls=LINES[" ".join(elsewhere)], label=name)
    ax.axvline(CYCLES * PERIOD, color="0.8", zorder=0)
    ax.text(
        CYCLES * PERIOD, 0.98, " seen in training to here", va="top", fontsize=8, transform=ax.get_xaxis_transform()
    )
    ax.set(xlabel="t [s]", ylabel="centre of mass, x [mm]")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(0.25, 0.96))
    figure.savefig(HERE / f"{NAME}.png")


if __name__ == "__main__":
    main()
