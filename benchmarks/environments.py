"""Steps per second of the tasks of `warpbots.envs`, beside MuJoCo's ant, gym-softrobot and EvoGym.

    python benchmarks/environments.py [--rounds 5] [--worlds 1 8 32] [--steps 100] [--tasks Ant-v0]

Each round times every environment once, with random actions and automatic resets. Seconds are processor time, and the
best round counts, so that other programs on the machine matter less. Peers that are not installed are left out, with a
line: ``pip install "gymnasium[mujoco]" imageio gym-softrobot evogym``.
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable

import gymnasium
import numpy as np

import warpbots as wb

PEERS = {"Ant-v5": "mujoco", "SoftPendulum-v0": "gym_softrobot", "Walker-v0": "evogym.envs"}
"""Environments of others, and the packages that they need."""

BODY = {"Walker-v0": {"body": np.array([[3, 3, 3, 3, 3], [3, 3, 3, 3, 3], [4, 4, 0, 4, 4], [4, 4, 0, 4, 4]])}}
"""The robot that EvoGym asks for: a back of voxels that grow sideways, two legs of voxels that grow upwards."""


def stepping(env: gymnasium.vector.VectorEnv, steps: int) -> Callable[[], float]:
    """A function that takes steps, and returns their processor time [s]."""
    env.reset(seed=0)
    env.action_space.seed(0)
    table = [env.action_space.sample() for _ in range(steps)]
    for _ in range(2):  # the first step compiles, the second captures
        env.step(table[0])

    def run() -> float:
        begun = time.process_time()
        for actions in table:
            env.step(actions)
        return time.process_time() - begun

    return run


def environments(tasks: list[str], worlds: list[int], steps: int) -> dict[tuple[str, int], Callable[[], float]]:
    """A timed function for each environment and number of worlds."""
    found = {}
    for name in tasks:
        for count in worlds:
            found[name, count] = stepping(wb.envs.SimulationVectorEnv(*wb.envs.TASKS[name](count)), steps)
    for name, package in PEERS.items():
        if importlib.util.find_spec(package.partition(".")[0]) is None:
            print(f"{name} is left out: {package} is not installed")
            continue
        try:
            importlib.import_module(package)
            for count in worlds:
                found[name, count] = stepping(
                    gymnasium.make_vec(name, count, vectorization_mode="sync", **BODY.get(name, {})), steps
                )
        except Exception as error:  # a peer may not work with the installed versions
            print(f"{name} is left out: {type(error).__name__}: {error}")
    return found


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--worlds", type=int, nargs="+", default=[1, 8, 32])
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--tasks", nargs="+", default=list(wb.envs.TASKS), choices=list(wb.envs.TASKS))
    chosen = arguments.parse_args()
    warnings.simplefilter("ignore", wb.LostWorldWarning)
    timed = environments(chosen.tasks, chosen.worlds, chosen.steps)
    best = dict.fromkeys(timed, float("inf"))
    for _ in range(chosen.rounds):
        for key, run in timed.items():
            best[key] = min(best[key], run())
    print("| environment | " + " | ".join(f"{n} world{'s' * (n > 1)} [steps/s]" for n in chosen.worlds) + " |")
    print("|---" * (1 + len(chosen.worlds)) + "|")
    for name in dict.fromkeys(name for name, _ in timed):
        cells = [f"{chosen.steps * n / best[name, n]:,.0f}" if (name, n) in best else "-" for n in chosen.worlds]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
