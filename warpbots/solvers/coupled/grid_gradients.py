"""Adjoints of the kernels of `grid_points`."""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, real, sum_of_lanes, vector
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.coupled.grid_points import RELAXATION, grid_points
from warpbots.solvers.coupled.surface_weights import surface_weights
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["GridGradients", "grid_gradients"]

_sum = sum_of_lanes(vec3)
_ZERO, _ONE, _RATE = (wp.constant(scalar(c)) for c in (0.0, 1.0, 1.0 / RELAXATION))


class GridGradients(NamedTuple):
    """Adjoints of the kernels of `GridPoints`."""

    adj_scatter_impulses: wp.Kernel
    adj_gather_points: wp.Kernel
    adj_free_nodes: wp.Kernel
    adj_scatter_mass: wp.Kernel
    adj_surface: wp.Kernel
    move_place_gradients: wp.Kernel
    add_gravity_gradient: wp.Kernel


@functools.cache
def grid_gradients(dim: int) -> GridGradients:
    """Kernels for matter in `dim` dimensions."""
    vec, s = vector(dim), stencil(dim)
    in_space, from_space = space_maps(dim)
    gather, scatter, slopes = surface_weights(dim)
    arm_of, radius_of = grid_points(dim).arm_of, grid_points(dim).radius_of
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)
    dims = wp.constant(scalar(dim))
    module = wp.get_module(f"warpbots.coupled.grid_gradients_{dim}d")

    @wp.kernel(module=module, enable_backward=False)
    def adj_scatter_impulses(
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # work
        row: wp.array[int],
        points: Exchange,
        momentum_adj: wp.array[NODE],
        # out
        impulse_adj_out: wp.array[vec3],
    ):
        """Write the gradient by each impulse, -sum W h*."""
        i = wp.tid()
        r = row[i]
        if r >= 0:
            x = (motion.x[r] - grid.lower) * grid.inv_dx
            e = arm_of(motion.x[r], points.place[i], grid.inv_dx)
            h = gather(momentum_adj, grid.world[r] * grid.pencils, grid.resolution, x, e)
            impulse_adj_out[i] = -in_space(s.momentum(h))

    @wp.kernel(module=module, enable_backward=False)
    def adj_gather_points(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        weight: wp.array[scalar],
        # state
        motion: MotionArrays,
        # work
        row: wp.array[int],
        points: Exchange,
        share: wp.array[scalar],
        impulse: wp.array[vec3],
        nodes: wp.array[NODE],
        momentum_adj: wp.array[NODE],
        gradients: ExchangeGradients,
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
        nodes_adj_out: wp.array[NODE],
        place_adj_out: wp.array[vec3],
    ):
        """Add to the gradients by nodes, positions, places and matter, from those by effective mass and velocity.

        The gradients by positions and places include those of the weights with which impulses act on nodes.
        """
        i = wp.tid()
        r = row[i]
        if r < 0:
            return
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        e = arm_of(motion.x[r], points.place[i], grid.inv_dx)
        first = grid.world[r] * grid.pencils
        bears = weight[r % grid.particles]
        q = from_space(gradients.velocity[i])
        if bears > _ONE:
            motion_adj_out.v[r] = motion_adj_out.v[r] + q
            q = vec()
        share_adj = real(-gradients.mass[i] * points.mass[i] / share[i])
        scatter(nodes_adj_out, first, grid.resolution, x, e, q, share_adj)
        by_x, by_e = slopes(nodes, first, grid.resolution, x, e, q, share_adj)
        acting_x, acting_e = slopes(momentum_adj, first, grid.resolution, x, e, from_space(-impulse[i]), real(0.0))
        x_adj = by_x + acting_x
        e_adj = by_e + acting_e
        motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * (x_adj - e_adj)
        place_adj_out[i] = place_adj_out[i] + in_space(grid.inv_dx * e_adj)
        mass_adj = real(bears * gradients.mass[i] / share[i])
        if material_adj_out.rho:
            material_adj_out.rho[r] = material_adj_out.rho[r] + material.V[r] * mass_adj
        if material_adj_out.V:
            material_adj_out.V[r] = material_adj_out.V[r] + material.rho[r] * mass_adj

    @wp.kernel(module=module, enable_backward=False)
    def adj_free_nodes(
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
        nodes: wp.array[NODE],
        # out
        nodes_adj_out: wp.array[NODE],
        momentum_adj_out: wp.array[NODE],
    ):
        """Adjoint of `free_nodes`: adds to the gradients by momentum and mass.

        The gradient by velocity and share of each node becomes the part of the gradient by gravity, dt v*, and the
        gradient by the touching mass. `momentum` has the mass of each node; its velocity without bodies is in `nodes`.
        """
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        g = gravity[pencil // pencils]
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            share = nodes[i][3]
            if share > real(0.0):
                m = momentum[i][3]
                v_adj = s.momentum(nodes_adj_out[i])
                a_adj = nodes_adj_out[i][3] / m
                m_adj = -wp.dot(v_adj, s.momentum(nodes[i]) - dt * g) / m - a_adj * share
                momentum_adj_out[i] = momentum_adj_out[i] + s.node(v_adj / m, m_adj)
                nodes_adj_out[i] = s.node(dt * v_adj, a_adj)

    @wp.kernel(module=module, enable_backward=False)
    def adj_scatter_mass(
        # model
        material: ConstitutionArrays,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # work
        row: wp.array[int],
        points: Exchange,
        nodes_adj: wp.array[NODE],
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
        place_adj_out: wp.array[vec3],
    ):
        """Add to the gradients by positions, places, densities and volumes, from those by touching mass of nodes."""
        i = wp.tid()
        r = row[i]
        if r < 0:
            return
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        e = arm_of(motion.x[r], points.place[i], grid.inv_dx)
        first = grid.world[r] * grid.pencils
        m = material.rho[r] * material.V[r]
        h = gather(nodes_adj, first, grid.resolution, x, e)
        by_x, by_e = slopes(nodes_adj, first, grid.resolution, x, e, vec(), m)
        motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * (by_x - by_e)
        place_adj_out[i] = place_adj_out[i] + in_space(grid.inv_dx * by_e)
        if material_adj_out.rho:
            material_adj_out.rho[r] = material_adj_out.rho[r] + material.V[r] * h[3]
        if material_adj_out.V:
            material_adj_out.V[r] = material_adj_out.V[r] + material.rho[r] * h[3]

    @wp.kernel(module=module, enable_backward=False)
    def adj_surface(
        # model
        material: ConstitutionArrays,
        # step
        h: scalar,
        # work
        row: wp.array[int],
        points: Exchange,
        distance: wp.array[scalar],
        gradients: ExchangeGradients,
        # out
        distance_adj_out: wp.array[scalar],
        normal_adj_out: wp.array[vec3],
        material_adj_out: ConstitutionArrays,
    ):
        """Write the gradients by distances from surfaces, and add those by normals and volumes.

        With the distance d of a particle from the surface, its place is x - max(d, 0) n, and contact acts on its
        velocity minus (r - d) n / (`RELAXATION` h).
        """
        i = wp.tid()
        r = row[i]
        if r < 0:
            return
        n = points.normal[i]
        V = scalar(material.V[r])
        d = distance[i]
        rate = _RATE / h
        v_adj = gradients.velocity[i]
        d_adj = rate * wp.dot(v_adj, n)
        n_adj = -rate * (radius_of(V) - d) * v_adj
        if d > _ZERO:
            d_adj -= wp.dot(gradients.place[i], n)
            n_adj -= d * gradients.place[i]
        distance_adj_out[i] = d_adj
        normal_adj_out[i] = normal_adj_out[i] + n_adj
        if material_adj_out.V:
            radius_adj = -rate * wp.dot(v_adj, n)
            material_adj_out.V[r] = material_adj_out.V[r] + real(radius_adj * radius_of(V) / (dims * V))

    @wp.kernel(module=module, enable_backward=False)
    def move_place_gradients(
        # work
        row: wp.array[int],
        place_adj: wp.array[vec3],
        # out
        motion_adj_out: MotionArrays,
    ):
        """Add the gradients by the places of points to those by the positions of particles."""
        i = wp.tid()
        r = row[i]
        if r >= 0:
            motion_adj_out.x[r] = motion_adj_out.x[r] + from_space(place_adj[i])

    @wp.kernel(module=module, enable_backward=False)
    def add_gravity_gradient(
        # model
        length: int,
        pencils: int,
        # work
        active: wp.array[int],
        nodes_adj: wp.array[NODE],
        # out
        gravity_adj_out: wp.array[vec],
    ):
        """Add the sum over the nodes of each world to the gradient by gravity, in a fixed order."""
        w, lane = wp.tid()
        g = vec3()
        for i in range(lane, pencils, wp.block_dim()):
            pencil = w * pencils + i
            if active[pencil] != 0:
                for k in range(pencil * length, (pencil + 1) * length):
                    g += in_space(s.momentum(nodes_adj[k]))
        total = _sum(g)
        if lane == 0:
            gravity_adj_out[w] = gravity_adj_out[w] + from_space(total)

    return GridGradients(
        adj_scatter_impulses,
        adj_gather_points,
        adj_free_nodes,
        adj_scatter_mass,
        adj_surface,
        move_place_gradients,
        add_gravity_gradient,
    )
