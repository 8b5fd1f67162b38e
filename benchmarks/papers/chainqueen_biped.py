"""ChainQueen section 5.2: a biped of two legs and four cables learns to walk by a table of controls.

    python benchmarks/papers/chainqueen_biped.py [--size full] [--seeds 3]

Legs of 0.1 x 0.1 carry a body of 0.3 x 0.1; a cable runs down the front and the back of each leg. Loss and learning
rate are the same as in the paper: the loss is minus the distance after 4 s plus 1e-6 / 2 times the square of all
signals, and the learning rate of Adam is 2e-2. The result printed in the paper is two body lengths within five minutes
on a GPU with 5,024 particles; the small robot has 1,280, and the full one 5,120. Writes ``chainqueen_biped.png`` and
film strips beside this file, and the same as ``chainqueen_biped_full*.png`` for the full size.
"""

import argparse
import functools
import time

import numpy as np
import refined
import torch
from chainqueen_common import KILO, Size, cost, curves, distance, film, options, sized, wb

LENGTH = 0.3
DX = 1 / 80
"""Size of a cell of the small robot [m]."""
SIZES = {"small": Size(), "full": Size(0.5)}
STEPS, HOLD = sized((800, 8), (4, 2))
"""Control intervals of 5 ms, and how many of them share one entry of the table."""
ITERATIONS = sized(45, 2)


def biped(device: str | None, size: str = "small") -> wb.Simulation:
    """Simulation of the robot in a size; E = 10, nu = 0.3 and density 1 in the paper's units."""
    box, floor = wb.shapes.Box, 0.1
    parts = [box((0.3, floor), (0.4, floor + 0.1)), box((0.5, floor), (0.6, floor + 0.1))]
    shape = wb.shapes.Union((*parts, box((0.3, floor + 0.1), (0.6, floor + 0.2))))
    body = wb.SoftBody("biped", shape, wb.Material(10 * KILO, 0.3, KILO))
    cables = [
        wb.actuators.Cable(f"{leg} {side}", ((x, floor + 0.19), (x, floor + 0.1), (x, floor + 0.01)), 1.5 * KILO)
        for leg, left in (("rear", 0.3), ("front", 0.5))
        for side, x in (("back", left + 0.01), ("front", left + 0.09))
    ]
    ground = wb.floor(floor, friction=0.5, dim=2)
    scene = wb.Scene([body], cables, [ground], gravity=(0.0, -2.0), domain=((0.0, 0.0), (3.0, 0.6)))
    return wb.Simulation(scene, SIZES[size].solver(DX, 2), dt=5e-3, substeps=None, device=device)


def motion(sim: wb.Simulation, table: torch.Tensor) -> wb.Trajectory:
    """Motion under a table of controls, of which an entry is for `HOLD` intervals."""
    return sim.rollout(table.clamp(-1, 1).repeat_interleave(HOLD, dim=0), STEPS)


def learn(sim: wb.Simulation, seed: int) -> tuple[np.ndarray, float, wb.Trajectory, wb.Trajectory]:
    """Learn from a seed; return all distances [m], the CPU time [s], and the first and last motions."""
    table = 0.1 * torch.randn(STEPS // HOLD, sim.channels, generator=torch.Generator().manual_seed(seed))
    table.requires_grad_()
    with torch.no_grad():
        before = motion(sim, table)
    began = time.process_time()
    unknown = wb.Unknown(table, -1.0, 1.0)
    history = wb.minimize(
        lambda: cost(motion(sim, table)), unknown, wb.methods.Torch(lr=2e-2, max_norm=0.1), iterations=ITERATIONS
    )
    seconds = time.process_time() - began
    with torch.no_grad():
        return -np.array(history.loss), seconds, before, motion(sim, table)


def refine(sim: wb.Simulation, size: str) -> None:
    """Play the stored gaits of a size again, finer; that for several grids is of `chainqueen_resolved`."""

    def play(how: refined.Refinement, name: str) -> float:
        finer, control = refined.again(sim, how, "dx"), refined.kept(name)["control"][:STEPS]
        return float(distance(finer.rollout(control, STEPS)))

    own = refined.stored_as("chainqueen_biped", size)
    gaits = {"biped with cables": own, "for several grids": f"{own}_grids"}
    refined.table({label: functools.partial(play, name=name) for label, name in gaits.items()}, 0.75)


def experiment(name: str, sim: wb.Simulation, chosen: argparse.Namespace) -> None:
    """Learn from all seeds, print the row of the table, store the first gait under a name, and draw the figures."""
    runs, times = [], []
    print(sim.model.summary(), f"{sim.substeps} substeps")
    for seed in range(chosen.seeds):
        distances, seconds, before, after = learn(sim, seed)
        runs.append(distances)
        times.append(seconds)
        print(
            f"seed {seed}: {distances[0] / LENGTH:.2f} -> {distances.max() / LENGTH:.2f} body lengths in "
            f"{len(distances) - 1} iterations, {seconds:.0f} s of CPU time",
            flush=True,
        )
        if seed == 0:
            refined.keep(name, control=after.control[0])
            film(f"{name}_before", before, chosen.out)
            film(f"{name}_after", after, chosen.out)
    curves(name, {"distance": runs}, "distance [m]", {"distance": times})


def main() -> None:
    """Run the experiment in a size, or play its stored gaits again."""
    chosen = options(__doc__, "out", "refine", seeds=3, sizes=SIZES)
    sim = biped(chosen.device, chosen.size)
    if chosen.refine:
        refine(sim, chosen.size)
    else:
        experiment(refined.stored_as("chainqueen_biped", chosen.size), sim, chosen)


if __name__ == "__main__":
    main()
