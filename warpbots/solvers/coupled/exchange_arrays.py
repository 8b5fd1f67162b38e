"""Arrays for the exchange of impulses with rigid bodies that every step fills anew, for each solver of matter."""

import numpy as np
import warp as wp

from warpbots.numerics import NODE
from warpbots.scene import FREEDOMS
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mpm.model import MPMModel

__all__ = ["BEARING", "FIXED", "HELD", "GridArrays", "MassArrays"]

FIXED = 1e8
"""Largest effective mass of a mass that a constraint fixes [its mass]."""

BEARING = 1e6
"""Largest effective mass of a mass that a constraint fixes [mass of all rigid bodies that move].

A body at rest on such masses moves into them with a millionth of the velocity that it would gain in a step. A larger
factor costs digits: impulses are this mass times a small difference of velocities (docs/design/coupling.md).
"""

HELD = 1e4
"""Effective mass of a particle that a constraint fixes [its mass].

Overlaps with particles relax, so that bodies stay where they are.
"""


class GridArrays:
    """Arrays for the exchange with the grid of MPM.

    Attributes:
        radius: Radius of each particle [m], double precision, shape (worlds * n_particles,).
        weight: Effective mass of each particle, divided by that of a free one [1], double precision, shape
            (n_particles,).
        nodes: Velocity of each node without bodies [m/s] and share of its matter that touches [1], shape (worlds *
            nodes,).
        nodes_adj: Gradient with respect to `nodes`, shape (worlds * nodes,).
        distance_adj: Gradient with respect to the distance of each point from the surface, in the order of the points
            of the exchange, double precision, shape (worlds * n_particles,).
    """

    def __init__(self, soft: MPMModel):
        nodes = soft.worlds * soft.grid.nodes
        count = soft.worlds * len(soft.matter)
        fixed = np.zeros(len(soft.matter), dtype=bool)
        for region in soft.constraints:
            if region.freedom == FREEDOMS.index("fixed"):
                fixed[region.particle.numpy()] = True
        self.weight = device_array(np.where(fixed, HELD, 1.0), soft.device, scalar)
        self.radius, self.distance_adj = (wp.zeros(count, dtype=scalar, device=soft.device) for _ in range(2))
        self.nodes, self.nodes_adj = (wp.zeros(nodes, dtype=NODE, device=soft.device) for _ in range(2))


class MassArrays:
    """Arrays for the exchange with masses.

    Attributes:
        radius: Radius of each mass in contact, 0 [m], double precision, shape (worlds * n_masses,).
        weight: Effective mass of each mass divided by its mass [1], double precision, shape (n_masses,).
        moved_adj: Gradient with respect to the place of each point through the position of its mass at the end of the
            step, shape (worlds * n_masses,), vector.
        surface_adj: Gradient with respect to the position of each point through normals, shape (worlds * n_masses,),
            vector.
    """

    def __init__(self, soft: MassSpringModel, moving: float):
        """Allocate the arrays.

        Args:
            soft: Model of the matter.
            moving: Mass of all rigid bodies that can move, with the points that are bound to them [kg].
        """
        count, device = soft.worlds * len(soft.matter), soft.device
        fixed = soft.freedom.numpy() == FREEDOMS.index("fixed")
        bearing = np.clip(BEARING * moving / soft.mass.numpy()[0], 1.0, FIXED)
        self.radius = wp.zeros(count, dtype=scalar, device=device)
        self.weight = device_array(np.where(fixed, bearing, 1.0), device, scalar)
        self.moved_adj, self.surface_adj = (wp.zeros(count, dtype=vec3, device=device) for _ in range(2))
