"""Soft multi-body paper, section 6.3: PPO and SAC learn to lift with the gripper and to swim with the fish.

    python benchmarks/papers/softbody_learning.py [gripper] [fish] [--methods ppo sac] [--seeds N] [--episodes 500]
        [--json FILE]

Scenes, steps and losses are those of `softbody_gripper.py` and `softbody_fish.py`. The reward of a control interval is
the decrease of the distance from the target, in per cent of the way. A return is therefore 100 (1 - loss / way).
Algorithms are from Stable-Baselines3, with the settings of `warpbots/Fish-v0` in `benchmarks/learning`, apart from the
noise (`OWN`). Episodes count over all worlds. After them, the policy without randomness plays one more.
"""

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "learning"))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import softbody_fish
import softbody_gripper
from fast import sized
from learn import learner
from softbody_grip import REACH
from softbody_strokes import NEAR

import warpbots as wb

SETTINGS = Path(__file__).resolve().parents[1] / "learning" / "fish.toml"
"""Of both algorithms."""
WORLDS = sized(4, 2)
"""Number of worlds, in which as many episodes run at once."""
OWN = {"use_sde": True, "gamma": 1.0}
"""Noise that depends on the state (gSDE, Raffin et al. 2022) and so is smooth in time; returns are not discounted."""


class Task(NamedTuple):
    """A task of the paper.

    Attributes:
        sim: The simulation, with a world for each episode at once.
        observers: What the policy sees, beside the time.
        centre: Function from a state to the point that has to arrive [m], shape (worlds, 3).
        way: From the start of this point to its target [m], shape (3,).
        steps: Control intervals of an episode.
        near: Distance below which the point has arrived [m].
        flies: Whether the last three actions are velocities of the drone.
    """

    sim: wb.Simulation
    observers: tuple[Any, ...]
    centre: Callable[[Any], torch.Tensor]
    way: tuple[float, float, float]
    steps: int
    near: float
    flies: bool


class Flight(VecEnvWrapper):
    """Sums the last three actions, velocities of the drone, to its positions, as `softbody_gripper.Grip.controls`.

    Positions stay within the reach of the servos.
    """

    def reset(self) -> np.ndarray:
        """Begin new episodes with the drone at its start."""
        self._place = np.zeros((self.num_envs, 3), np.float32)
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        """Pass on activations and positions."""
        way = softbody_gripper.FASTEST * softbody_gripper.STEP / REACH
        self._place = (self._place + way * actions[:, softbody_gripper.ARMS :]).clip(-1.0, 1.0)
        self.venv.step_async(np.concatenate([actions[:, : softbody_gripper.ARMS], self._place], axis=1))

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One control interval; the drone of an episode that begins is at its start."""
        seen, reward, over, infos = self.venv.step_wait()
        self._place[over] = 0.0
        return seen, reward, over, infos


def gripper() -> Task:
    """The ball rises by 0.3 m."""
    sim = softbody_gripper.simulation(worlds=WORLDS)
    seen = wb.observers.Joints(), wb.observers.Clusters(4), wb.observers.Centroid("load")
    return Task(
        sim, seen, lambda state: sim.center_of_mass(state, "load"),
        softbody_gripper.TARGET, softbody_gripper.STEPS, softbody_gripper.NEAR, True,
    )  # fmt: skip


def fish() -> Task:
    """The fish swims 15 cm ahead."""
    sim = softbody_fish.simulation(worlds=WORLDS)
    seen = wb.observers.Joints(), wb.observers.Clusters(5)
    near = NEAR * softbody_fish.WAY[0]
    return Task(sim, seen, sim.center_of_mass, softbody_fish.WAY, softbody_fish.STEPS, near, False)


TASKS = {"gripper": gripper, "fish": fish}


def environment(task: Task) -> Any:
    """The worlds of a task as an environment of Stable-Baselines3."""
    start = task.centre(task.sim.state())
    target, whole = start + torch.tensor(task.way).to(start), float(np.linalg.norm(task.way))
    duration = task.steps * task.sim.dt

    def away(state: Any) -> torch.Tensor:
        return (task.centre(state) - target).norm(dim=1)

    episode = wb.envs.Episode(
        task.observers,
        lambda moved: 100.0 / whole * (away(moved.before) - away(moved.after)),
        task.steps,
        terminated=lambda moved: moved.age > duration - 0.5 * task.sim.dt,  # only the end counts, and time is seen
        clock=2.0 * duration,
    )
    env: Any = wb.envs.StableBaselinesEnv(wb.envs.SimulationVectorEnv(task.sim, episode, numpy=True))
    return Flight(env) if task.flies else env


class Losses(BaseCallback):
    """Loss of every episode [m], and how many worlds were lost in a step that failed."""

    def __init__(self, way: float, episodes: int):
        super().__init__()
        self.way, self.episodes, self.found, self.lost = way, episodes, [], 0

    def _on_step(self) -> bool:
        ended = [info for info in self.locals["infos"] if "episode" in info]
        self.found += [self.way * (1.0 - info["episode"]["r"] / 100.0) for info in ended]
        self.lost += sum(info["lost"] for info in ended)
        if ended:
            last = np.array(self.found[-len(ended) :])
            print(f"    {len(self.found)}: {1e3 * last.mean():.1f}, best {1e3 * min(self.found):.1f} mm", flush=True)
        return len(self.found) < self.episodes


def rounds(method: str, steps: int) -> dict[str, int]:
    """Settings: an algorithm learns after each episode, and its noise stays one function of the state within it."""
    return {"n_steps": steps} if method == "ppo" else {"train_freq": steps, "gradient_steps": WORLDS * steps}


def learn(task: Task, method: str, seed: int, episodes: int) -> dict[str, Any]:
    """Learn a policy; return the losses of all episodes and the loss of the policy without randomness [m]."""
    own = tomllib.loads(SETTINGS.read_text())[method]
    own["options"] |= OWN | rounds(method, task.steps)
    begun, way = time.process_time(), float(np.linalg.norm(task.way))
    model, losses = learner(method, own, environment(task), seed), Losses(way, episodes)
    model.learn(2 * episodes * task.steps, callback=losses)
    env = model.get_vec_normalize_env()
    env.training, seen, over = False, env.reset(), np.zeros(WORLDS, bool)
    while not over[0]:
        seen, _, over, infos = env.step(model.predict(seen, deterministic=True)[0])
    arrived = np.flatnonzero(np.array(losses.found) < task.near)
    return {
        "method": method, "seed": seed, "curve": losses.found, "lost": losses.lost,
        "arrived": int(arrived[0]) + 1 if len(arrived) else None,
        "final": way * (1.0 - infos[0]["episode"]["r"] / 100.0), "seconds": time.process_time() - begun,
    }  # fmt: skip


def main() -> None:
    """Run the named tasks, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"{', '.join(TASKS)}; both without a name")
    parser.add_argument("--methods", nargs="*", default=["ppo", "sac"], help="ppo, sac")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=sized(500, 2), help="of every method (%(default)s)")
    parser.add_argument("--json", type=Path, help="where results go")
    options = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in options.tasks or TASKS:
        task = TASKS[name]()
        for method in options.methods:
            for seed in range(options.seeds):
                run = learn(task, method, seed, options.episodes)
                found.setdefault(name, []).append(run)
                curve = 1e3 * np.array(run["curve"])
                print(
                    f"{name}, {method}, seed {seed}: mean of the first ten {curve[:10].mean():.0f} mm, of the last ten "
                    f"{curve[-10:].mean():.0f} mm, best {curve.min():.1f} mm of {len(curve)} episodes, arrived in "
                    f"{run['arrived'] or '-'}; without randomness {1e3 * run['final']:.1f} mm; {run['lost']} lost, "
                    f"{run['seconds']:.0f} s",
                    flush=True,
                )
                if options.json:
                    options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
