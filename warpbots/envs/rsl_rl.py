"""The vector environment of RSL-RL around a simulation (``pip install rsl-rl-lib``)."""

from typing import Any

import torch
from gymnasium.vector import AutoresetMode
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from warpbots.envs.vector_env import SimulationVectorEnv
from warpbots.scene.field_types import fitted

__all__ = ["RslRlEnv"]


class RslRlEnv(VecEnv):
    """A `SimulationVectorEnv` in the form that RSL-RL learns with; the observation is the group ``policy``.

    Attributes:
        environment: The environment.
        num_envs: Number of worlds.
        num_actions: Number of control channels.
        max_episode_length: Number of control intervals of an episode.
        device: Device of the simulation.
        cfg: Settings that RSL-RL stores with a policy: the name of the scene.
    """

    def __init__(self, environment: SimulationVectorEnv, seed: int | None = None):
        """Wrap an environment, and begin the first episodes, since RSL-RL resets none.

        Args:
            environment: The environment, with tensors and automatic resets in the same step.
            seed: Seed of the worlds; see `SimulationVectorEnv.reset`.

        Raises:
            ValueError: The environment gives NumPy arrays, or resets in another way.
        """
        environment = fitted(environment, SimulationVectorEnv, "RslRlEnv: environment")
        if environment.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP or environment.gives_numpy:
            raise ValueError(
                "RslRlEnv: environment must give tensors and reset in the same step, which is the default of "
                "SimulationVectorEnv"
            )
        self.environment, self.num_envs = environment, environment.num_envs
        self.num_actions = environment.simulation.channels
        self.max_episode_length, self.device = environment.episode.steps, environment.intervals.device
        self.cfg: dict | object = {"scene": environment.simulation.scene.name}
        self._seen, _ = environment.reset(seed=seed)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Number of control intervals since the start of the episode of each world, shape (worlds,), int."""
        return self.environment.intervals

    @episode_length_buf.setter
    def episode_length_buf(self, intervals: torch.Tensor) -> None:
        own = self.environment.intervals
        if intervals.shape != own.shape:
            raise ValueError(
                f"RslRlEnv: episode_length_buf must have shape {tuple(own.shape)}, one number for each world, got "
                f"{tuple(intervals.shape)}"
            )
        self.environment.intervals = intervals.to(own)

    def get_observations(self) -> TensorDict:
        """The observation of all worlds."""
        return TensorDict({"policy": self._seen}, [self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """One control interval.

        Args:
            actions: Control signals, shape (worlds, channels). Policies of RSL-RL are not bounded, so actions
                beyond [-1, 1] are clipped here.

        Returns:
            Observation; reward and whether the episode of each world is over, each of shape (worlds,); and extras:
            ``time_outs``, a mask of truncated worlds, and ``log``, means of the terms of the reward.
        """
        self._seen, reward, terminated, truncated, infos = self.environment.step(actions.clamp(-1.0, 1.0))
        terms = infos.get("reward_terms", {})
        log = {f"reward/{name}": value.mean() for name, value in terms.items() if not name.startswith("_")}
        return self.get_observations(), reward, terminated | truncated, {"time_outs": truncated, "log": log}
