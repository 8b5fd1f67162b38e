"""DiffHand's tasks: control alone, control and design, CMA-ES and (1+1)-ES at equal episodes.

    python benchmarks/papers/diffhand_compare.py [reach] [flip] [rotate] [assemble] [--seeds N] [--json FILE]

L-BFGS-B starts from zero controls (seed 0) or at random. The evolution strategies work on controls and design, and get
as many episodes as L-BFGS-B took, or a multiple. Writes ``diffhand_<task>.png``, the loss over episodes, and film
strips of the best episodes before and after the design, beside this file.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_hands import SCENES
from diffhand_tasks import TASKS, Task
from fast import FAST, figures, sized

import warpbots as wb

HERE = figures(__file__)
"""Where the figures go."""


def _result(task: Task, controls: torch.Tensor, factors: torch.Tensor, begun: float) -> dict:
    episodes = list(task.episodes)
    with torch.no_grad():
        loss, metric = task.evaluate(controls[None], factors)
    return {
        "loss": float(loss), "metric": float(metric), "episodes": len(episodes), "seconds": time.perf_counter() - begun,
        "controls": controls.tolist(), "factors": factors.tolist(), "curve": np.minimum.accumulate(episodes).tolist(),
    }  # fmt: skip


def by_gradient(task: Task, seed: int, designed: bool) -> dict:
    """L-BFGS-B at one contact scale after the other; without a design the hand stays that of the paper."""
    controls, factors, task.episodes = task.start(seed).requires_grad_(), task.hand.rest.requires_grad_(designed), []
    begun = time.perf_counter()
    for task.scale in task.scales:
        unknowns = task.unknowns(controls, factors if designed else None)
        wb.minimize(
            lambda: task.evaluate(controls[None], factors)[0].sum(), unknowns, wb.methods.SciPy("L-BFGS-B"),
            iterations=task.iterations, progress=False,
        )  # fmt: skip
    return _result(task, controls.detach(), factors.detach(), begun)


def by_evolution(task: Task, seed: int, episodes: int, strategy: str) -> dict:
    """An evolution strategy on controls and design."""
    controls, factors, task.episodes = task.start(seed).requires_grad_(), task.hand.rest.requires_grad_(), []
    task.scale = task.scales[-1]
    begun = time.perf_counter()
    if strategy == "CMA-ES":
        method = wb.methods.CMA(0.25, population=20, seed=seed)
        wb.minimize(
            lambda: task.evaluate(controls[None], factors)[0].sum(), task.unknowns(controls, factors), method,
            iterations=max(1, episodes // 20), progress=False,
        )  # fmt: skip
        return _result(task, controls.detach(), factors.detach(), begun)
    x = one_plus_one(task, torch.cat([controls.flatten(), factors]).detach().numpy(), seed, episodes)
    found = torch.as_tensor(x).split([controls.numel(), factors.numel()])
    return _result(task, found[0].reshape(task.shape), found[1], begun)


def one_plus_one(task: Task, x: np.ndarray, seed: int, episodes: int) -> np.ndarray:
    """(1+1)-ES with the one-fifth success rule (Rechenberg 1973; Auger 2009) within the bounds."""
    rng, step, count = np.random.default_rng(seed), 0.25, task.intervals * task.sim.channels
    lower = np.concatenate([np.full(count, -1.0), np.full(len(task.upper), 0.5)])
    upper = np.concatenate([np.full(count, 1.0), task.upper])

    def loss(x: np.ndarray) -> float:
        controls, factors = torch.as_tensor(x[:count]).reshape(1, *task.shape), torch.as_tensor(x[count:])
        try:
            with torch.no_grad():
                return float(task.evaluate(controls, factors)[0])
        except wb.SimulationError:
            task.episodes.append(task.episodes[0])
            return float("inf")

    best = loss(x)
    for _ in range(episodes - 1):
        trial = np.clip(x + step * rng.normal(size=len(x)), lower, upper)
        value = loss(trial)
        step *= np.exp(0.8) ** (1.0 if value <= best else -0.25)
        if value <= best:
            x, best = trial, value
    return x


def compare(task: Task, seeds: Sequence[int], longer: int, keep: Callable[[str, int, dict], None]) -> None:
    """All methods for every seed; evolution strategies get `longer` times the episodes of control and design, or none."""
    for seed in seeds:
        keep("control", seed, by_gradient(task, seed, designed=False))
        designed = by_gradient(task, seed, designed=True)
        keep("control and design", seed, designed)
        for strategy in ("CMA-ES", "(1+1)-ES") if longer else ():
            keep(strategy, seed, by_evolution(task, seed, longer * designed["episodes"], strategy))


def figure(task: Task, results: dict[str, list[dict]]) -> None:
    """Best loss so far over episodes, mean and range over seeds."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6, 4))
    for label, runs in results.items():
        longest = max(len(r["curve"]) for r in runs)
        curves = np.array([r["curve"] + [r["curve"][-1]] * (longest - len(r["curve"])) for r in runs])
        (line,) = ax.plot(np.arange(1, longest + 1), curves.mean(0), label=label)
        ax.fill_between(np.arange(1, longest + 1), curves.min(0), curves.max(0), color=line.get_color(), alpha=0.2)
    ax.set(xscale="log", yscale="log", xlabel="episodes", ylabel="best loss so far", title=f"DiffHand: {task.name}")
    ax.legend()
    plt.savefig(HERE / f"diffhand_{task.name}.png", dpi=120, bbox_inches="tight")
    plt.close()


def strip(task: Task, result: dict, path: Path) -> None:
    """Five moments of an episode, drawn with a hand built as designed."""
    controls, factors = (torch.tensor(result[name], dtype=torch.float64) for name in ("controls", "factors"))
    sim = wb.Simulation(SCENES[task.name][0](task.hand, factors), task.sim.solver, task.sim.dt, task.sim.substeps)
    with torch.no_grad():
        wb.view.film_strip(sim.rollout(torch.tanh(controls), task.intervals), frames=5).save(path)


def main() -> None:
    """Run the tasks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"{', '.join(TASKS)}; all without a name")
    parser.add_argument("--seeds", type=int, nargs="*", default=sized([0, 1, 2, 3, 4], [0]))
    parser.add_argument(
        "--longer", type=int, default=1, help="how many times more episodes the strategies get; 0: none"
    )
    parser.add_argument("--json", type=Path, help="where to write all results")
    options = parser.parse_args()
    found: dict[str, dict[str, list[dict]]] = {}
    for name in options.tasks or TASKS:
        task, results = TASKS[name](), found.setdefault(name, {})

        def keep(label: str, seed: int, result: dict, task: Task = task, results: dict = results) -> None:
            results.setdefault(label, []).append(result)
            print(
                f"{task.name}, {label}, seed {seed}: loss {result['loss']:.4g}, {result['metric']:.3g} {task.unit}, "
                f"{result['episodes']} episodes, {result['seconds']:.0f} s, design {np.round(result['factors'], 2)}",
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps(found))

        compare(task, options.seeds, options.longer, keep)
        figure(task, results)
        for label, part in (("control", "before"), ("control and design", "after")):
            if not FAST:
                strip(task, min(results[label], key=lambda r: r["metric"]), HERE / f"diffhand_{name}_{part}.png")


if __name__ == "__main__":
    main()
