"""The tasks as environments that Gymnasium makes by their names."""

import dataclasses
from collections.abc import Mapping

import gymnasium
from gymnasium.vector import AutoresetMode

from warpbots.envs.draws import Draw
from warpbots.envs.single_env import SimulationEnv
from warpbots.envs.tasks import TASKS
from warpbots.envs.vector_env import SimulationVectorEnv

__all__ = ["batch", "register", "single"]


def single(task: str, *, randomized: Mapping[str, Draw] | None = None, render_mode: str | None = None) -> SimulationEnv:
    """The environment of one world that ``gymnasium.make`` makes.

    Args:
        task: Name of the task, a key of `warpbots.envs.tasks.TASKS`.
        randomized: How parameters of the model are drawn for each episode, by name; None for the values of the model.
        render_mode: ``"rgb_array"``, or None if nothing is drawn.
    """
    simulation, episode = TASKS[task](1)
    return SimulationEnv(
        simulation,
        dataclasses.replace(episode, parameters={} if randomized is None else randomized),
        render_mode=render_mode,
    )


def batch(
    task: str,
    num_envs: int = 1,
    *,
    randomized: Mapping[str, Draw] | None = None,
    autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    differentiable: bool = False,
    numpy: bool = False,
    render_mode: str | None = None,
) -> SimulationVectorEnv:
    """The vector environment that ``gymnasium.make_vec(..., vectorization_mode="vector_entry_point")`` makes.

    Args:
        task: Name of the task, a key of `warpbots.envs.tasks.TASKS`.
        num_envs: Number of worlds.
        randomized: How parameters of the model are drawn for each episode, by name; None for the values of the model.
        autoreset_mode: See `SimulationVectorEnv`.
        differentiable: See `SimulationVectorEnv`.
        numpy: See `SimulationVectorEnv`.
        render_mode: ``"rgb_array"``, or None if nothing is drawn.
    """
    simulation, episode = TASKS[task](num_envs)
    return SimulationVectorEnv(
        simulation,
        dataclasses.replace(episode, parameters={} if randomized is None else randomized),
        autoreset_mode=autoreset_mode,
        differentiable=differentiable,
        numpy=numpy,
        render_mode=render_mode,
    )


def register() -> None:
    """Make the tasks known to Gymnasium, as ``warpbots/Walker2D-v0`` and so on."""
    for name in TASKS:
        gymnasium.register(
            f"warpbots/{name}",
            entry_point="warpbots.envs.registered:single",
            vector_entry_point="warpbots.envs.registered:batch",
            kwargs={"task": name},
        )
