"""Cronos table 3: the time of a step of 8,000 active and 25 anchored masses.

    python benchmarks/papers/cronos_speed.py [--device D] [--repeats N]

A beam of 320 x 4 x 4 voxels has 321 x 5 x 5 = 8,025 masses, 25 of them in the clamped face; semi-implicit Euler, single
precision, one thread on a CPU. Timed as in ``../run.py``: captured intervals, forwards and with gradient in turn, input
and output copies included.
"""

import argparse
import os
import statistics
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import warp as wp
from cronos_common import POISSONS_RATIO, beam, wb

from warpbots.gradients import Interval

MATERIAL = wb.Material(1e5, POISSONS_RATIO, 1000.0)
CELLS, SPACING = (320, 4, 4), 0.01
STEPS, DT = 50, 1e-4
"""Steps in an interval and their length [s], well below the bound."""
PRINTED = 0.216
"""What the paper measures on a GTX 1080 Ti [ms]."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="Warp device (%(default)s)")
    parser.add_argument("--repeats", type=int, default=15, help="timed runs of each kind (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    solver = wb.MassSpring(SPACING)
    model = solver.build(beam(tuple(n * SPACING for n in CELLS), MATERIAL), device=options.device)
    anchored, springs = int(model.lattice.regions["root"].sum()), len(model.lattice.ends)
    print(
        f"{len(model.lattice) - anchored} active and {anchored} anchored masses, {springs} springs, {model.device.name}"
    )
    for name, times in measure(solver, model, options.repeats).items():
        best, median = 1e3 * min(times) / STEPS, 1e3 * statistics.median(times) / STEPS
        print(
            f"{name}: {median:.3f} ms per step (median of {len(times)}, best {best:.3f}), "
            f"{springs / median / 1e3:.0f} M springs/s; {median / PRINTED:.2f} of the paper's {PRINTED} ms forwards"
        )


def measure(solver: wb.MassSpring, model: object, repeats: int) -> dict[str, list[float]]:
    """Times of an interval [s], forwards and with the gradient to the state it starts from."""
    inputs = {n: wp.to_torch(a).clone() for n, a in vars(solver.state(model)).items() if isinstance(a, wp.array)}
    like = inputs["position"]
    inputs["control"] = torch.zeros(1, model.channels, dtype=like.dtype, device=like.device)
    only = Interval(solver, model, DT, STEPS, frozenset(), frozenset())
    differentiated = Interval(solver, model, DT, STEPS, frozenset(), frozenset(inputs))

    def forward() -> None:
        only.run(inputs)

    def gradient() -> None:
        outputs = differentiated.run(inputs)
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
    """Seconds that a call takes."""
    wp.synchronize_device(device)
    start = time.perf_counter()
    work()
    wp.synchronize_device(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
