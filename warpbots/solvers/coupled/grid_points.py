"""Particles of MPM that touch rigid bodies: with which effective mass, and how impulses reach the grid.

A particle is a ball, as wide as the cube, or in 2D the square, that it fills at rest. It meets a body at the place of
the surface that is nearest to it, or at its own place if its centre is inside the body. The velocity of matter there
without the bodies is extrapolated from the grid, after all forces, with weights W; an impulse p on the body acts on the
nodes as -W p, so that momentum and angular momentum stay the same (`surface_weights`).

The impulse moves all matter of these nodes. Let s be the share of matter that touches, first at each node and then at
the surface, both with the weights |W|. With the effective mass m / s of the particle, impulses of a layer of particles
that move alike change the velocity at the surface by exactly the change that contact demands, where no W is negative;
any other motion relaxes in a few steps. So that no particle seeps into a body meanwhile, contact demands that overlap
vanishes within about `RELAXATION` steps: it acts on the velocity minus the velocity at which the surface would leave
the overlap behind.

A particle that a constraint fixes keeps its velocity, with an effective mass that bears any body; the constraint takes
the impulse from the nodes.
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.exchange_arrays import Exchange
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.coupled.surface_weights import surface_weights
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["RELAXATION", "GridPoints", "grid_points"]

RELAXATION = 20.0
"""Number of steps in which an overlap of a particle and a body falls to a third [1]."""

_ONE, _HALF, _RATE = (wp.constant(scalar(c)) for c in (1.0, 0.5, 1.0 / RELAXATION))


class GridPoints(NamedTuple):
    """Warp kernels and functions of particles that touch rigid bodies."""

    radius: wp.Kernel
    scatter_mass: wp.Kernel
    free_nodes: wp.Kernel
    gather_points: wp.Kernel
    scatter_impulses: wp.Kernel
    radius_of: wp.Function
    arm_of: wp.Function


@functools.cache
def grid_points(dim: int) -> GridPoints:
    """Kernels and functions for matter in `dim` dimensions."""
    vec, s = vector(dim), stencil(dim)
    in_space, from_space = space_maps(dim)
    gather, scatter, _slopes = surface_weights(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)
    inverse = wp.constant(scalar(1.0 / dim))
    module = wp.get_module(f"warpbots.coupled.grid_points_{dim}d")

    @wp.func
    def radius_of(V: scalar):
        """Radius of a particle: half the edge of the cube, or of the square, that it fills at rest [m]."""
        return _HALF * wp.pow(V, inverse)

    @wp.func
    def arm_of(x: vec, place: vec3, inv_dx: real):
        """Distance from a particle at x to the place at which it meets a body [cells]."""
        return inv_dx * from_space(place - in_space(x))

    @wp.kernel(module=module, enable_backward=False)
    def radius(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # out
        radius_out: wp.array[scalar],
    ):
        """Write the radius of each particle [m]; -1 if nodes of the particle are outside the grid."""
        r = wp.tid()
        radius = scalar(-1.0)
        if s.reach((motion.x[r] - grid.lower) * grid.inv_dx, grid.resolution):
            radius = radius_of(scalar(material.V[r]))
        radius_out[r] = radius

    @wp.kernel(module=module, enable_backward=False)
    def scatter_mass(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # work
        row: wp.array[int],
        points: Exchange,
        # out
        nodes_out: wp.array[NODE],
    ):
        """Add the mass of each touching particle to its nodes."""
        i = wp.tid()
        r = row[i]
        if r >= 0:
            x = (motion.x[r] - grid.lower) * grid.inv_dx
            e = arm_of(motion.x[r], points.place[i], grid.inv_dx)
            m = material.rho[r] * material.V[r]
            scatter(nodes_out, grid.world[r] * grid.pencils, grid.resolution, x, e, vec(), m)

    @wp.kernel(module=module, enable_backward=False)
    def free_nodes(
        # model
        gravity: wp.array[vec],
        length: int,
        pencils: int,
        lanes: int,
        # step
        dt: real,
        # work
        active: wp.array[int],
        momentum: wp.array[NODE],
        # out
        nodes_out: wp.array[NODE],
    ):
        """Replace the touching mass a of each node by its velocity p / m + dt g without bodies, and the share a / m."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        g = gravity[pencil // pencils]
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            a = nodes_out[i][3]
            if a > real(0.0):
                h = momentum[i]
                nodes_out[i] = s.node(s.momentum(h) / h[3] + dt * g, a / h[3])

    @wp.kernel(module=module, enable_backward=False)
    def gather_points(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        weight: wp.array[scalar],
        # state
        motion: MotionArrays,
        # step
        h: scalar,
        # work
        row: wp.array[int],
        distance: wp.array[scalar],
        nodes: wp.array[NODE],
        # out
        points_out: Exchange,
        share_out: wp.array[scalar],
    ):
        """Write the effective mass of each touching particle; add the velocity at which matter leaves an overlap."""
        i = wp.tid()
        r = row[i]
        if r < 0:
            return
        cell = (motion.x[r] - grid.lower) * grid.inv_dx
        e = arm_of(motion.x[r], points_out.place[i], grid.inv_dx)
        g = gather(nodes, grid.world[r] * grid.pencils, grid.resolution, cell, e)
        share = scalar(g[3])
        V = scalar(material.V[r])
        leaving = _RATE * (radius_of(V) - distance[i]) / h
        bears = weight[r % grid.particles]
        points_out.mass[i] = bears * scalar(material.rho[r]) * V / share
        free_v = in_space(s.momentum(g))
        if bears > _ONE:
            free_v = in_space(motion.v[r])
        points_out.velocity[i] = points_out.velocity[i] + free_v - leaving * points_out.normal[i]
        share_out[i] = share

    @wp.kernel(module=module, enable_backward=False)
    def scatter_impulses(
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # work
        row: wp.array[int],
        points: Exchange,
        impulse: wp.array[vec3],
        factor: scalar,
        # out
        momentum_out: wp.array[NODE],
    ):
        """Add `factor` times the impulse of each particle on its body to the momentum of its nodes."""
        i = wp.tid()
        r = row[i]
        if r >= 0:
            x = (motion.x[r] - grid.lower) * grid.inv_dx
            e = arm_of(motion.x[r], points.place[i], grid.inv_dx)
            q = from_space(factor * impulse[i])
            scatter(momentum_out, grid.world[r] * grid.pencils, grid.resolution, x, e, q, real(0.0))

    return GridPoints(radius, scatter_mass, free_nodes, gather_points, scatter_impulses, radius_of, arm_of)
