"""DiffHand's tasks by reinforcement learning with a particle swarm of designs: the last row of table IV.

    python benchmarks/papers/diffhand_learning.py [reach] [flip] [rotate] [assemble] [--method sac] [--seeds N ...]
        [--episodes 900] [--fixed] [--json FILE]

The paper's row is SAC with particle swarm optimisation after Luck et al. (2019), whose swarm moves by the value that
the critic predicts for a design. Here PPO or SAC (Stable-Baselines3) learns a policy that also sees the design, and
each world is a particle: it plays an episode with its design, and the swarm (Kennedy & Eberhart 1995, constricted after
Clerc & Kennedy 2002) moves by the losses of these episodes. Rewards are the negative losses of single control
intervals, so that a return is the negative loss of an episode in `diffhand_compare.py`. With ``--fixed`` the hand keeps
the shape of the paper. Loss and metric are measured with the best design of the swarm, and with a policy without
randomness.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_tasks import TASKS, Seen, Task
from fast import sized

PARTICLES = sized(20, 2)
"""Number of worlds, each with a particle; CMA-ES has populations of 20, too."""


class Swarm:
    """Particle swarm optimisation within bounds.

    Attributes:
        place: Scale factors of each particle, shape (particles, n).
        best: Scale factors with the lowest loss so far, shape (n,).
        lowest: This loss.
    """

    def __init__(self, rest: np.ndarray, upper: np.ndarray, moves: bool, seed: int):
        """Scatter the particles around the shape of the paper, as the starts of the search with several starts."""
        self._rng, self._upper, self._moves = np.random.default_rng(seed), upper, moves
        spread = self._rng.uniform(-0.35, 0.35, (PARTICLES, len(rest))) if moves else np.zeros((PARTICLES, len(rest)))
        spread[0] = 0.0
        self.place = (rest * np.exp(spread)).clip(0.5, upper)
        self._speed = np.zeros_like(self.place)
        self._own, self._lowest = self.place.copy(), np.full(PARTICLES, np.inf)
        self.best, self.lowest = self.place[0].copy(), np.inf

    def move(self, losses: np.ndarray) -> None:
        """Note the losses of the particles, and move them."""
        better = losses < self._lowest
        self._own[better], self._lowest[better] = self.place[better], losses[better]
        self.best, self.lowest = self._own[self._lowest.argmin()].copy(), self._lowest.min()
        if not self._moves:
            return
        own, all_ = self._rng.uniform(0.0, 2.05, (2, *self.place.shape))
        pull = own * (self._own - self.place) + all_ * (self.best - self.place)
        self._speed = 0.7298 * (self._speed + pull)
        moved = self.place + self._speed
        self.place = moved.clip(0.5, self._upper)
        self._speed[moved != self.place] = 0.0


class Hands(VecEnv):
    """Episodes of a task in all worlds at once, with the designs of a swarm.

    Attributes:
        losses: Loss of each episode so far.
    """

    def __init__(self, task: Task, swarm: Swarm):
        """Begin the first episodes."""
        self.task, self.swarm, self.losses = task, swarm, []
        self._begin()
        seen = self._observe()
        observations = spaces.Box(-np.inf, np.inf, seen.shape[1:], np.float32)
        super().__init__(PARTICLES, observations, spaces.Box(-1.0, 1.0, (task.sim.channels,), np.float32))

    def reset(self) -> np.ndarray:
        """Begin new episodes."""
        self._begin()
        return self._observe()

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions, which are controls before tanh."""
        self._actions = torch.as_tensor(actions, dtype=torch.float64)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One control interval; after the last one of an episode the swarm moves, and the next episode begins."""
        control = torch.tanh(self._actions)
        with torch.no_grad():
            self._state = self.task.sim.step(self._state, control, **self._changed)
        self._sensed = self.task.sim.sense(self._state, **self._changed)
        one = Seen(
            torch.tensor([self._interval]), self.task.intervals, control[:, None], self.task.sim,
            self._sensed.rotation[:, None], self._sensed.position[:, None], self._state.q[:, None],
        )  # fmt: skip
        loss = self.task.cost(one, self._ends)[0][:, 0].numpy()
        self._loss += loss
        self._interval += 1
        seen, over = self._observe(), self._interval == self.task.intervals
        infos: list[dict[str, Any]] = [{} for _ in loss]
        if over:
            infos = [{"terminal_observation": row} for row in seen]  # the age is seen: the episode is over for good
            self.losses += self._loss.tolist()
            self.swarm.move(self._loss)
            self._begin()
            seen = self._observe()
        return seen, -loss.astype(np.float32), np.full(len(loss), over), infos

    def _begin(self) -> None:
        sim, factors = self.task.sim, torch.as_tensor(self.swarm.place)
        self._changed, self._ends = self.task.designed(factors, len(factors))
        self._state, self._interval, self._loss = sim.state(), 0, np.zeros(len(factors))
        self._sensed = sim.sense(self._state, **self._changed)

    def _observe(self) -> np.ndarray:
        """Joint coordinates and velocities, end effectors [cm], share of the episode, and design."""
        robot, sensed = self.task.sim.model.robot, self._sensed
        points = []
        for body, at in self._ends:
            k = robot.body(body)
            points.append(sensed.position[:, k] + (sensed.rotation[:, k] @ at.reshape(-1, 3, 1))[..., 0])
        age = torch.full((len(self._loss), 1), self._interval / self.task.intervals)
        place = torch.as_tensor(self.swarm.place)
        return (
            torch.cat([self._state.q, self._state.qd, *(100.0 * p for p in points), age, place], dim=1).float().numpy()
        )

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, once for each world."""
        return [getattr(self, attr_name, None)] * PARTICLES

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Worlds have no attributes of their own."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Worlds have no methods of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No world is wrapped."""
        return [False] * PARTICLES


def by_ppo(task: Task, env: VecNormalize, seed: int) -> BaseAlgorithm:
    """PPO, which learns after an episode in all worlds."""
    return PPO(
        "MlpPolicy", env, learning_rate=1e-3, n_steps=task.intervals,
        batch_size=max(2, task.intervals * PARTICLES // 4),
        n_epochs=10, gamma=0.99, gae_lambda=0.95, seed=seed, device="cpu",
        policy_kwargs={"net_arch": [64, 64], "log_std_init": -0.5},
    )  # fmt: skip


def by_sac(task: Task, env: VecNormalize, seed: int) -> BaseAlgorithm:
    """SAC, which takes a step of its networks for each sample, after two episodes of random actions in each world."""
    return SAC(
        "MlpPolicy", env, learning_rate=1e-3, learning_starts=2 * task.intervals * PARTICLES, batch_size=256,
        train_freq=1, gradient_steps=PARTICLES, gamma=0.99, seed=seed, device="cpu",
        policy_kwargs={"net_arch": [64, 64]},
    )  # fmt: skip


METHODS = {"ppo": by_ppo, "sac": by_sac}


def learn(task: Task, method: str, seed: int, episodes: int, moves: bool) -> dict[str, Any]:
    """Learn a policy and a design; loss and metric of the policy without randomness, and the curve."""
    task.scale = task.scales[-1]
    begun = time.process_time()
    hands = Hands(task, Swarm(task.hand.rest.numpy(), task.upper, moves, seed))
    env = VecNormalize(hands, gamma=0.99)
    model = METHODS[method](task, env, seed)
    model.learn(episodes * task.intervals)
    found = list(hands.losses)
    hands.swarm = Swarm(hands.swarm.best, task.upper, False, seed)
    seen, controls = hands.reset(), []
    for _ in range(task.intervals):
        action, _ = model.predict(env.normalize_obs(seen), deterministic=True)
        controls.append(torch.as_tensor(action, dtype=torch.float64))
        hands.step_async(action)
        seen, *_ = hands.step_wait()
    with torch.no_grad():
        losses, metrics = task.evaluate(torch.stack(controls, dim=1), torch.as_tensor(hands.swarm.best))
    return {
        "loss": float(losses[0]), "metric": float(metrics[0]), "episodes": len(found),
        "seconds": time.process_time() - begun, "factors": hands.swarm.best.tolist(),
        "curve": np.minimum.accumulate(found).tolist(),
    }  # fmt: skip


def main() -> None:
    """Run the named tasks, or all tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"{', '.join(TASKS)}; all without a name")
    parser.add_argument("--method", choices=[*METHODS], default="ppo", help="(%(default)s)")
    parser.add_argument("--seeds", type=int, nargs="*", default=sized([0, 1, 2, 3, 4], [0]))
    parser.add_argument("--episodes", type=int, default=sized(900, 4))
    parser.add_argument("--fixed", action="store_true", help="the design stays as it is")
    parser.add_argument("--json", type=Path, help="where results go")
    options = parser.parse_args()
    torch.set_num_threads(1)  # operations are small here: a second thread costs more than it saves
    found: dict[str, list[dict[str, Any]]] = {}
    for name in options.tasks or TASKS:
        task = TASKS[name](worlds=PARTICLES)
        for seed in options.seeds:
            result = learn(task, options.method, seed, options.episodes, not options.fixed)
            found.setdefault(name, []).append({"seed": seed, **result})
            print(
                f"{name}, {options.method}, seed {seed}: loss {result['loss']:.4g}, "
                f"{result['metric']:.3g} {task.unit}, best episode {result['curve'][-1]:.4g}, "
                f"{result['episodes']} episodes, {result['seconds']:.0f} s, "
                f"design {np.round(result['factors'], 2)}",
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
