"""Learns a task by several methods, and writes how well the policy does after how many samples and CPU seconds.

    python benchmarks/learning/learn.py benchmarks/learning/walker_2d.toml ppo --seed 0 --out curves
    python benchmarks/learning/learn.py --draw curves/gripper curves/fish --picture curves.png

Methods: ppo and sac of Stable-Baselines3, shac (short-horizon gradients with a critic, beside this file), and cma, an
evolution of linear policies whose population are the worlds. Settings are in the file. With `normalised`, observations
are divided by their running standard deviation, after their running mean was subtracted; shac always does this. At
evenly spaced numbers of samples the policy without randomness is judged in other worlds, for one episode each; this
takes no samples and its time is not counted.

With WARPBOTS_THREADS=1 in the environment all worlds stay on one core: handing them to threads costs these small tasks
up to twice the CPU time.
"""

import argparse
import copy
import csv
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shac import Scale
from shac import learn as learn_by_shac

import warpbots as wb

METHODS = {
    "ppo": ("PPO", "#0072b2"), "sac": ("SAC", "#d55e00"), "shac": ("SHAC", "#009e73"), "cma": ("CMA-ES", "#8f5fbf")
}  # fmt: skip
"""The names and colours of the methods in pictures."""


class Curve:
    """Returns of a policy by samples and by CPU time [s], written to a file row by row."""

    def __init__(self, settings: dict[str, Any], samples: int, path: Path):
        """Prepare other worlds, in which policies are judged.

        Args:
            settings: The settings.
            samples: Number of samples of the whole run.
            path: The file.
        """
        self._env = environment(settings["task"], settings["judged_worlds"])
        self._every, self._next, self._path = samples // settings["evaluations"], 0, path
        self._begun, self._lost = time.process_time(), 0.0
        path.write_text("samples,seconds,return\n")

    def note(self, samples: int, policy: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Judge a policy if it is time."""
        if samples < self._next:
            return
        now = time.process_time()
        seconds = now - self._begun - self._lost
        with torch.no_grad():
            seen, _ = self._env.reset(seed=1000)
            total, going = torch.zeros(self._env.num_envs), torch.ones(self._env.num_envs, dtype=torch.bool)
            for _ in range(self._env.episode.steps):
                seen, reward, terminated, truncated, _ = self._env.step(policy(seen).clamp(-1.0, 1.0))
                total += torch.where(going, reward, 0.0)
                going &= ~(terminated | truncated)
        with self._path.open("a") as file:
            file.write(f"{samples},{seconds:.1f},{total.mean().item():.4f}\n")
        print(f"{self._path.stem}: {samples} samples, {seconds:.0f} s, return {total.mean().item():.3f}", flush=True)
        self._next += self._every
        self._lost += time.process_time() - now


def environment(task: str, worlds: int, **options: Any) -> wb.envs.SimulationVectorEnv:
    """A vector environment of a task."""
    return wb.envs.SimulationVectorEnv(*wb.envs.TASKS[task](worlds), **options)


def learner(method: str, own: dict[str, Any], env: Any, seed: int) -> Any:
    """An algorithm of Stable-Baselines3 on an environment, which `own` may normalise."""
    import stable_baselines3
    from stable_baselines3.common.vec_env import VecNormalize

    if own["normalised"]:
        env = VecNormalize(env, norm_reward=False)
    algorithm = getattr(stable_baselines3, method.upper())
    return algorithm("MlpPolicy", env, seed=seed, device="cpu", policy_kwargs=own["policy"], **own["options"])


def by_stable_baselines(method: str, own: dict[str, Any], task: str, seed: int, curve: Curve) -> None:
    """Learn by an algorithm of Stable-Baselines3."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Judged(BaseCallback):
        def _on_step(self) -> bool:
            curve.note(self.num_timesteps, self._policy)
            return True

        def _policy(self, seen: torch.Tensor) -> torch.Tensor:
            scale = self.model.get_vec_normalize_env()
            observation = scale.normalize_obs(seen.numpy()) if scale else seen.numpy()
            return torch.as_tensor(self.model.predict(observation, deterministic=True)[0])

    env = wb.envs.StableBaselinesEnv(environment(task, own["worlds"], numpy=True))
    learner(method, own, env, seed).learn(own["samples"], callback=Judged())


def by_shac(own: dict[str, Any], task: str, seed: int, curve: Curve) -> None:
    """Learn by short-horizon gradients."""
    learn_by_shac(environment(task, own["worlds"], differentiable=True), own, seed, curve.note)


def by_cma(own: dict[str, Any], task: str, seed: int, curve: Curve) -> None:
    """Learn by an evolution of linear policies, each in a world of its own; the centre of the population is judged."""
    import cma

    env = environment(task, own["worlds"])
    features, channels = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    size = (features + 1) * channels
    search = cma.CMAEvolutionStrategy(
        np.zeros(size), own["deviation"], {"popsize": env.num_envs, "seed": seed + 1, "verbose": -9}
    )

    scale = Scale(features)

    def acting(weights: np.ndarray) -> Callable[[torch.Tensor], torch.Tensor]:
        table = torch.as_tensor(weights, dtype=torch.float32).view(-1, features + 1, channels)
        scaled = copy.deepcopy(scale) if own["normalised"] else lambda seen: seen
        return lambda seen: torch.tanh(torch.einsum("wf,wfc->wc", scaled(seen), table[:, :-1]) + table[:, -1])

    samples = 0
    while samples < own["samples"]:
        curve.note(samples, lambda seen: acting(np.tile(search.mean, (len(seen), 1)))(seen))
        found = search.ask()
        policy, total = acting(np.stack(found)), torch.zeros(env.num_envs)
        seen, _ = env.reset(seed=seed + samples)
        going = torch.ones(env.num_envs, dtype=torch.bool)
        for _ in range(env.episode.steps):
            scale.note(seen)
            seen, reward, terminated, *_ = env.step(policy(seen))
            total += torch.where(going, reward, 0.0)
            going &= ~terminated
            samples += env.num_envs
        search.tell(found, (-total).tolist())
    curve.note(samples, lambda seen: acting(np.tile(search.mean, (len(seen), 1)))(seen))


def draw(folders: list[Path], path: Path) -> None:
    """A picture of the curves of folders, by samples: thick the median of the seeds, thin each seed."""
    import matplotlib.pyplot as plt

    columns = min(2, len(folders))
    lines = -(-len(folders) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(9, 0.7 + 2.7 * lines), layout="constrained", squeeze=False)
    for axes in panels.flat[len(folders) :]:
        axes.set_axis_off()
    drawn = {}
    for folder, axes in zip(folders, panels.flat, strict=False):
        for method, (name, color) in METHODS.items():
            runs = []
            for file in sorted(folder.glob(f"{method}-*.csv")):
                with file.open() as text:
                    runs.append(np.array([[float(v) for v in row.values()] for row in csv.DictReader(text)]))
            for run in runs:
                axes.plot(run[:, 0] / 1000, run[:, 2], color=color, alpha=0.35, linewidth=0.8)
            if runs:
                length = min(map(len, runs))
                median = np.median([run[:length] for run in runs], axis=0)
                (drawn[name],) = axes.plot(median[:, 0] / 1000, median[:, 2], color=color, linewidth=2.2)
        axes.set(ylabel="return of an episode", title=folder.name.replace("_", " "))
    for axes in panels.flat[max(0, len(folders) - columns) : len(folders)]:
        axes.set_xlabel("samples [thousands]")
    figure.legend(drawn.values(), drawn.keys(), loc="outside upper center", ncols=len(drawn), frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Read the command line, and learn or draw."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("settings", nargs="?", help="file of settings, from where you stand or beside this file")
    arguments.add_argument("method", nargs="?", choices=list(METHODS))
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, default=Path("curves"), help="folder of the curves")
    arguments.add_argument("--draw", type=Path, nargs="+", metavar="FOLDER", help="draw the curves of folders")
    arguments.add_argument("--picture", type=Path, default=Path("curves.png"), help="where the picture goes")
    chosen = arguments.parse_args()
    if chosen.draw is not None:
        if empty := [str(folder) for folder in chosen.draw if not [*folder.glob("*-*.csv")]]:
            arguments.error(f"there are no curves, METHOD-SEED.csv, in {', '.join(empty)}")
        return draw(chosen.draw, chosen.picture)
    if chosen.method is None:
        arguments.error("name settings and a method, or --draw FOLDER ...")
    file, beside = Path(chosen.settings), Path(__file__).parent / chosen.settings
    if not file.is_file() and not beside.is_file():
        known = ", ".join(sorted(path.name for path in Path(__file__).parent.glob("*.toml")))
        arguments.error(f"there is no file {chosen.settings}, from {Path.cwd()} or beside this file, which has {known}")
    settings = tomllib.loads((file if file.is_file() else beside).read_text())
    if chosen.method not in settings:
        arguments.error(f"{chosen.settings} has no settings of {chosen.method}, which is a section [{chosen.method}]")
    own, task = settings[chosen.method], settings["task"]
    chosen.out.mkdir(parents=True, exist_ok=True)
    curve = Curve(settings, own["samples"], chosen.out / f"{chosen.method}-{chosen.seed}.csv")
    if chosen.method in ("ppo", "sac"):
        by_stable_baselines(chosen.method, own, task, chosen.seed, curve)
    else:
        {"shac": by_shac, "cma": by_cma}[chosen.method](own, task, chosen.seed, curve)


if __name__ == "__main__":
    main()
