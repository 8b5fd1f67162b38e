"""Learns a task by several methods, and writes how well the policy does after how many samples and CPU seconds.

    python benchmarks/learning/learn.py walker_2d.toml ppo --seed 0 --out curves
    python benchmarks/learning/learn.py --draw curves/gripper curves/fish --picture curves.png

Methods: ppo and sac of Stable-Baselines3, shac (short-horizon gradients with a critic, beside this file), and cma, an
evolution of linear policies whose population are the worlds. Settings are in the file. With `normalised`, observations
are divided by their running standard deviation, after their running mean was subtracted; shac always does this. At
evenly spaced numbers of samples the policy without randomness is judged in other worlds, for one episode each; this
takes no samples and its time is not counted.
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

METHODS = ("ppo", "sac", "shac", "cma")


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
    """A picture of the curves of folders, by samples and by seconds: thick the mean of the seeds, thin each seed."""
    import matplotlib.pyplot as plt

    size = (9, 0.4 + 2.6 * len(folders))
    figure, rows = plt.subplots(len(folders), 2, figsize=size, sharey="row", layout="constrained", squeeze=False)
    for folder, axes in zip(folders, rows, strict=True):
        for k, method in enumerate(METHODS):
            runs = []
            for file in sorted(folder.glob(f"{method}-*.csv")):
                with file.open() as text:
                    runs.append(np.array([[float(v) for v in row.values()] for row in csv.DictReader(text)]))
            for run in runs:
                axes[0].plot(run[:, 0] / 1000, run[:, 2], color=f"C{k}", alpha=0.35, linewidth=1)
                axes[1].plot(run[:, 1], run[:, 2], color=f"C{k}", alpha=0.35, linewidth=1)
            if runs:
                length = min(map(len, runs))
                mean = np.mean([run[:length] for run in runs], axis=0)
                label = f"{method.upper()} ({len(runs)} {'seed' if len(runs) == 1 else 'seeds'})"
                axes[0].plot(mean[:, 0] / 1000, mean[:, 2], color=f"C{k}", linewidth=2, label=label)
                axes[1].plot(mean[:, 1], mean[:, 2], color=f"C{k}", linewidth=2)
        axes[0].set(ylabel="return of an episode", title=folder.name.replace("_", " "))
        axes[0].legend(frameon=False, fontsize=8)
    rows[-1, 0].set_xlabel("samples [thousands]")
    rows[-1, 1].set_xlabel("CPU time [s]")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Read the command line, and learn or draw."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("settings", nargs="?", help="file of settings beside this file")
    arguments.add_argument("method", nargs="?", choices=METHODS)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, default=Path("curves"), help="folder of the curves")
    arguments.add_argument("--draw", type=Path, nargs="+", metavar="FOLDER", help="draw the curves of folders")
    arguments.add_argument("--picture", type=Path, default=Path("curves.png"), help="where the picture goes")
    chosen = arguments.parse_args()
    if chosen.draw is not None:
        return draw(chosen.draw, chosen.picture)
    if chosen.method is None:
        arguments.error("name settings and a method, or --draw FOLDER ...")
    settings = tomllib.loads((Path(__file__).parent / chosen.settings).read_text())
    own, task = settings[chosen.method], settings["task"]
    chosen.out.mkdir(parents=True, exist_ok=True)
    curve = Curve(settings, own["samples"], chosen.out / f"{chosen.method}-{chosen.seed}.csv")
    if chosen.method in ("ppo", "sac"):
        by_stable_baselines(chosen.method, own, task, chosen.seed, curve)
    else:
        {"shac": by_shac, "cma": by_cma}[chosen.method](own, task, chosen.seed, curve)


if __name__ == "__main__":
    main()
