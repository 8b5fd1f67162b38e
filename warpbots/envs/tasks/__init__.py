"""Tasks with fixed versions: the numbers in a version never change; a change makes a new version.

A task is a function of the number of worlds that returns a simulation and the rules of an episode.
"""

from collections.abc import Callable, Mapping
from typing import Any

from warpbots.envs.episode import Episode
from warpbots.envs.tasks.ant import ant
from warpbots.envs.tasks.finger_reach import finger_reach
from warpbots.envs.tasks.fish import fish
from warpbots.envs.tasks.gripper import gripper
from warpbots.envs.tasks.soft_quadruped import soft_quadruped
from warpbots.envs.tasks.walker_2d import walker_2d
from warpbots.simulation import Simulation

__all__ = ["TASKS"]

TASKS: Mapping[str, Callable[[int], tuple[Simulation[Any], Episode]]] = {
    "Walker2D-v0": walker_2d,
    "SoftQuadruped-v0": soft_quadruped,
    "FingerReach-v0": finger_reach,
    "Gripper-v0": gripper,
    "Fish-v0": fish,
    "Ant-v0": ant,
}
"""The tasks by name; Gymnasium knows them as ``warpbots/Walker2D-v0`` and so on."""
