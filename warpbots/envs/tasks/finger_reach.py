"""FingerReach: a finger of rigid phalanges with a motor at each joint, whose tip reaches for a random point."""

from typing import Any

import torch

from warpbots import observers
from warpbots.actuators import Torque
from warpbots.envs.draws import Shifted, UniformValue
from warpbots.envs.episode import Episode, Transition
from warpbots.scene import Box, Joint, RigidBody, Scene
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

__all__ = ["finger_reach"]

_LINK, _HALF = 0.05, 0.008
"""Length of a phalanx, and half of its width and height [m]."""
_NEAR = 0.01
"""Distance at which the second term of the reward has fallen to 1 / e [m]."""


def finger_reach(worlds: int) -> tuple[Simulation, Episode]:
    """Reach for a point for three seconds: distance costs, more steeply close to the point, and effort costs little.

    Four motors turn the finger sideways and bend its three phalanges, without gravity. Targets are points that the tip
    reaches within the limits of the joints.
    """
    names = ("proximal", "middle", "distal")
    bodies = [RigidBody("knuckle", Box((-_HALF,) * 3, (_HALF,) * 3), 1000.0)]
    joints = [Joint("spread", "revolute", None, "knuckle", axis=(0.0, 0.0, 1.0), lower=-0.5, upper=0.5, damping=5e-3)]
    for k, name in enumerate(names):
        shape = Box((0.0, -_HALF, -_HALF), (_LINK, _HALF, _HALF))
        bodies.append(RigidBody(name, shape, 1000.0, position=(k * _LINK, 0.0, 0.0)))
        joints.append(
            Joint(
                f"{name}_bend",
                "revolute",
                bodies[-2].name,
                name,
                (k * _LINK, 0.0, 0.0),
                axis=(0.0, 1.0, 0.0),
                lower=-0.3,
                upper=1.5,
                damping=5e-3,
            )
        )
    scene = Scene(
        bodies,
        [Torque(j.name, j.name, 0.02) for j in joints],
        joints=joints,
        gravity=(0.0, 0.0, 0.0),
        name="finger_reach",
    )
    end = observers.EndEffector("distal", (_LINK, 0.0, 0.0))
    simulation = Simulation(scene, Articulated(), dt=0.05, substeps=10, worlds=worlds)
    tip_of = end.bind(simulation)

    def reward(transition: Transition[Any]) -> dict[str, torch.Tensor]:
        distance = (tip_of(transition.after, **transition.parameters) - transition.goals["target"]).norm(dim=1)
        return {
            "distance": -10.0 * distance,
            "arrival": torch.exp(-distance / _NEAR),
            "effort": -0.01 * transition.control.square().mean(dim=1),
        }

    episode = Episode(
        (observers.Joints(), end),
        reward,
        steps=60,
        start={"q": Shifted(-0.1, 0.1, each=True)},
        goals={"target": UniformValue((0.05, -0.025, -0.10), (0.10, 0.025, -0.05))},
    )
    return simulation, episode
