"""Cronos figure 9 and tables 2 and 3: springs per second over size and integrator, and the time of a step.

    python benchmarks/papers/cronos_speed.py [--device D] [--repeats N]

Table 3 has 8,000 active and 25 anchored masses: a beam of 320 x 4 x 4 voxels has 321 x 5 x 5 masses, 25 of them in the
clamped face. Figure 9 has unconstrained cubes of voxels. Single precision, one thread on a CPU. Timed as in
``../run.py``: captured intervals, alternating forward and with gradient, including copies of inputs and outputs. Writes
``cronos_speed.png`` beside this file.
"""

import argparse
import os
import statistics
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import warp as wp
from cronos_common import HERE, POISSONS_RATIO, beam, sized, wb

from warpbots.gradients import interval

MATERIAL = wb.Material(1e5, POISSONS_RATIO, 1000.0)
CELLS, SPACING = sized((320, 4, 4), (8, 4, 4)), 0.01
STEPS, DT = 50, 1e-4
"""Steps in an interval and their length [s], well below the bound."""
CUBES = sized((3, 5, 9, 14, 20, 30, 42), (2, 3))
"""Voxels along the edge of the cubes of figure 9."""
INTEGRATORS = ("euler", "verlet", "rk4")
PAPER = {"i7-8700K, 6 cores": (9720, 23.38e6)}
"""What the paper measures at best on a CPU: springs and springs/s."""
PRINTED = 0.216
"""What the paper measures on a GTX 1080 Ti [ms]."""


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="Warp device (%(default)s)")
    parser.add_argument("--repeats", type=int, default=sized(15, 1), help="timed runs of each kind (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table(options.device, options.repeats)
    draw(sweep(options.device, max(3, options.repeats // 3)))


def table(device: str, repeats: int) -> None:
    """Print table 3: the time of a step."""
    solver = wb.MassSpring(SPACING)
    model = solver.build(beam(tuple(n * SPACING for n in CELLS), MATERIAL), device=device)
    anchored, springs = int(model.lattice.regions["root"].sum()), len(model.lattice.ends)
    print(
        f"{len(model.lattice) - anchored} active and {anchored} anchored masses, {springs} springs, {model.device.name}"
    )
    for name, times in measure(solver, model, repeats).items():
        best, median = 1e3 * min(times) / STEPS, 1e3 * statistics.median(times) / STEPS
        print(
            f"{name}: {median:.3f} ms per step (median of {len(times)}, best {best:.3f}), "
            f"{springs / median / 1e3:.0f} M springs/s; {median / PRINTED:.2f} of the paper's {PRINTED} ms forwards"
        )


def sweep(device: str, repeats: int) -> dict[str, list[tuple[int, float, float]]]:
    """Measure the data of figure 9.

    For each integrator and each size of the cube, the result has the number of springs, and the number of springs per
    second forward and with gradient.
    """
    found = {}
    for integrator in INTEGRATORS:
        rows = found[integrator] = []
        for cells in CUBES:
            cube = wb.SoftBody("cube", wb.shapes.Box((0.0,) * 3, (cells * SPACING,) * 3), MATERIAL)
            solver = wb.MassSpring(SPACING, integrator=integrator)
            model = solver.build(wb.Scene([cube], gravity=(0.0, 0.0, 0.0)), device=device)
            springs = len(model.lattice.ends)
            steps = max(4, min(sized(200, 4), 4_000_000 // springs))
            times = measure(solver, model, repeats, steps)
            rows.append((springs, *(springs * steps / statistics.median(t) for t in times.values())))
        print(f"{integrator}: " + ", ".join(f"{n} springs {f / 1e6:.0f} ({g / 1e6:.0f}) M/s" for n, f, g in rows))
    return found


def draw(found: dict[str, list[tuple[int, float, float]]]) -> None:
    """Draw springs per second over springs, forward and with gradient, beside the paper's best result on a CPU."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.0), dpi=110, layout="constrained")
    ax = figure.subplots()
    for number, (integrator, rows) in enumerate(found.items()):
        springs, forward, gradient = zip(*rows, strict=True)
        ax.plot(springs, forward, "o-", color=f"C{number}", label=integrator)
        ax.plot(springs, gradient, "o--", color=f"C{number}", fillstyle="none", label=f"{integrator}, with gradient")
    for name, (springs, rate) in PAPER.items():
        ax.plot([springs], [rate], "k*", label=f"Cronos, {name}")
    ax.set(xscale="log", yscale="log", xlabel="springs", ylabel="springs/s")
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(HERE / "cronos_speed.png")


def measure(solver: wb.MassSpring, model: object, repeats: int, steps: int = STEPS) -> dict[str, list[float]]:
    """Times of an interval [s], forward and with the gradient with respect to its initial state."""
    inputs = {n: wp.to_torch(a).clone() for n, a in vars(solver.state(model)).items() if isinstance(a, wp.array)}
    like = inputs["position"]
    inputs["control"] = torch.zeros(1, model.channels, dtype=like.dtype, device=like.device)
    only = interval(solver, model, DT, steps, frozenset(), frozenset())
    differentiated = interval(solver, model, DT, steps, frozenset(), frozenset(inputs))

    def forward() -> None:
        only.run(inputs)

    def gradient() -> None:
        outputs, _ = differentiated.run(inputs)
        seeds = {name: torch.zeros_like(t) for name, t in outputs.items()}
        seeds["position"][..., 2] = 1.0 / len(model.lattice)
        differentiated.backward(seeds)

    works = {"forward": forward, "forward and backward": gradient}
    for _ in range(2):  # compiles and captures
        for work in works.values():
            work()
    times = {name: [] for name in works}
    for _ in range(repeats):  # in turn, for a noisy machine
        for name, work in works.items():
            times[name].append(timed(work, model.device))
    return times


def timed(work: object, device: wp.Device) -> float:
    """Time that a call of `work` takes [s]."""
    wp.synchronize_device(device)
    start = time.perf_counter()
    work()
    wp.synchronize_device(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
