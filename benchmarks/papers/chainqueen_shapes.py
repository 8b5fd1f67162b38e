"""ChainQueen section 5.2, figures 7 and 9: robots from files learn to walk: a silhouette in 2D and a mesh in 3D.

    python benchmarks/papers/chainqueen_shapes.py [rhino] [lizard] [--size full] [--seeds 5] [--processes 2]

The script draws a rhinoceros to a PNG file and writes the surface of a lizard to an STL file;
`wb.shapes.load_silhouette` and `wb.shapes.load_mesh` read the robots from these files. The rhinoceros has two chambers
side by side in each foot. The lizard has two chambers in each leg, and one in each side of its trunk and of its tail. A
perceptron observes seven clusters and a clock, and drives all pressures. Writes ``chainqueen_shapes.png`` and film
strips beside this file.
"""

import dataclasses
import functools
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import refined
import torch
from chainqueen_codesign import interval
from chainqueen_common import (
    KILO,
    SIZES,
    Size,
    cost,
    curves,
    distance,
    film,
    in_processes,
    keep_walk,
    options,
    sized,
    stored_walk,
    wb,
)  # fmt: skip

from warpbots.contact import sampled_surface

FLOOR = 0.1
"""Height of the floor in 2D [m]."""
OUTLINE = (
    (80, 0), (80, 110), (40, 150), (40, 235), (100, 290), (210, 275), (300, 305), (370, 320), (420, 290), (440, 320),
    (465, 280), (530, 235), (580, 290), (595, 215), (590, 165), (550, 135), (490, 130), (465, 125), (450, 95),
    (450, 0), (345, 0), (345, 100), (265, 85), (185, 100), (185, 0),
)  # fmt: skip
"""The rhinoceros, which looks to the right [mm]."""
FEET = {"hind": (80, 185), "front": (345, 450)}
"""From where to where its feet reach [mm]."""
SCALE = 0.8
"""Of the rhinoceros [mm per mm of `OUTLINE`]."""
LIMBS = {
    "head": ((0.50, 0.0, 0.14), (0.56, 0.0, 0.14), 0.06),
    "trunk": ((0.16, 0.0, 0.14), (0.44, 0.0, 0.14), 0.07),
    "tail": ((-0.14, 0.0, 0.12), (0.12, 0.0, 0.14), 0.05),
} | {
    f"{end} {side}": ((x, y * 0.04, 0.14), (x, y * 0.15, 0.05), 0.05)
    for end, x in (("hind", 0.18), ("front", 0.42))
    for side, y in (("left", 1.0), ("right", -1.0))
}
"""The lizard: ends [m] and radius [m] of each limb."""


@dataclasses.dataclass(frozen=True)
class Walker:
    """A robot that learns to walk.

    Attributes:
        scene: Function that makes the scene; its region "robot" is the robot, and all its actuators are pressures.
        dx: Size of a cell of MPM at the small size [m].
        dt: Length of a control interval [s].
        steps: Number of control intervals.
        length: Length of the robot along x [m].
        clock: Period of the clock that the controller observes [s].
        lr: Learning rate of Adam in the first iteration.
        decay: Factor by which the learning rate is multiplied after each iteration.
        iterations: Number of iterations of Adam.
        size: How finely the matter is divided.
    """

    scene: Callable[[], wb.Scene]
    dx: float
    dt: float
    steps: int
    length: float
    clock: float
    lr: float
    decay: float
    iterations: int
    size: Size = SIZES["small"]

    def controller(self, sim: wb.Simulation, seed: int = 0) -> wb.controllers.MLP:
        """The perceptron that drives the pressures."""
        return wb.controllers.MLP(sim, wb.observers.Clusters(7, "robot"), clock=self.clock, seed=seed)


@functools.lru_cache(1)  # all seeds share the graphs of a simulation, which take ten seconds to record
def simulation(walker: Walker, device: str | None) -> wb.Simulation:
    """Simulation of a robot by MPM; small rollouts keep all states for the gradient, which is the fastest schedule."""
    scene, schedule = walker.scene(), wb.Checkpoints.all() if walker.size == SIZES["small"] else wb.Checkpoints.sqrt()
    solver = walker.size.solver(walker.dx, scene.dim)
    return wb.Simulation(scene, solver, walker.dt, device=device, checkpoints=schedule)


def rhino() -> wb.Scene:
    """The robot from a silhouette; pressures reach 2 in the paper's units."""
    from PIL import Image, ImageDraw, ImageFilter

    pixels = Image.new("L", (660, 360), "white")
    ImageDraw.Draw(pixels).polygon([(x + 20, 340 - y) for x, y in OUTLINE], fill="black")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rhino.png"
        pixels.filter(ImageFilter.GaussianBlur(6)).save(file)
        shape = wb.shapes.load_silhouette(file, 0.32 * SCALE, (0.1, FLOOR))
    chambers = {}
    for foot, (left, right) in FEET.items():
        edges = 0.1 + SCALE * (np.array([left, 0.5 * (left + right), right]) - OUTLINE[2][0]) * 1e-3
        for side, (low, high) in zip(("back", "front"), itertools.pairwise(edges), strict=True):
            chambers[f"{foot} {side}"] = wb.shapes.Box((low, FLOOR), (high, FLOOR + 0.1 * SCALE))
    body = wb.SoftBody("rhino", shape, wb.Material(10 * KILO, 0.3, KILO), {"robot": shape} | chambers)
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    ground = wb.floor(FLOOR, friction=0.5, dim=2)
    return wb.Scene([body], pressures, [ground], gravity=(0.0, -2.0), domain=((-0.4, 0.0), (2.5, 0.8)))


def lizard() -> wb.Scene:
    """The robot from a mesh; pressures reach 2 in the paper's units."""
    import trimesh

    box, limbs = wb.shapes.Box, wb.shapes.Union([wb.shapes.Capsule(*limb) for limb in LIMBS.values()])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lizard.stl"
        trimesh.Trimesh(*sampled_surface(limbs, *limbs.bounds, 0.01)).export(file)
        shape = wb.shapes.load_mesh(file)
    chambers = {}
    for (end, x), (side, y) in itertools.product((("hind", 0.18), ("front", 0.42)), (("left", 1.0), ("right", -1.0))):
        low, high = sorted((y * 0.07, y * 0.2))
        chambers[f"{end} {side} back"] = box((x - 0.05, low, 0.0), (x, high, 0.2))
        chambers[f"{end} {side} front"] = box((x, low, 0.0), (x + 0.05, high, 0.2))
    for side, y in (("left", 1.0), ("right", -1.0)):
        low, high = sorted((0.0, y * 0.07))
        chambers[f"trunk {side}"] = box((0.16, low, 0.0), (0.44, high, 0.3))
        chambers[f"tail {side}"] = box((-0.2, low, 0.0), (0.09, high, 0.3))
    body = wb.SoftBody("lizard", shape, wb.Material(10 * KILO, 0.3, KILO), {"robot": shape} | chambers)
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    return wb.Scene(
        [body], pressures, [wb.floor(friction=0.5)], gravity=(0.0, 0.0, -2.0),
        domain=((-0.5, -0.5, 0.0), (2.5, 0.5, 0.5)),
    )  # fmt: skip


SECOND = {"flat": "flat_grids", "rhino": "rhino_grids", "lizard": "lizard_full"}
"""Second stored gaits of robots: for several grids, of `chainqueen_resolved`, and of the full size."""
WALKERS = {
    "rhino": Walker(rhino, 1 / 80, 0.01, sized(200, 3), 0.44, 0.4, 3e-2, 0.98, sized(60, 1)),
    "lizard": Walker(lizard, 1 / 30, 0.02, sized(150, 3), 0.79, 0.4, 3e-2, 0.98, sized(40, 1)),
}
ROBOTS = {
    "small": WALKERS,
    "full": {
        "rhino": dataclasses.replace(WALKERS["rhino"], size=SIZES["full"]),
        "lizard": dataclasses.replace(WALKERS["lizard"], size=Size(0.5)),
    },
}
"""The robots by size: 20,000 and 22,084 particles in the paper, about 17,600 and 24,700 at full size."""


def learn(walker: Walker, name: str, device: str | None, seed: int) -> tuple[np.ndarray, wb.Trajectory, wb.Trajectory]:
    """Learn from a seed, and store the gait of the first seed.

    Returns the distances of all iterations [m], without the cost of the signals, and the motions before and after.
    """
    sim = simulation(walker, device)
    policy = walker.controller(sim, seed)
    with torch.no_grad():
        before = sim.rollout(policy, walker.steps)
    method = wb.methods.Torch(
        lr=walker.lr, max_norm=0.1, scheduler=lambda adam: torch.optim.lr_scheduler.ExponentialLR(adam, walker.decay)
    )
    history = wb.minimize(
        lambda: cost(sim.rollout(policy, walker.steps), "robot"),
        policy,
        method,
        iterations=walker.iterations,
        progress=False,
    )
    if seed == 0:
        keep_walk(f"chainqueen_{name}", sim, policy, {})
    with torch.no_grad():
        return -np.array(history.loss), before, sim.rollout(policy, walker.steps)


def run(
    walker: Walker, name: str, device: str | None, seed: int, out: Path | None
) -> tuple[np.ndarray, float, float, float]:
    """Learn from a seed, and draw the motions of the first seed.

    Returns the distances of all iterations, the distances before and after [m], and the CPU time [s].
    """
    began = time.process_time()
    distances, *motions = learn(walker, name, device, seed)
    seconds = time.process_time() - began
    before, after = (distance(motion, "robot").item() for motion in motions)
    if seed == 0:
        for motion, when in zip(motions, ("before", "after"), strict=True):
            film(f"chainqueen_{name}_{when}", motion, out)
    print(f"{name}, seed {seed}: {before:.3f} -> {after:.3f} m, {seconds:.0f} s", flush=True)
    return distances, before, after, seconds


def play(how: refined.Refinement, walker: Walker, name: str, device: str | None) -> float:
    """Play a stored gait again, finer; return the distance [m]."""
    sim = refined.again(simulation(walker, device), how, "dx")
    return distance(stored_walk(name, sim, walker.controller(sim), walker.steps), "robot").item()


def experiment(file: str, about: str, robots: Mapping[str, Mapping[str, Walker]]) -> None:
    """Let all walkers of a size learn from all seeds, print the table, and draw the curves to a file; or refine.

    Args:
        file: Name of the file, without its ending.
        about: The docstring of the script.
        robots: The walkers by size and name.
    """
    chosen = options(about, "processes", "out", "refine", seeds=5, names=robots["small"], sizes=robots)
    walkers = robots[chosen.size]
    if chosen.refine:
        plays = {}
        for name in chosen.names:
            again = functools.partial(play, walker=walkers[name], device=chosen.device)
            plays[name] = functools.partial(again, name=f"chainqueen_{refined.stored_as(name, chosen.size)}")
            if name in SECOND and chosen.size == "small":
                plays[f"{name}, gait {SECOND[name]}"] = functools.partial(again, name=f"chainqueen_{SECOND[name]}")
        refined.table(plays, 0.75)
        return
    jobs = list(itertools.product(chosen.names, range(chosen.seeds)))
    work = [
        (walkers[name], refined.stored_as(name, chosen.size), chosen.device, seed, chosen.out) for name, seed in jobs
    ]
    found = dict(zip(jobs, in_processes(run, work, chosen.processes), strict=True))
    print("| walker | before [m] | after [m] | after [body lengths] | after, seed by seed [m] | CPU s a run |")
    print("|---|---|---|---|---|---|")
    runs, times = {}, {}
    for name in chosen.names:
        runs[name], *numbers = zip(*(found[name, seed] for seed in range(chosen.seeds)), strict=True)
        before, after, times[name] = (list(values) for values in numbers)
        lengths = [d / walkers[name].length for d in after]
        each = ", ".join(f"{d:.3f}" for d in after)
        cells = [interval(before), interval(after), interval(lengths), each, f"{np.mean(times[name]):.0f}"]
        print("| " + " | ".join((name, *cells)) + " |")
    curves(refined.stored_as(file, chosen.size), runs, "distance [m]", times)


def main() -> None:
    """Print the table, and draw the figures."""
    experiment("chainqueen_shapes", __doc__, ROBOTS)


if __name__ == "__main__":
    main()
