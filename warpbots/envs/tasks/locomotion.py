"""Rewards that tasks of locomotion share."""

from collections.abc import Callable
from typing import Any

import torch

from warpbots.envs.episode import Transition
from warpbots.scene import Scene

__all__ = ["forward_speed"]


def forward_speed(
    scene: Scene, effort: float, drift: float = 0.0
) -> Callable[[Transition[Any]], dict[str, torch.Tensor]]:
    """A reward: mean speed of the centre of mass along x [m/s], with the masses of the model, minus costs.

    Args:
        scene: The scene.
        effort: Cost of the mean square of the control signals.
        drift: Cost of the mean speed along y, in three dimensions [s/m].
    """

    def reward(transition: Transition[Any]) -> dict[str, torch.Tensor]:
        simulation = transition.simulation
        before, after = map(simulation.center_of_mass, (transition.before, transition.after))
        velocity = (after - before) / simulation.dt
        terms = {"speed": velocity[:, 0], "effort": -effort * transition.control.square().mean(dim=1)}
        return terms | ({"drift": -drift * velocity[:, 1].abs()} if drift else {})

    return reward
