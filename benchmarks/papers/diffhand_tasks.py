"""DiffHand's tasks without cages: Finger Reach and Flip Box, control alone and with a design, compared with CMA-ES.

    python benchmarks/papers/diffhand_tasks.py [reach] [flip] [--seeds N] [--iterations N] [--json FILE]

Losses and constants are those of the published code, in its units (cm, rad); the finger is `diffhand_finger`. L-BFGS-B
starts from zero controls (seed 0) or at random; CMA-ES (population 20) gets as many episodes as L-BFGS-B took, or a
multiple. Writes ``diffhand_<task>.png``, the loss over episodes, beside this file.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_finger import CM, HINGE, Design, flip_scene, parameters, reach_scene, tip_of
from fast import FAST, figures, sized

import warpbots as wb

HERE = figures(__file__)
"""Where the figures go."""
INTERVALS = sized(30, 2)
"""In which the controls of an episode are held."""
TARGETS = CM * np.array([(10.0, -5.0, -5.0), (10.0, -5.0, 5.0), (20.0, 10.0, 10.0), (20.0, 10.0, -10.0)])
"""Of Finger Reach, a quarter of the time each [m]."""


@dataclasses.dataclass
class Task:
    """A task as a function of a vector: controls before tanh, then the design.

    Attributes:
        name: Its name.
        sim: The simulation; controls are constant during a control interval.
        intervals: Control intervals of an episode.
        bounds: Bounds of each entry of the design.
        loss: Losses and metrics of a trajectory under a design, each of shape (worlds,).
        episodes: Loss of each episode so far.
    """

    name: str
    sim: wb.Simulation
    intervals: int
    bounds: tuple[tuple[float, float], ...]
    loss: Callable[[wb.Trajectory, Design], tuple[torch.Tensor, torch.Tensor]]
    episodes: list[float] = dataclasses.field(default_factory=list)

    @property
    def controls(self) -> int:
        """Number of entries that are controls."""
        return self.intervals * self.sim.channels

    def evaluate(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and metric of one episode."""
        losses, metrics = self.evaluate_worlds(values[None, : self.controls], values[self.controls :])
        return losses[0], metrics[0]

    def evaluate_worlds(self, controls: torch.Tensor, design: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses and metrics of one episode in each world, each of shape (worlds,).

        Args:
            controls: Before tanh, shape (worlds, controls).
            design: Of the finger in all worlds.
        """
        control = torch.tanh(controls).reshape(-1, self.intervals, self.sim.channels)
        design = Design.of(design)
        changed = parameters(self.sim, design)

        def observe(state):
            readings = self.sim.sense(state, **changed)
            k = self.sim.model.robot.body("distal")
            tip = readings.position[:, k] + readings.rotation[:, k] @ tip_of(design)
            return torch.cat([tip, state.q], dim=1)

        trajectory = self.sim.rollout(control, self.intervals, observe=observe, **changed)
        losses, metrics = self.loss(trajectory, design)
        self.episodes += losses.tolist()
        return losses, metrics

    def start(self, seed: int) -> np.ndarray:
        """Zero controls for seed 0, random ones otherwise; the finger of the paper."""
        rng = np.random.default_rng(seed)
        control = np.zeros(self.controls) if seed == 0 else rng.uniform(-0.5, 0.5, self.controls)
        return np.concatenate([control, np.ones(len(self.bounds))])


def reach(worlds: int = 1) -> Task:
    """Finger Reach: follow four targets without gravity; 3 s in steps of 5 ms, controls constant for 20 steps."""
    times = 20 * np.arange(1, INTERVALS + 1)
    targets = torch.as_tensor(TARGETS[np.minimum((times - 1) // 150, 3)])

    def loss(trajectory: wb.Trajectory, design: Design) -> tuple[torch.Tensor, torch.Tensor]:
        distance = (trajectory.observation[..., :3] - targets).norm(dim=2) / CM
        return 0.1 * trajectory.control.square().sum((1, 2)) + 10.0 * distance.sum(1), distance.mean(1)

    sim = wb.Simulation(
        reach_scene(), wb.Articulated(), dt=0.1, substeps=20, worlds=worlds, checkpoints=wb.Checkpoints.all()
    )
    return Task("reach", sim, INTERVALS, ((0.5, 4.0),) * 3, loss)


def flip(worlds: int = 1) -> Task:
    """Flip Box: turn a heavy box on its hinge by 90 degrees; 0.75 s in steps of 5 ms, controls constant for 5 steps."""
    solver = wb.Articulated(rounding=0.2)  # edges of 6 mm, more than the penetration of the finger's soft points
    sim = wb.Simulation(flip_scene(), solver, dt=0.025, substeps=5, worlds=worlds, checkpoints=wb.Checkpoints.all())
    angle_at = 3 + sim.model.robot.coordinates["lid"].start
    back = torch.tensor([6.0, 0.0, 4.0], dtype=torch.float64)

    def loss(trajectory: wb.Trajectory, design: Design) -> tuple[torch.Tensor, torch.Tensor]:
        seen = trajectory.observation
        angle = seen[..., angle_at]
        c, s, zero = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle)
        goal = torch.stack([c * back[0] - s * back[2], zero, s * back[0] + c * back[2]], dim=2)
        goal = goal + torch.as_tensor(HINGE / CM)
        near = (seen[:, :15, :3] / CM - goal[:, :15]).square().sum((1, 2))
        error = angle - torch.pi / 2
        total = 5.0 * trajectory.control.square().sum((1, 2)) + near + 50.0 * error.square().sum(1)
        return total, torch.rad2deg(error[:, -1].abs())

    return Task("flip", sim, INTERVALS, ((0.5, 3.0),) * 4, loss)


TASKS = {"reach": (reach, sized(500, 1)), "flip": (flip, sized(100, 1))}
"""Tasks, each with its number of iterations."""


def by_gradient(task: Task, seed: int, iterations: int, designed: bool) -> dict:
    """L-BFGS-B with scipy's defaults; without a design it stays that of the paper."""
    start, task.episodes = task.start(seed), []
    free = len(start) if designed else task.controls
    fixed = torch.as_tensor(start[free:])

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(x, requires_grad=True)
        try:
            loss, _ = task.evaluate(torch.cat([leaf, fixed]))
        except wb.SimulationError as fault:
            print(f"    an episode failed: {fault}", file=sys.stderr)
            task.episodes.append(task.episodes[0])
            return 1e9, np.zeros_like(x)
        loss.backward()
        return float(loss.detach()), leaf.grad.numpy()

    bounds = [(-1.0, 1.0)] * task.controls + list(task.bounds)
    begun = time.perf_counter()
    found = minimize(
        value, start[:free], jac=True, method="L-BFGS-B", bounds=bounds[:free], options={"maxiter": iterations}
    )
    seconds, episodes = time.perf_counter() - begun, list(task.episodes)
    with torch.no_grad():
        loss, metric = task.evaluate(torch.cat([torch.as_tensor(found.x), fixed]))
    return {
        "loss": float(loss), "metric": float(metric), "episodes": len(episodes), "seconds": seconds,
        "values": [*found.x.tolist(), *fixed.tolist()], "curve": np.minimum.accumulate(episodes).tolist(),
    }  # fmt: skip


def by_evolution(task: Task, seed: int, episodes: int) -> dict:
    """CMA-ES on controls and design with as many episodes."""
    import cma

    start, task.episodes = task.start(seed), []
    lower, upper = zip(*([(-1.0, 1.0)] * task.controls + list(task.bounds)), strict=True)
    options = {
        "bounds": [list(lower), list(upper)],
        "popsize": 20,
        "seed": seed + 1,
        "verbose": -9,
        "maxfevals": episodes,
    }

    def value(x: np.ndarray) -> float:
        try:
            with torch.no_grad():
                return float(task.evaluate(torch.as_tensor(np.asarray(x)))[0])
        except wb.SimulationError:
            task.episodes.append(task.episodes[0])
            return 1e9

    best = cma.fmin2(value, start, 0.25, options | {"verbose": -9})[0]
    curve = np.minimum.accumulate(task.episodes).tolist()
    with torch.no_grad():
        loss, metric = task.evaluate(torch.as_tensor(best))
    return {
        "loss": float(loss), "metric": float(metric), "episodes": len(curve), "values": list(best), "curve": curve,
    }  # fmt: skip


def figure(name: str, results: dict[str, list[dict]]) -> None:
    """Best loss so far over episodes, mean and range over seeds."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6, 4))
    for label, runs in results.items():
        longest = max(len(r["curve"]) for r in runs)
        curves = np.array([r["curve"] + [r["curve"][-1]] * (longest - len(r["curve"])) for r in runs])
        (line,) = ax.plot(np.arange(1, longest + 1), curves.mean(0), label=label)
        ax.fill_between(np.arange(1, longest + 1), curves.min(0), curves.max(0), color=line.get_color(), alpha=0.2)
    ax.set(xscale="log", yscale="log", xlabel="episodes", ylabel="best loss so far", title=f"DiffHand: {name}")
    ax.legend()
    plt.savefig(HERE / f"diffhand_{name}.png", dpi=120, bbox_inches="tight")


def strip(task: Task, values: list[float], path: Path) -> None:
    """Five moments of an episode, drawn with a finger built as designed."""
    values = torch.as_tensor(np.array(values))
    design = Design.of(values[task.controls :])
    with torch.no_grad():
        control = torch.tanh(values[: task.controls]).reshape(task.intervals, task.sim.channels)
        scene = {"reach": reach_scene, "flip": flip_scene}[task.name](design)
        sim = wb.Simulation(scene, task.sim.solver, task.sim.dt, task.sim.substeps)
        changed = parameters(task.sim, design)
        wb.view.film_strip(sim.rollout(control, task.intervals, **changed), frames=5).save(path)


def compare(task: Task, iterations: int, seeds: int, longer: int) -> dict[str, list[dict]]:
    """Control alone, control and design, and CMA-ES with `longer` times the episodes of the latter, for every seed."""
    results: dict[str, list[dict]] = {"control": [], "control and design": [], "CMA-ES": []}

    def keep(label: str, seed: int, result: dict) -> None:
        results[label].append(result)
        design = np.round(result["values"][task.controls :], 3)
        print(
            f"{task.name}, {label}, seed {seed}: loss {result['loss']:.4g}, metric {result['metric']:.4g}, "
            f"{result['episodes']} episodes, design {design}",
            flush=True,
        )

    for seed in range(seeds):
        keep("control", seed, by_gradient(task, seed, iterations, designed=False))
        keep("control and design", seed, by_gradient(task, seed, iterations, designed=True))
        keep("CMA-ES", seed, by_evolution(task, seed, longer * results["control and design"][seed]["episodes"]))
    return results


def main() -> None:
    """Run the tasks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="reach, flip; both without a name")
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--iterations", type=int, help="of L-BFGS-B; those of the paper without a number")
    parser.add_argument("--longer", type=int, default=1, help="how many times more episodes CMA-ES gets")
    parser.add_argument("--json", type=Path, help="where to write all results")
    options = parser.parse_args()
    found = {}
    for name in options.tasks or TASKS:
        make, iterations = TASKS[name]
        task = make()
        found[name] = compare(task, options.iterations or iterations, options.seeds, options.longer)
        figure(name, found[name])
        for label, part in (("control", "before"), ("control and design", "after")):
            best = min(found[name][label], key=lambda r: r["metric"])
            if not FAST:
                strip(task, best["values"], HERE / f"diffhand_{name}_{part}.png")
        if options.json:
            options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
