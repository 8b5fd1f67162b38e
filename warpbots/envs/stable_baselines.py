"""The vector environment of Stable-Baselines3 around a simulation (``pip install stable-baselines3``)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from warpbots.envs.vector_env import SimulationVectorEnv
from warpbots.scene.field_types import fitted

__all__ = ["StableBaselinesEnv"]


class StableBaselinesEnv(VecEnv):
    """A `SimulationVectorEnv` in the form that Stable-Baselines3 learns with.

    Worlds begin their next episode in the step that ends the last one; its last observation is ``terminal_observation``
    in the infos of the world, and ``TimeLimit.truncated`` says whether time has ended it. ``episode`` has the sum of
    rewards ``r`` and the number of steps ``l`` of an episode that ended, which Stable-Baselines3 logs.

    Attributes:
        environment: The environment.
    """

    def __init__(self, environment: SimulationVectorEnv):
        """Wrap an environment.

        Args:
            environment: The environment, with NumPy arrays and automatic resets in the same step.

        Raises:
            ValueError: The environment gives tensors, or resets in another way.
        """
        environment = fitted(environment, SimulationVectorEnv, "StableBaselinesEnv: environment")
        if environment.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP or not environment.gives_numpy:
            raise ValueError(
                "StableBaselinesEnv: environment must give NumPy arrays and reset in the same step; make it by "
                "SimulationVectorEnv(..., numpy=True)"
            )
        self.environment, self.render_mode = environment, environment.render_mode
        self._actions: Any = None
        self._return, self._length = np.zeros(environment.num_envs), np.zeros(environment.num_envs, dtype=int)
        super().__init__(environment.num_envs, environment.single_observation_space, environment.single_action_space)

    def reset(self) -> np.ndarray:
        """Begin new episodes in all worlds, with what was given to `seed` and to `set_options` before.

        Returns:
            The observation, shape (worlds, features).

        Raises:
            ValueError: `set_options` was given a list of options, or `SimulationVectorEnv.reset` refuses them.
        """
        seeds, options = list(self._seeds), self._options[0]
        if any(other is not options for other in self._options) and any(self._options):
            raise ValueError(
                f"StableBaselinesEnv: options must be one dict for all worlds, with a row for each in its tensors, got "
                f"a list of {len(self._options)} dicts"
            )
        self._return[:], self._length[:] = 0.0, 0
        seen, _ = self.environment.reset(seed=seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in seeds]
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One control interval.

        Returns:
            Observation, reward, whether the episode of each world is over, and infos of each world.
        """
        seen, reward, terminated, truncated, infos = self.environment.step(self._actions)
        over = terminated | truncated
        self._return += reward
        self._length += 1
        each: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(one)} for one in truncated]
        for world in np.flatnonzero(over):
            each[world] |= {
                "terminal_observation": infos["final_obs"][world],
                "lost": bool(infos["final_info"]["lost"][world]),
                "episode": {"r": float(self._return[world]), "l": int(self._length[world]), "t": 0.0},
            }
        self._return[over], self._length[over] = 0.0, 0
        return seen, reward, over, each

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()

    def get_images(self) -> Sequence[np.ndarray]:
        """A picture of each world; see `SimulationVectorEnv.render`."""
        return self.environment.render() or ()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environment, once for each of the worlds `indices`."""
        return [getattr(self.environment, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment, which all worlds share.

        Raises:
            ValueError: `indices` names only some of the worlds.
        """
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError("StableBaselinesEnv: worlds share all attributes; set them for all worlds, indices=None")
        setattr(self.environment, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """The result of a method of the environment, once for each of the worlds `indices`."""
        result = getattr(self.environment, method_name)(*method_args, **method_kwargs)
        return [result] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Whether a wrapper surrounds each of the worlds `indices`: none does, but infos have what `Monitor` adds."""
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))
