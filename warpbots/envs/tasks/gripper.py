"""Gripper: a hand with two sliding fingers that picks up a cube from the floor."""

from typing import Any

import numpy as np
import torch

from warpbots import observers
from warpbots.actuators import Servo, Torque
from warpbots.envs.draws import Shifted
from warpbots.envs.episode import Episode, Transition
from warpbots.scene import Box, Cloud, Contact, Joint, RigidBody, Scene, floor
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

__all__ = ["gripper"]

_CUBE = 0.04
"""Edge of the cube [m]."""
_OPEN = 0.02
"""Way of a finger until it touches a cube in the middle [m]."""
_REACH = 0.12
"""Height to which the hand rises from its lowest place [m]."""
_FRICTION = 0.8


def gripper(worlds: int) -> tuple[Simulation, Episode]:
    """Lift a cube and keep it up for two seconds: its height is rewarded, and effort costs little.

    The cube lies at a random place between the fingers. A servo moves the hand up and down, and a force closes each
    finger.
    """
    half, x = 0.5 * _CUBE, 0.5 * _CUBE + _OPEN
    palm = RigidBody("palm", Box((-0.07, -0.02, -0.01), (0.07, 0.02, 0.01)), 1000.0, position=(0.0, 0.0, 0.09))
    fingers, slides = [], []
    for side, name in ((-1, "left"), (1, "right")):
        shape = Box((-0.005, -0.015, -0.05), (0.005, 0.015, 0.025))
        place = (side * (x + 0.005), 0.0, 0.055)
        fingers.append(RigidBody(name, shape, 1000.0, position=place, surface="finger"))
        slides.append(
            Joint(
                name, "prismatic", "palm", name, place, axis=(-side, 0.0, 0.0), lower=-0.005, upper=0.03, damping=5.0
            )
        )  # fmt: skip
    steps = np.linspace(-half, half, 5)
    grid = np.array([(a, b, c) for a in steps for b in steps for c in steps if max(abs(a), abs(b), abs(c)) == half])
    areas = np.full(len(grid), 6.0 * _CUBE**2 / len(grid))
    cube = RigidBody(
        "cube", Box((-half,) * 3, (half,) * 3), 500.0, position=(0.0, 0.0, half), points=Cloud(grid, areas)
    )
    law = (2e6, 2e3, _FRICTION, 2e5)
    lift = Joint("lift", "prismatic", None, "palm", palm.position, axis=(0.0, 0.0, 1.0), lower=0.0, upper=_REACH)
    scene = Scene(
        [palm, *fingers, cube],
        [Servo("lift", "lift", 400.0, 40.0, reach=_REACH), Torque("left", "left", 3.0), Torque("right", "right", 3.0)],
        [floor()],
        joints=[lift, *slides, Joint("cube", "free", None, "cube", cube.position)],
        contacts=[Contact("cube", other, *law) for other in ("finger", "palm", "floor")],
        name="gripper",
    )
    simulation = Simulation(scene, Articulated(), dt=0.02, substeps=8, worlds=worlds)
    place = observers.EndEffector("cube")
    of_cube = place.bind(simulation)
    rest = simulation.state().q
    free = next(i for i, name in enumerate(simulation.model.robot.coordinates) if name.startswith("cube"))
    spread = torch.zeros(rest.shape[1:])
    spread[free] = 0.01

    def reward(transition: Transition[Any]) -> dict[str, torch.Tensor]:
        height = of_cube(transition.after, **transition.parameters)[:, 2] - half
        return {
            "height": height / _REACH,
            "effort": -0.01 * transition.control.square().mean(dim=1),
        }

    episode = Episode(
        (observers.Joints(), place),
        reward,
        steps=100,
        start={"q": Shifted((-spread).tolist(), spread.tolist())},
    )
    return simulation, episode
