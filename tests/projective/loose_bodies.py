"""Rigid bodies without flesh beside soft ones, and alone."""

import numpy as np
import torch

from warpbots.scene import Box, Joint, Material, RigidBody, Scene, SoftBody, Sphere, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

G = 9.81
GAP = 3e-4
"""Between bodies at the start [m]."""
SIDE = 0.06


def cube(name: str, corner, density: float = 1000.0, friction: float = 0.5, side: float = SIDE) -> RigidBody:
    """A rigid cube whose lowest corner is at `corner`."""
    half = side / 2.0
    shape = Box((-half,) * 3, (half,) * 3)
    return RigidBody(name, shape, density, position=tuple(np.array(corner) + half), friction=friction)


def slab(size, modulus: float = 5e4, friction: float = 0.5, height: float = 0.0) -> SoftBody:
    """A soft slab with a corner at the origin, lifted by `height`, whose lower side is the region "bottom"."""
    regions = {"bottom": Box((-1.0, -1.0, height - 1.0), (1.0, 1.0, height + 1e-6))}
    shape = Box((0.0, 0.0, height), (*size[:2], height + size[2]))
    return SoftBody("slab", shape, Material(modulus, 0.3, 1000.0), regions, friction=friction)


def thrown(body: RigidBody, velocity) -> Joint:
    """A free joint at the centre of mass with a start velocity."""
    return Joint(f"{body.name} free", "free", None, body.name, start_velocity=velocity)


def simulated(scene: Scene, cell: float, dt: float, worlds: int = 1, **options) -> Simulation:
    """Steps of one length; tight ones in double precision."""
    if torch.get_default_dtype() == torch.float64:
        options = {"tolerance": 1e-11} | options
    return Simulation(scene, ProjectiveDynamics(cell, **options), dt, substeps=1, worlds=worlds)


def steps(sim: Simulation, count: int, state=None):
    """States after each of `count` steps."""
    state = sim.state() if state is None else state
    for _ in range(count):
        state = sim.step(state, torch.zeros(sim.worlds, sim.channels))
        yield state


def last(sim: Simulation, count: int, state=None):
    """The state after `count` steps."""
    return list(steps(sim, count, state))[-1]


def pile(count: int = 2, ratio: float = 1.0, obstacle: float = 0.0) -> Scene:
    """Cubes on one another on a floor, each `ratio` times as heavy as the one below it."""
    cubes = [cube(f"cube {k}", (0.0, 0.0, k * (SIDE + GAP) + GAP), 1000.0 * ratio**k) for k in range(count)]
    return Scene(cubes, obstacles=(floor(obstacle, friction=0.5),))


def off_centre(spin: float = 0.0, density: float = 1000.0) -> Scene:
    """A ball that hits a soft cube beside its middle, without gravity."""
    soft = SoftBody("cube", Box((0, 0, 0), (0.1, 0.1, 0.1)), Material(5e4, 0.3, 1000.0), friction=0.3)
    ball = RigidBody("ball", Sphere((0.0,) * 3, 0.03), density, position=(0.07, 0.05, 0.1315), friction=0.3)
    return Scene((soft, ball), joints=(thrown(ball, (0.0, 0.0, -1.0, spin, 0.0, 0.0)),), gravity=(0.0, 0.0, 0.0))


def tumbling(soft: bool = True) -> Scene:
    """A cube that rotates and slides on a soft slab on a floor, and another one on it; without the slab on the floor."""
    base = (slab((0.14, 0.1, 0.04), friction=0.4, height=GAP),) if soft else ()
    z = GAP + (0.04 + GAP if soft else 0.0)
    below, above = (
        cube("below", (0.03, 0.02, z), friction=0.3),
        cube("above", (0.04, 0.02, z + SIDE + GAP), friction=0.3),
    )
    joints = (thrown(below, (0.3, 0.1, -0.3, 0.2, 0.1, -1.0)), thrown(above, (0.2, 0.1, -0.4, 0.1, 0.3, -0.5)))
    return Scene((*base, below, above), obstacles=(floor(friction=0.5),), joints=joints)
