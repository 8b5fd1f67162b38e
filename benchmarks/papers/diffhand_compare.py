"""DiffHand's tasks: control alone, control and design, several starts of both, CMA-ES and (1+1)-ES.

    python benchmarks/papers/diffhand_compare.py [reach] [flip] [rotate] [assemble] [--seeds N ...] [--json FILE]
        [--integrator bdf1]
    python benchmarks/papers/diffhand_compare.py [reach] [flip] [rotate] [assemble] --strips
    python benchmarks/papers/diffhand_compare.py [reach] [flip] [rotate] [assemble] --refine

L-BFGS-B starts from zero controls (seed 0) or from random controls, as in the paper. Several starts share a number of
episodes, and each evolution strategy gets the same number. Writes ``diffhand_<task>.png``, the loss over episodes, and
the runs of the lowest losses, by control alone (before) and by several starts (after), to ``stored/``. ``--strips``
draws these, ``diffhand_<task>_<before or after>.png``, and ``--refine`` plays the latter again, finer. With another
integrator than the default (``--integrator bdf1``: implicit Euler) nothing is drawn or stored.
"""

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from diffhand_strips import strip
from diffhand_tasks import TASKS, Task
from fast import figures, sized

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
    """Run L-BFGS-B at one contact scale after the other; if not `designed`, the hand keeps the shape of the paper."""
    controls, factors, task.episodes = task.start(seed).requires_grad_(), task.hand.rest.requires_grad_(designed), []
    begun = time.perf_counter()
    for scale in task.scales:
        task.scale = scale
        loss, unknowns = task.problem(controls, factors)
        wb.minimize(loss, unknowns, wb.methods.SciPy("L-BFGS-B"), iterations=task.iterations, progress=False)
    return _result(task, controls.detach(), factors.detach(), begun)


def by_search(task: Task, seed: int, episodes: int) -> dict:
    """Let several starts share the episodes by successive halving; then improve the best start under a constraint.

    The first start is the start of `by_gradient`; all other starts have random controls and factors. L-BFGS-B improves
    all starts, and SLSQP improves the best start under the constraint that the metric is at most `Task.limit`. If the
    task has a learning rate, Adam replaces both methods, with an augmented Lagrangian for the constraint, at the last
    contact scale; where a rollout fails, it goes on from its best iteration with half the learning rate.
    """
    task.episodes, task.scale, begun = [], task.scales[-2:][0], time.perf_counter()
    method, last, iterations = wb.methods.SciPy("L-BFGS-B"), [wb.methods.SciPy("SLSQP")], 15
    if task.rate:
        multipliers = wb.methods.AugmentedLagrangian(penalty=100.0, every=20)
        method, iterations = wb.methods.Torch(lr=task.rate), 100
        last = [wb.methods.Torch(lr=rate * task.rate, constraints=multipliers) for rate in (0.6, 0.3, 0.15)]
    found = wb.search(
        {str(k): k for k in range(sized(task.starts, 2))}, lambda k: task.problem(*task.drawn(seed, k)), method,
        episodes=episodes, progress=False,
    )  # fmt: skip
    best = found.values[found.best]
    controls, factors = best["control"].clone().requires_grad_(), best["design"].clone().requires_grad_()
    task.scale = task.scales[-1]

    def outcome() -> wb.Outcome:
        losses, metrics = task.evaluate(controls[None], factors)
        return wb.Outcome(losses.sum(), inequality={"metric": metrics.sum() - task.limit})

    _, unknowns = task.problem(controls, factors)
    ends = len(task.episodes) + sized(iterations, 1)
    for own in last:
        try:
            wb.minimize(outcome, unknowns, own, iterations=max(1, ends - len(task.episodes)), progress=False)
            break
        except wb.optimize.RolloutError as fault:  # the unknowns have the best values before it
            print(f"    {task.name}, seed {seed}: {fault}", file=sys.stderr)
    return _result(task, controls.detach(), factors.detach(), begun)


def by_evolution(task: Task, seed: int, episodes: int, strategy: str) -> dict:
    """Optimise controls and design by an evolution strategy."""
    controls, factors, task.episodes = task.start(seed).requires_grad_(), task.hand.rest.requires_grad_(), []
    task.scale = task.scales[-1]
    begun = time.perf_counter()
    if strategy == "CMA-ES":
        loss, unknowns = task.problem(controls, factors)
        method = wb.methods.CMA(0.25, population=20, seed=seed)
        wb.minimize(loss, unknowns, method, iterations=max(1, episodes // 20), progress=False)
        return _result(task, controls.detach(), factors.detach(), begun)
    x = one_plus_one(task, torch.cat([controls.flatten(), factors]).detach().numpy(), seed, episodes)
    found = torch.as_tensor(x).split([controls.numel(), factors.numel()])
    return _result(task, found[0].reshape(task.shape), found[1], begun)


def one_plus_one(task: Task, x: np.ndarray, seed: int, episodes: int) -> np.ndarray:
    """Minimise by the (1+1)-ES with the one-fifth success rule (Rechenberg 1973; Auger 2009) within the bounds."""
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


METHODS: dict[str, Callable[[Task, int, int], dict]] = {
    "control": lambda task, seed, _: by_gradient(task, seed, designed=False),
    "control and design": lambda task, seed, _: by_gradient(task, seed, designed=True),
    "several starts": by_search,
    "CMA-ES": lambda task, seed, episodes: by_evolution(task, seed, episodes, "CMA-ES"),
    "(1+1)-ES": lambda task, seed, episodes: by_evolution(task, seed, episodes, "(1+1)-ES"),
}
"""What finds control and design from a seed, the last three with a number of episodes."""
PARTS = {"before": "control", "after": "several starts"}
"""Stored results, and what finds them."""


def episodes_to(task: Task, run: dict, loss: float) -> int | None:
    """Number of episodes until a run has a loss of at most `loss`; all episodes if it had several contact scales."""
    if run["loss"] > loss:
        return None
    return len(run["curve"]) if len(task.scales) > 1 else 1 + int(np.argmax(np.array(run["curve"]) <= loss))


def table(task: Task, results: dict[str, list[dict]]) -> None:
    """Print, for each seed, the episodes until each other method is as good as CMA-ES is in the end."""
    ends = {run["seed"]: run for run in results.get("CMA-ES", [])}
    for label, runs in results.items():
        own = [(episodes_to(task, run, ends[run["seed"]]["loss"]), run) for run in runs if run["seed"] in ends]
        if own and label != "CMA-ES":
            counts = ", ".join("-" if k is None else f"{k} of {ends[run['seed']]['episodes']}" for k, run in own)
            print(f"{task.name}, {label}: as good as CMA-ES in the end after {counts} episodes")


def figure(task: Task, results: dict[str, list[dict]]) -> None:
    """Draw the best loss so far over episodes, as mean and range over the seeds."""
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


def keep(task: Task, part: str, runs: list[dict]) -> None:
    """Store the run with the lowest loss."""
    best = min(runs, key=lambda run: run["loss"])
    names = "controls", "factors", "seed", "loss", "metric", "episodes"
    refined.keep(f"diffhand_{task.name}_{part}", **{name: torch.tensor(best[name]) for name in names})


def strips(name: str) -> None:
    """Draw the stored runs of a task before and after the design."""
    task = TASKS[name]()
    for part in PARTS:
        found = {key: value.double() for key, value in refined.kept(f"diffhand_{name}_{part}").items()}
        how = f"{'control alone' if part == 'before' else 'control and design'}, seed {found['seed']:.0f}"
        strip(task, found["controls"][: task.intervals], found["factors"], how, HERE / f"diffhand_{name}_{part}.png")


def refine(name: str) -> None:
    """Play the stored run of several starts again, and with Flip Box the result of `diffhand_resolved`.

    The measure is how much the metric falls from its value without control, after the first control interval; if the
    metric is a mean, from the mean without control.
    """
    stored = {"several starts": f"diffhand_{name}_after"} | (
        {"several resolutions": "diffhand_flip"} if name == "flip" else {}
    )

    def play(how: refined.Refinement, file: str) -> float:
        task, found = TASKS[name](points=round(how.cells**-2), steps=how.steps), refined.kept(file)
        controls, factors = found["controls"][: task.intervals].double()[None], found["factors"].double()
        rest, metric = (task.course(own, factors)[2][0] for own in (torch.zeros_like(controls), controls))
        return float(rest.mean() - metric.mean() if task.mean else rest[0] - metric[-1])

    plays = {f"{name}, {label}": functools.partial(play, file=file) for label, file in stored.items()}
    refined.table(plays, 0.5, TASKS[name]().unit)


def main() -> None:
    """Run the named tasks, or all tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"{', '.join(TASKS)}; all without a name")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=", ".join(METHODS))
    parser.add_argument("--seeds", type=int, nargs="*", default=sized([0, 1, 2, 3, 4], [0]))
    parser.add_argument("--episodes", type=int, default=sized(900, 40), help="of the last three methods")
    parser.add_argument("--json", type=Path, help="results; what is there already is kept")
    parser.add_argument("--iterations", type=int, help="most of L-BFGS-B from one start; as in the paper without it")
    parser.add_argument("--starts", type=int, help="number of several starts; six on Assemble and eight without it")
    parser.add_argument("--integrator", help="of wb.Articulated, such as bdf1; its default without it")
    parser.add_argument("--strips", action="store_true", help="draw the stored results")
    refined.option(parser)
    options = parser.parse_args()
    if options.refine or options.strips:
        for name in options.tasks or TASKS:
            (refine if options.refine else strips)(name)
        return
    kept = options.json is not None and options.json.exists()
    found: dict[str, dict[str, list[dict]]] = json.loads(options.json.read_text()) if kept else {}
    for name in options.tasks or TASKS:
        task, results = TASKS[name](integrator=options.integrator), found.setdefault(name, {})
        task.iterations = min(task.iterations, options.iterations or task.iterations)
        task.starts = options.starts or task.starts
        for seed in options.seeds:
            for label in options.methods:
                result = METHODS[label](task, seed, options.episodes)
                results.setdefault(label, []).append({"seed": seed, **result})
                print(
                    f"{name}, {label}, seed {seed}: loss {result['loss']:.4g}, {result['metric']:.3g} {task.unit}, "
                    f"{result['episodes']} episodes, {result['seconds']:.0f} s, "
                    f"design {np.round(result['factors'], 2)}",
                    flush=True,
                )
                if options.json:
                    options.json.write_text(json.dumps(found))
        table(task, results)
        if options.integrator:
            continue
        figure(task, results)
        for part, label in PARTS.items():
            if label in results:
                keep(task, part, results[label])


if __name__ == "__main__":
    main()
