"""The constraints of a scene: held particles, and particles that share grid nodes with held particles."""

import dataclasses

import numpy as np
import warp as wp
from scipy.spatial import cKDTree

from warpbots.numerics import NODE, vector
from warpbots.scene import FREEDOMS, Scene, SceneError
from warpbots.scene.with_z import with_z
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mpm.particles import Particles

__all__ = ["NEAR", "HeldRegion", "held_regions"]

NEAR = 4.0
"""Distance at rest within which particles can share a node with held ones, even under compression [cells]."""


@dataclasses.dataclass(frozen=True)
class HeldRegion:
    """A constraint, with the particles that it holds.

    Attributes:
        freedom: Index of the freedom of the constraint in `warpbots.scene.FREEDOMS`.
        direction: Direction of the constraint; zero if the constraint has no direction.
        particle: Indices of the held particles in a world, shape (n_held,), int.
        near: Indices of the held particles and of the particles around them, shape (n_near,), int.
        weight: 1 for each entry of `near` that is a held particle, else 0, shape (n_near,).
        share: Volume of matter at each node [m^dim], shape (worlds * nodes,). The first component is the volume of held
            particles, the last component is the volume of all particles.
        frame: Index of the frame that carries the constraint, -1 if the constraint does not move.
        rest: Positions of the held particles at rest, in 3D [m], double precision, shape (n_held,), vector.
        before: Velocities of the nodes before a constraint that moves acts [m/s], shape (worlds * nodes,), or (0,).
    """

    freedom: int
    direction: object
    particle: wp.array
    near: wp.array
    weight: wp.array
    share: wp.array
    frame: int
    rest: wp.array
    before: wp.array


def held_regions(
    scene: Scene, particles: Particles, frames: np.ndarray, dx: float, nodes: int, device: wp.Device
) -> tuple[HeldRegion, ...]:
    """The constraints of `scene`, for a grid with cells of size `dx` [m] and `nodes` nodes in all worlds together.

    `frames` has the index of the frame of each constraint, -1 for one that does not move.

    Raises:
        SceneError: Two constraints hold the same particle.
    """
    held_before, found = np.zeros(len(particles), dtype=bool), []
    for constraint, frame in zip(scene.constraints, frames, strict=True):
        held = particles.regions[constraint.region]
        if (held & held_before).any():
            p = int(np.flatnonzero(held & held_before)[0])
            raise SceneError(
                f"Constraint {constraint.name!r}: another one holds particle {p} at {particles.position[p].tolist()} m "
                f"already; keep the regions of constraints apart"
            )
        held_before |= held
        distance, _ = cKDTree(particles.position[held]).query(particles.position, p=np.inf)
        near = np.flatnonzero(distance <= NEAR * dx)
        found.append(
            HeldRegion(
                freedom=FREEDOMS.index(constraint.freedom),
                direction=vector(scene.dim)(*(constraint.direction or (0.0,) * scene.dim)),
                particle=device_array(np.flatnonzero(held), device, int),
                near=device_array(near, device, int),
                weight=device_array(held[near], device),
                share=wp.zeros(nodes, dtype=NODE, device=device),
                frame=int(frame),
                rest=device_array(with_z(particles.position[held]), device, wp.vec3d),
                before=wp.zeros(nodes if frame >= 0 else 0, dtype=NODE, device=device),
            )
        )
    return tuple(found)
