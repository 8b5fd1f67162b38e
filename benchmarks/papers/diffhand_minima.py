"""What helps against local minima, at equal episodes: DiffHand's Finger Reach and Flip Box by control alone.

    python benchmarks/papers/diffhand_minima.py [reach] [flip] [--seed 4] [--episodes 600]

Both have a start from which L-BFGS-B fails (diffhand.md). Every method begins there, and stops after the same number of
episodes, each of which is one rollout. Prints a table of the best loss and its metric.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_tasks import TASKS, Task
from fast import sized

import warpbots as wb
from warpbots import methods
from warpbots.optimize.run import Method

SAMPLES = 8
"""Rollouts for one smoothed gradient."""

METHODS = {
    "L-BFGS-B": methods.SciPy("L-BFGS-B"),
    "L-BFGS-B, 6 starts": methods.MultiStart(methods.SciPy("L-BFGS-B"), 6),
    "Adam": methods.Torch(lr=0.03),
    "Adam, 6 starts at once": methods.BatchedStarts(methods.Torch(lr=0.1), 6),
    "Adam, smoothed": methods.Torch(lr=0.1, smoothing=methods.Smoothing(0.1, SAMPLES)),
    "Adam, smoothed differences": methods.Torch(lr=0.1, smoothing=methods.Smoothing(0.1, SAMPLES, order=0)),
    "CMA-ES": methods.CMA(0.25, population=20),
}


def solve(task: Task, method: Method, seed: int, episodes: int) -> tuple[float, float, int]:
    """Run a method; return the best loss, its metric and the number of episodes.

    Each world of the task is a start.
    """
    torch.manual_seed(seed)
    values, factors = task.start(seed).repeat(task.sim.worlds, 1, 1).requires_grad_(), task.hand.rest

    def loss() -> torch.Tensor:
        try:
            return task.evaluate(values, factors)[0]
        except wb.SimulationError:  # a step did not converge: a bad episode
            return 1e6 + 0.0 * values.sum((1, 2))

    wb.minimize(
        loss, wb.Unknown(values, -1.0, 1.0), method, iterations=episodes, progress=False,
        callback=lambda history: history.episodes[-1] >= episodes,
    )  # fmt: skip
    with torch.no_grad():
        best, metric = task.evaluate(values, factors)
    return best[0].item(), metric[0].item(), len(task.episodes)


def main() -> None:
    """Run the methods and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=sized(["reach", "flip"], ["reach"]), help=", ".join(TASKS))
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=sized(600, 12))
    options = parser.parse_args()
    print("| task | method | loss | metric | episodes |\n|---|---|---|---|---|")
    for name in options.tasks:
        for label, method in METHODS.items():
            task = TASKS[name](worlds=method.starts if isinstance(method, methods.BatchedStarts) else 1)
            loss, metric, episodes = solve(task, method, options.seed, options.episodes)
            print(f"| {name} | {label} | {loss:.0f} | {metric:.2f} | {episodes} |", flush=True)


if __name__ == "__main__":
    main()
