"""Fish: a soft strip with muscles along both sides, in water, under projective dynamics."""

from warpbots import observers
from warpbots.actuators import Muscle
from warpbots.envs.draws import Shifted
from warpbots.envs.episode import Episode
from warpbots.envs.tasks.locomotion import forward_speed
from warpbots.scene import Box, Fluid, Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

__all__ = ["fish"]


def fish(worlds: int) -> tuple[Simulation, Episode]:
    """Swim along x for two seconds: speed is rewarded, drift along y and effort cost."""
    parts = {
        f"{side}_{place}": Box((0.1 * k, min(y, 0.0), -0.04), (0.1 * k + 0.1, max(y, 0.0), 0.04))
        for k, place in enumerate(("tail", "middle", "front"), start=0)
        for side, y in (("left", 0.02), ("right", -0.02))
    }
    flesh = Material(youngs_modulus=1e5, poissons_ratio=0.3, density=1000.0)
    body = SoftBody("fish", Box((0.0, -0.02, -0.04), (0.4, 0.02, 0.04)), flesh, parts, color=(0.4, 0.6, 0.75))
    scene = Scene(
        [body],
        [Muscle(name, name, direction=(1.0, 0.0, 0.0), max_stress=2e4) for name in parts],
        gravity=(0.0, 0.0, 0.0),
        fluid=Fluid(density=1000.0, thrust=0.0),
        name="fish",
    )
    simulation = Simulation(
        scene, ProjectiveDynamics(0.04, elements="tetrahedra", collisions=False), dt=0.02, substeps=1, worlds=worlds
    )
    episode = Episode(
        observers.Clusters(5),
        forward_speed(scene, effort=0.02, drift=0.5),
        steps=100,
        start={"velocity": Shifted((-0.02, -0.02, 0.0), (0.02, 0.02, 0.0))},
        clock=0.5,
    )
    return simulation, episode
