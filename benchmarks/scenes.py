"""Scenes and solvers of the benchmarks."""

import numpy as np
from fast import FAST, sized

from warpbots.scene import (
    Box,
    Capsule,
    Constraint,
    Contact,
    Cylinder,
    HalfSpace,
    Joint,
    Material,
    Muscle,
    Pressure,
    RigidBody,
    Scene,
    SoftBody,
    Sphere,
    Torque,
    Union,
    floor,
)
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics, Solver

__all__ = ["BENCHMARKS", "DT", "cantilever", "chain", "hand", "make", "method", "walker"]

BENCHMARKS = [
    {"name": "mpm-2d-5k", "dim": 2, "block": (72, 72), "cells": (64, 64), "steps": 100},
    {"name": "mpm-2d-16k", "dim": 2, "block": (128, 128), "cells": (128, 128), "steps": 50},
    {"name": "mpm-2d-20k", "dim": 2, "block": (142, 142), "cells": (128, 128), "steps": 50},
    {"name": "mpm-3d-5k", "dim": 3, "block": (18, 18, 16), "cells": (24, 24, 24), "steps": 50},
    {"name": "mpm-3d-32k", "dim": 3, "block": (32, 32, 32), "cells": (64, 64, 64), "steps": 20},
    {"name": "mpm-3d-100k", "dim": 3, "block": (46, 46, 47), "cells": (64, 64, 64), "steps": 10},
    {"name": "mpm-3d-quadruped", "dim": 3, "legs": 4, "steps": 10},
    {"name": "mpm-3d-hexapod", "dim": 3, "legs": 6, "steps": 10},
    {"name": "mpm-3d-octoped", "dim": 3, "legs": 8, "steps": 10},
    {"name": "mpm-3d-1m", "dim": 3, "block": (100, 100, 100), "cells": (128, 128, 128), "steps": 10, "cuda": True},
    {"name": "mass-spring-10k", "cubes": 9, "integrator": "euler", "steps": 100},
    {"name": "mass-spring-100k", "cubes": 20, "integrator": "euler", "steps": 50},
    {"name": "mass-spring-1m", "cubes": 42, "integrator": "euler", "steps": 10},
    {"name": "mass-spring-100k-verlet", "cubes": 20, "integrator": "verlet", "steps": 50},
    {"name": "mass-spring-1m-verlet", "cubes": 42, "integrator": "verlet", "steps": 10},
    {"name": "mass-spring-100k-rk4", "cubes": 20, "integrator": "rk4", "steps": 20},
    {"name": "mass-spring-1m-rk4", "cubes": 42, "integrator": "rk4", "steps": 4},
    {"name": "mass-spring-10m", "cubes": 92, "integrator": "euler", "steps": 10, "cuda": True},
    {"name": "projective-3k", "layers": 5, "steps": 5, "dt": 1e-2},
    {"name": "projective-10k", "layers": 8, "steps": 5, "dt": 1e-2},
    {"name": "projective-50k", "layers": 13, "steps": 3, "dt": 1e-2},
    {"name": "projective-200k", "layers": 20, "steps": 2, "dt": 1e-2},
    {"name": "projective-10k-collisions", "layers": 8, "collisions": True, "steps": 5, "dt": 1e-2},
    {"name": "projective-50k-collisions", "layers": 13, "collisions": True, "steps": 3, "dt": 1e-2},
    {"name": "projective-200k-collisions", "layers": 20, "collisions": True, "steps": 2, "dt": 1e-2},
    {"name": "articulated-chain", "links": 8, "steps": 50, "dt": 1e-3},
    {"name": "articulated-chain-64", "links": 8, "worlds": 64, "steps": 20, "dt": 1e-3},
    {"name": "articulated-chain-1024", "links": 8, "worlds": 1024, "steps": 20, "dt": 1e-3, "cuda": True},
    {"name": "articulated-hand", "hand": True, "steps": 50, "dt": 2e-3},
    {"name": "articulated-hand-1024", "hand": True, "worlds": 1024, "steps": 20, "dt": 2e-3, "cuda": True},
]
"""Benchmarks: `block` is the number of particles along each axis of a cube, `cells` the free space around it; `legs` is
the number of legs of a robot with the sizes of ChainQueen's appendix D; `cubes` is the edge of a voxel lattice in
voxels; `layers` is the number of cells over the height of a cantilever of tetrahedra, with collision detection on its
surface for `collisions`, though it touches nothing; `links` is the number of links of a chain on hinges, in `worlds`
copies. Benchmarks marked `cuda` take more than a minute on one CPU core."""

FEW = {"block": 4, "cells": 12, "cubes": 3, "layers": 2, "links": 2, "worlds": 2, "steps": 2}
"""Sizes of benchmarks in a test run."""
if FAST:
    for _one in BENCHMARKS:
        for _name in FEW.keys() & _one.keys():
            _one[_name] = (FEW[_name],) * _one["dim"] if _name in ("block", "cells") else FEW[_name]

DT = 1e-4
"""Length of a solver step [s] if a benchmark has none of its own, well below the bound for these materials."""

DX = 1.0 / 64.0
"""Size of a cell [m]; there are two particles per cell and axis."""


HEIGHT = 0.08
"""Height of the cantilever [m]."""


def make(benchmark: dict) -> Scene:
    """The scene of a benchmark: soft silicone (100 kPa), above a floor except for lattices, which are in free space."""
    if "links" in benchmark:
        return chain(benchmark["links"])
    if "hand" in benchmark:
        return hand()
    if "layers" in benchmark:
        return cantilever()
    if "cubes" in benchmark:
        body = SoftBody("lattice", Box((0.0,) * 3, (0.01 * benchmark["cubes"],) * 3), Material(1e5, 0.25))
        return Scene([body], gravity=(0.0, 0.0, 0.0))
    return _robot(benchmark["legs"]) if "legs" in benchmark else _block(benchmark)


def method(benchmark: dict) -> Solver:
    """The solver of a benchmark."""
    if "links" in benchmark or "hand" in benchmark:
        return Articulated()
    if "layers" in benchmark:
        return ProjectiveDynamics(HEIGHT / benchmark["layers"], collisions=benchmark.get("collisions", False))
    return MassSpring(0.01, integrator=benchmark["integrator"]) if "cubes" in benchmark else MPM(DX)


def cantilever() -> Scene:
    """A bar of 32 x 8 x 8 cm of corotated material that is fixed at one end and begins to sag."""
    regions = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))}
    material = Material(1e5, 0.3, 1000.0, "corotated")
    body = SoftBody("bar", Box((0, 0, 0), (4 * HEIGHT, HEIGHT, HEIGHT)), material, regions=regions)
    return Scene([body], constraints=[Constraint("root")])


def chain(links: int) -> Scene:
    """A chain along x that starts to fall: capsules of 20 cm on hinges, alternately about y and z."""
    edge = 0.2
    bodies = [RigidBody(f"link{i}", Capsule((i * edge, 0, 0), ((i + 1) * edge, 0, 0), 0.03)) for i in range(links)]
    joints = [
        Joint(
            f"hinge{i}", "revolute", f"link{i - 1}" if i else None, f"link{i}", position=(i * edge, 0, 0),
            axis=(0, 1, 0) if i % 2 == 0 else (0, 0, 1), damping=0.01,
        )
        for i in range(links)
    ]  # fmt: skip
    return Scene(bodies, joints=joints)


def hand() -> Scene:
    """Three fingers of four links with 396 contact points, each pressing down on a body that stands on the floor."""
    edge, radius, height = 0.04, 0.01, 0.22
    solids = {
        "ball": Sphere((0, 0, 0), 0.03),
        "box": Box((-0.03, -0.03, -0.03), (0.03, 0.03, 0.03)),
        "drum": Cylinder((0, 0, -0.03), (0, 0, 0.03), 0.03),
    }
    bodies, joints, motors = [], [], []
    for f, (name, solid) in enumerate(solids.items()):
        x, y = 0.08 * np.cos(2 * np.pi * f / 3), 0.08 * np.sin(2 * np.pi * f / 3)
        bodies.append(RigidBody(name, solid, position=(x, y, 0.0299), points=26, surface="things"))
        for i in range(4):
            link, z = f"finger{f}_{i}", height - i * edge
            shape = Capsule((0, 0, -radius), (0, 0, radius - edge), radius)
            lean = 0.002 * (i % 2)
            bodies.append(RigidBody(link, shape, position=(x + lean, y, z + 0.0093), points=33, surface="fingers"))
            parent = f"finger{f}_{i - 1}" if i else None
            joints.append(Joint(link, "revolute", parent, link, position=(x, y, z), axis=(0, 1, 0), damping=1e-3))
            motors.append(Torque(link, link, 0.1))
    laws = (Contact("fingers", "things", 1e8, 1e9, 0.8, 1e6), Contact("things", "floor", 1e8, 1e9, 0.8, 1e6))
    return Scene(bodies, motors, (floor(),), joints=joints, contacts=laws)


def walker() -> Scene:
    """A bar on two legs, 30 x 15 x 20 cm, for every solver of soft bodies: four muscles and dry friction.

    The walker is the walker of ``usd_scenes``, wider and stiffer, so that it stands in 3D. It has the Poisson's ratio
    of spring lattices, and starts 1 mm above the floor, because surfaces of tetrahedra may deviate by 1 mm from the
    shape.
    """
    width, muscles = 0.15, {"rear back": 0.0, "rear front": 0.05, "fore back": 0.2, "fore front": 0.25}
    legs = [Box((x, 0.0, 0.0), (x + 0.1, width, 0.1)) for x in (0.0, 0.2)]
    halves = {name: Box((x, 0.0, 0.0), (x + 0.05, width, 0.1)) for name, x in muscles.items()}
    shape = Union((*legs, Box((0.0, 0.0, 0.1), (0.3, width, 0.2))))
    body = SoftBody("walker", shape, Material(1e5, 0.25, 1000.0), regions=halves)
    actuators = [Muscle(name, name, (0.0, 0.0, 1.0), 1e4) for name in halves]
    domain = ((-0.3, -0.2, -0.1), (0.8, width + 0.2, 0.4))
    return Scene([body], actuators, [floor(-1e-3, friction=0.5)], domain=domain, name="walker")


def _block(benchmark: dict) -> Scene:
    size = np.array(benchmark["block"]) * DX / 2.0
    room = np.array(benchmark["cells"]) * DX
    lower = np.floor((room - size) / 2.0 / DX) * DX
    body = SoftBody("block", Box(lower, lower + size), Material(1e5))
    return Scene([body], obstacles=[floor(dim=benchmark["dim"])], domain=(np.zeros_like(room), room))


def _robot(legs: int) -> Scene:
    """A robot with two rows of legs along a spine of nine blocks.

    A leg consists of four chambers in a square, and a block consists of 15^3 particles.
    """
    count = sized(15, 3)  # particles along the edge of a block
    edge = 0.5 * count * DX
    spine = [(i, 2, 0) for i in range(9)]
    pitch = 9 // (legs // 2)
    chambers = {
        f"leg_{2 * k + side}_{i}{j}": (pitch * k + i, 3 * side + j, 0)
        for k in range(legs // 2) for side in range(2) for i in range(2) for j in range(2)
    }  # fmt: skip
    start = np.array([8.0, 8.0, 1.0]) * DX

    def block(at: tuple) -> Box:
        low = start + np.round(np.array(at) * float(count)) * DX / 2.0  # on the lattice of the particles
        return Box(low, low + edge)

    regions = {name: block(at) for name, at in chambers.items()}
    body = SoftBody("robot", Union((*map(block, spine), *regions.values())), Material(1e5), regions)
    actuators = [Pressure(name, name, 2e4) for name in regions]
    upper = body.shape.bounds[1] + 8.0 * DX
    return Scene([body], actuators, [floor()], domain=((0.0, 0.0, 0.0), upper), name=f"robot_{legs}")
