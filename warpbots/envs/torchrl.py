"""The environment of TorchRL around a simulation (``pip install torchrl``)."""

from typing import Any

import torch
from gymnasium.vector import AutoresetMode
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Composite, Unbounded
from torchrl.envs import EnvBase

from warpbots.envs.vector_env import SimulationVectorEnv
from warpbots.scene.field_types import fitted

__all__ = ["TorchRLEnv"]


class TorchRLEnv(EnvBase):
    """A `SimulationVectorEnv` in the form of TorchRL, with the worlds as batch; TorchRL resets single worlds by a mask.

    Attributes:
        environment: The environment.
    """

    def __init__(self, environment: SimulationVectorEnv):
        """Wrap an environment.

        Args:
            environment: The environment, with tensors and without automatic resets.

        Raises:
            ValueError: The environment gives NumPy arrays, or resets by itself.
        """
        environment = fitted(environment, SimulationVectorEnv, "TorchRLEnv: environment")
        if environment.metadata["autoreset_mode"] is not AutoresetMode.DISABLED or environment.gives_numpy:
            raise ValueError(
                "TorchRLEnv: environment must give tensors and leave resets to TorchRL; make it by "
                "SimulationVectorEnv(..., autoreset_mode=AutoresetMode.DISABLED)"
            )
        batch, device = torch.Size([environment.num_envs]), environment.intervals.device
        super().__init__(device=device, batch_size=batch)
        self.environment, self._next_seed = environment, None
        features, channels = environment.observation_space.shape, environment.action_space.shape
        kind = torch.from_numpy(environment.single_action_space.low).dtype
        one = (*batch, 1)
        self.observation_spec = Composite(
            observation=Unbounded(features, dtype=kind, device=device), shape=batch, device=device
        )
        self.action_spec = Bounded(-1.0, 1.0, channels, dtype=kind, device=device)
        self.reward_spec = Unbounded(one, dtype=kind, device=device)
        self.done_spec = Composite(
            {name: Binary(1, one, dtype=torch.bool, device=device) for name in ("done", "terminated", "truncated")},
            shape=batch,
            device=device,
        )

    def _reset(self, tensordict: "TensorDictBase | None" = None, **options: Any) -> TensorDict:
        """Begin new episodes, in all worlds or in those of the mask ``_reset``, with options of the environment."""
        mask = None if tensordict is None else tensordict.get("_reset", None)
        given = options if mask is None else options | {"reset_mask": mask.reshape(self.batch_size)}
        seen, _ = self.environment.reset(seed=self._next_seed, options=given)
        self._next_seed = None
        return TensorDict({"observation": seen}, self.batch_size, device=self.device)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        """One control interval."""
        seen, reward, terminated, truncated, _ = self.environment.step(tensordict["action"])
        columns = {"reward": reward, "terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        found = {"observation": seen} | {name: value[:, None] for name, value in columns.items()}
        return TensorDict(found, self.batch_size, device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        """Keep a seed for the next reset."""
        self._next_seed = seed
