"""Walker2D: a soft walker with two legs in the plane, under the material point method."""

import dataclasses

from warpbots import observers
from warpbots.actuators import Muscle
from warpbots.envs.draws import Shifted
from warpbots.envs.episode import Episode
from warpbots.envs.tasks.locomotion import forward_speed
from warpbots.scene import Box, Material, Scene, SoftBody, Task, Union, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

__all__ = ["walker_2d", "walker_scene"]


def walker_scene() -> Scene:
    """The 2D walker of ChainQueen's appendix C: two legs, with a vertical muscle in every half of a leg.

    The paper's dimensionless numbers (robot 0.3 long, E 10, density 1, stress 2) become silicone of 20 kPa that is
    0.3 m long. The muscles pull with a tenth of E, half as much as in the paper: a fifth of E folds the legs, and most
    gaits learnt with it end in a fall.
    """
    legs = {
        "left_leg_back": Box((0.20, 0.00), (0.25, 0.10)),
        "left_leg_front": Box((0.25, 0.00), (0.30, 0.10)),
        "right_leg_back": Box((0.40, 0.00), (0.45, 0.10)),
        "right_leg_front": Box((0.45, 0.00), (0.50, 0.10)),
    }
    body = SoftBody(
        name="walker",
        shape=Union((Box((0.20, 0.0), (0.30, 0.10)), Box((0.40, 0.0), (0.50, 0.10)), Box((0.20, 0.10), (0.50, 0.20)))),
        material=Material(youngs_modulus=2e4, poissons_ratio=0.3, density=1000.0),
        regions=legs,
    )
    return Scene(
        name="walker",
        bodies=[body],
        actuators=[Muscle(region, region, direction=(0.0, 1.0), max_stress=2e3) for region in legs],
        obstacles=[floor(dim=2, friction=0.5)],
        domain=((-0.4, 0.0), (1.5, 0.4)),
        task=Task(
            cell_size=1 / 80, control_interval=5e-3, substeps=5, steps=400, direction=(1.0, 0.0), clusters=7, clock=0.4
        ),
    )


def walker_2d(worlds: int) -> tuple[Simulation, Episode]:
    """Walk along x for two seconds: speed is rewarded, effort costs little, and falls do not end an episode."""
    scene = dataclasses.replace(walker_scene(), domain=((-1.0, 0.0), (2.5, 0.4)))
    simulation = Simulation(scene, MPM(dx=1 / 40), dt=0.02, substeps=9, worlds=worlds)
    episode = Episode(
        observers.Clusters(7),
        forward_speed(scene, effort=0.05),
        steps=100,
        start={"velocity": Shifted((-0.05, 0.0), (0.05, 0.0))},
        clock=0.4,
    )
    return simulation, episode
