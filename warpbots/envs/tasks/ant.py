"""Ant: a rigid robot with eight motors, loaded from an MJCF file."""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from warpbots import observers
from warpbots.envs.draws import Shifted
from warpbots.envs.episode import Episode, Transition
from warpbots.robots import load
from warpbots.scene import Contact, floor
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

__all__ = ["ant"]

_GROUND = (2e6, 4e6, 1.0, 1e6)
"""Stiffness [Pa/m], damping [Pa s/m^2], friction [1] and viscosity [Pa s/m] of the contact with the ground."""
_LOW, _HIGH = 0.27, 1.0
"""Heights of the torso between which the ant is upright [m]."""


def ant(worlds: int) -> tuple[Simulation, Episode]:
    """Run along x for 15 seconds, with the reward of the ant in short-horizon actor-critic (Xu et al. 2022).

    The reward is the sum of the forward speed [m/s], a tenth of the cosine of the angle between the axis of the torso
    and the vertical, the cosine of the angle between its front and x, and its height above the lowest allowed one [m].
    An episode ends if the torso is too low or too high.
    """
    scene = load(
        Path(__file__).with_name("ant.xml"), obstacles=[floor(friction=1.0)], keyframe="standing", self_contact=False
    )
    scene = dataclasses.replace(scene, contacts=[Contact("surface", "floor", *_GROUND)])
    simulation = Simulation(scene, Articulated(), dt=0.05, substeps=20, worlds=worlds)
    torso = observers.Poses(("torso",))
    pose_of = torso.bind(simulation)

    def reward(transition: Transition[Any]) -> dict[str, torch.Tensor]:
        before, after = (pose_of(state, **transition.parameters) for state in (transition.before, transition.after))
        rotation = after[:, 3:].unflatten(1, (3, 3))
        return {
            "speed": (after[:, 0] - before[:, 0]) / simulation.dt,
            "upright": 0.1 * rotation[:, 2, 2],
            "heading": rotation[:, 0, 0],
            "height": after[:, 2] - _LOW,
        }

    def terminated(transition: Transition[Any]) -> torch.Tensor:
        height = pose_of(transition.after, **transition.parameters)[:, 2]
        return (height < _LOW) | (height > _HIGH)

    each = torch.zeros(simulation.state().q.shape[1])
    each[7:] = 0.1

    episode = Episode(
        (observers.Joints(),),
        reward,
        steps=300,
        terminated=terminated,
        start={"q": Shifted((-each).tolist(), each.tolist()), "qd": Shifted(-0.1, 0.1, each=True)},
    )
    return simulation, episode
