"""A simulation of one world as an environment of Gymnasium."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from warpbots.envs.episode import Episode
from warpbots.envs.vector_env import SimulationVectorEnv
from warpbots.scene.field_types import fitted, shown
from warpbots.simulation import Simulation

__all__ = ["SimulationEnv"]


class SimulationEnv(gymnasium.Env):
    """An environment of Gymnasium with NumPy arrays, for a simulation of one world; see `SimulationVectorEnv`.

    Attributes:
        worlds: The vector environment of one world that does the work.
    """

    metadata: ClassVar[dict[str, Any]] = SimulationVectorEnv.metadata

    def __init__(self, simulation: Simulation[Any], episode: Episode, *, render_mode: str | None = None):
        """Make the environment; arguments as for `SimulationVectorEnv`.

        Args:
            simulation: The simulation, with one world.
            episode: The rules of an episode.
            render_mode: ``"rgb_array"``, or None if nothing is drawn.

        Raises:
            ValueError: The simulation has several worlds, or `SimulationVectorEnv` refuses an argument.
        """
        simulation = fitted(simulation, Simulation, "SimulationEnv: simulation")
        if simulation.worlds != 1:
            raise ValueError(
                f"SimulationEnv: simulation must have 1 world, got {simulation.worlds}; use SimulationVectorEnv"
            )
        self.worlds = SimulationVectorEnv(
            simulation, episode, autoreset_mode=AutoresetMode.DISABLED, numpy=True, render_mode=render_mode
        )
        self.metadata = {name: value for name, value in self.worlds.metadata.items() if name != "autoreset_mode"}
        self.render_mode = render_mode
        self.observation_space = self.worlds.single_observation_space
        self.action_space = self.worlds.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin a new episode; arguments as for `SimulationVectorEnv.reset`.

        Returns:
            Observation, shape (features,), and infos.
        """
        super().reset(seed=seed)
        seen, infos = self.worlds.reset(seed=None if seed is None else [seed], options=options)
        return seen[0], _alone(infos)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One control interval.

        Args:
            action: Control signal in [-1, 1], shape (channels,).

        Returns:
            Observation, shape (features,), reward, whether the episode is terminated or truncated, and infos.

        Raises:
            RuntimeError: There was no reset, or the episode is over.
            ValueError: The action has the wrong shape or is out of range, or the reward is not finite.
        """
        try:
            control = np.asarray(action)
        except ValueError:  # of lists of several lengths
            control = None
        if control is None or control.shape != self.action_space.shape:
            got = shown(action) if control is None or control.dtype == object else f"shape {control.shape}"
            raise ValueError(
                f"step: action must be an array of shape {self.action_space.shape}, one number for each actuator, got "
                f"{got}"
            )
        seen, reward, terminated, truncated, infos = self.worlds.step(control[None])
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), _alone(infos)

    def render(self) -> np.ndarray | None:
        """A picture, shape (height, width, 3), uint8; None without a render mode."""
        frames = self.worlds.render()
        return None if frames is None else frames[0]


def _alone(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos of the only world, without masks."""
    return {
        name: _alone(value) if isinstance(value, dict) else value[0].item()
        for name, value in infos.items()
        if not name.startswith("_")
    }
