"""Two small motions: two bodies in 2D and two in 3D, in colours that cannot be confused."""

import torch

from warpbots.scene import Box, Cable, Muscle, Obstacle, Pressure, Scene, SoftBody, Sphere, floor
from warpbots.scene import Material as M
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

RED, GREEN = (0.9, 0.1, 0.1), (0.1, 0.7, 0.1)


def flat_scene() -> Scene:
    """A driven bar on the floor and a disc that falls, in 2D; a bump at the side."""
    bar = SoftBody("bar", Box((0.1, 0.0), (0.4, 0.1)), M(2e4), regions={"left": Box((0.1, 0.0), (0.2, 0.1))}, color=RED)
    disc = SoftBody("disc", Sphere((0.6, 0.3), 0.06), M(2e4), color=GREEN)
    obstacles = (floor(0.0, dim=2), Obstacle(Sphere((0.75, 0.0), 0.04), name="bump"))
    return Scene((bar, disc), (Muscle("pull", "left", (1.0, 0.0), 2e3),), obstacles, name="bar & disc")


def solid_scene() -> Scene:
    """A block with a chamber and a cable, and a ball that falls, in 3D."""
    lower, upper = (0.0, 0.0, 0.0), (0.2, 0.1, 0.1)
    block = SoftBody("block", Box(lower, upper), M(2e4), regions={"chamber": Box(lower, (0.1, 0.1, 0.1))}, color=RED)
    ball = SoftBody("ball", Sphere((0.1, 0.05, 0.25), 0.04), M(2e4), color=GREEN)
    cable = Cable("cable", ((0.02, 0.05, 0.08), (0.18, 0.05, 0.08)), 50.0)
    return Scene((block, ball), (Pressure("inflate", "chamber", 2e3), cable), (floor(0.0),), name="block")


def moved(scene: Scene, steps: int):
    """`steps` control intervals of 10 ms with controls that change sign half-way."""
    simulation = Simulation(scene, MPM(dx=0.02), dt=0.01, substeps=12)
    signal = torch.linspace(-0.8, 0.8, steps)[:, None] / torch.arange(1, len(scene.actuators) + 1)
    with torch.no_grad():
        return simulation.rollout(signal, steps)
