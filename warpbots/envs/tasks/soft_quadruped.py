"""SoftQuadruped: a slab on four legs with two muscles each, as masses and springs."""

from warpbots import observers
from warpbots.actuators import Muscle
from warpbots.envs.draws import Shifted
from warpbots.envs.episode import Episode
from warpbots.envs.tasks.locomotion import forward_speed
from warpbots.scene import Box, Material, Scene, SoftBody, Union, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring

__all__ = ["soft_quadruped"]

_LEG = 0.1
"""Edge of a leg, which is a cube [m]."""


def soft_quadruped(worlds: int) -> tuple[Simulation, Episode]:
    """Walk along x for three seconds: speed is rewarded, drift along y and effort cost."""
    legs, halves = [], {}
    for end, x in (("hind", 0.0), ("front", 2.0 * _LEG)):
        for side, y in (("right", 0.0), ("left", 2.0 * _LEG)):
            legs.append(Box((x, y, 0.0), (x + _LEG, y + _LEG, _LEG)))
            for half, a in (("back", x), ("front", x + 0.5 * _LEG)):
                halves[f"{end}_{side}_{half}"] = Box((a, y, 0.0), (a + 0.5 * _LEG, y + _LEG, _LEG))
    slab = Box((0.0, 0.0, _LEG), (3.0 * _LEG, 3.0 * _LEG, 2.0 * _LEG))
    rubber = Material(youngs_modulus=4e4, poissons_ratio=0.25, density=1000.0, damping=2e-3)
    scene = Scene(
        [SoftBody("quadruped", Union((slab, *legs)), rubber, halves, color=(0.9, 0.55, 0.3))],
        [Muscle(name, name, direction=(0.0, 0.0, 1.0), max_stress=8e3) for name in halves],
        [floor(friction=0.8)],
        name="soft_quadruped",
    )
    simulation = Simulation(scene, MassSpring(0.033), dt=0.02, substeps=12, worlds=worlds)
    episode = Episode(
        observers.Clusters(5),
        forward_speed(scene, effort=0.05, drift=0.5),
        steps=150,
        start={"velocity": Shifted((-0.05, -0.05, 0.0), (0.05, 0.05, 0.0))},
        clock=0.5,
    )
    return simulation, episode
