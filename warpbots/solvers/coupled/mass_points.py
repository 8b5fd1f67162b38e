"""Masses of a lattice that touch rigid bodies: how they take part in the exchange of impulses, and the adjoints.

A mass touches a body if it is inside the body, as it touches an obstacle. Without bodies a step would move it from
(x, v) to (X, V). Schemes of a single stage have X = x + b v + a V, with a + b = h. With the impulse p on the body, the
mass ends with

    v' = V - p / m,   x' = y + a v',   y = x + b v.

So its angular momentum changes by exactly -y cross p, and the impulse acts on the body at y.

A mass that is bound to a body takes a and b from the integrator of the body, in which the impulse acts in the last
stage: a is the length of this stage. So the mass and its place in the body are moved alike, and no energy is gained or
lost. The forces on a bound mass are those at y, too (`place_masses`).
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.coupled.touching_points import end_of_points
from warpbots.solvers.mass_spring.stages import lift

__all__ = ["MassPoints", "mass_points"]


@wp.func
def time_of(bound: wp.array[int], i: int, touching: scalar, own: scalar):
    """`own` for a bound mass, else `touching`."""
    time = touching
    if bound[i] >= 0:
        time = own
    return time


class MassPoints(NamedTuple):
    """Kernels of masses that touch rigid bodies, and their adjoints."""

    place_masses: wp.Kernel
    adj_place_masses: wp.Kernel
    gather_masses: wp.Kernel
    move_masses: wp.Kernel
    adj_move_masses: wp.Kernel
    adj_gather_masses: wp.Kernel


@functools.cache
def mass_points(dim: int) -> MassPoints:
    """Kernels for matter in `dim` dimensions."""
    vec = vector(dim)
    in_space, from_space = space_maps(dim)
    node, components = lift(dim)
    module = wp.get_module(f"warpbots.coupled.mass_points_{dim}d")

    @wp.kernel(module=module, enable_backward=False)
    def place_masses(
        # model
        masses: int,
        bound: wp.array[int],
        # step
        b: real,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        # out
        X_out: wp.array[NODE],
    ):
        """X = x + b v for each bound mass."""
        r = wp.tid()
        if bound[r % masses] >= 0:
            X_out[r] = node(x[r] + b * v[r])

    @wp.kernel(module=module, enable_backward=False)
    def adj_place_masses(
        # model
        masses: int,
        bound: wp.array[int],
        # step
        more: real,
        # work
        X_adj: wp.array[NODE],
        # out
        v_adj_out: wp.array[vec],
    ):
        """v* += (b - drift) X* for each bound mass; the adjoint of the stage has added drift X*."""
        r = wp.tid()
        if bound[r % masses] >= 0:
            v_adj_out[r] = v_adj_out[r] + more * components(X_adj[r])

    @wp.kernel(module=module, enable_backward=False)
    def gather_masses(
        # model
        bodies: int,
        masses: int,
        lanes: int,
        mass: wp.array[real],
        weight: wp.array[scalar],
        bound: wp.array[int],
        # step
        b: scalar,
        b_bound: scalar,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        # work
        row: wp.array[int],
        free_v: wp.array[vec],
        # out
        points_out: Exchange,
    ):
        """Write place and effective mass of each mass that touches, and add its velocity without bodies."""
        w, lane = wp.tid()
        for i in range(w * masses + lane, end_of_points(points_out, bodies, w), lanes):
            r = row[i]
            points_out.place[i] = in_space(x[r]) + time_of(bound, r % masses, b, b_bound) * in_space(v[r])
            points_out.mass[i] = weight[r % masses] * scalar(mass[r])
            points_out.velocity[i] = points_out.velocity[i] + in_space(free_v[r])

    @wp.kernel(module=module, enable_backward=False)
    def move_masses(
        # model
        bodies: int,
        masses: int,
        lanes: int,
        mass: wp.array[real],
        bound: wp.array[int],
        # step
        a: scalar,
        a_bound: scalar,
        # work
        row: wp.array[int],
        points: Exchange,
        impulse: wp.array[vec3],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
    ):
        """v' -= p / m, and x' = y + a v' unless `x_out` is None."""
        w, lane = wp.tid()
        for i in range(w * masses + lane, end_of_points(points, bodies, w), lanes):
            r = row[i]
            v = in_space(v_out[r]) - impulse[i] / scalar(mass[r])
            v_out[r] = from_space(v)
            if x_out:
                x_out[r] = from_space(points.place[i] + time_of(bound, r % masses, a, a_bound) * v)

    @wp.kernel(module=module, enable_backward=False)
    def adj_move_masses(
        # model
        bodies: int,
        masses: int,
        lanes: int,
        mass: wp.array[real],
        bound: wp.array[int],
        # step
        a: scalar,
        a_bound: scalar,
        # work
        row: wp.array[int],
        points: Exchange,
        impulse: wp.array[vec3],
        # out
        x_adj_out: wp.array[vec],
        v_adj_out: wp.array[vec],
        mass_adj_out: wp.array[real],
        moved_adj_out: wp.array[vec3],
        impulse_adj_out: wp.array[vec3],
    ):
        """y* = x'*, v'* += a x'*, p* = -v'* / m, then x'* = 0; the gradient by the mass is added."""
        w, lane = wp.tid()
        for i in range(w * masses + lane, end_of_points(points, bodies, w), lanes):
            r = row[i]
            y_adj = vec3()
            v_adj = in_space(v_adj_out[r])
            if x_adj_out:
                y_adj = in_space(x_adj_out[r])
                v_adj += time_of(bound, r % masses, a, a_bound) * y_adj
                x_adj_out[r] = vec()
                v_adj_out[r] = from_space(v_adj)
            m = scalar(mass[r])
            moved_adj_out[i] = y_adj
            impulse_adj_out[i] = -v_adj / m
            if mass_adj_out:
                mass_adj_out[r] = mass_adj_out[r] + real(wp.dot(v_adj, impulse[i]) / (m * m))

    @wp.kernel(module=module, enable_backward=False)
    def adj_gather_masses(
        # model
        bodies: int,
        masses: int,
        lanes: int,
        weight: wp.array[scalar],
        bound: wp.array[int],
        # step
        b: scalar,
        b_bound: scalar,
        # work
        row: wp.array[int],
        points: Exchange,
        gradients: ExchangeGradients,
        moved_adj: wp.array[vec3],
        surface_adj: wp.array[vec3],
        # out
        free_v_adj_out: wp.array[vec],
        mass_adj_out: wp.array[real],
        x_adj_out: wp.array[vec],
        v_adj_out: wp.array[vec],
    ):
        """Add the gradients by the points to those by velocities without bodies, masses and the motion at the start."""
        w, lane = wp.tid()
        for i in range(w * masses + lane, end_of_points(points, bodies, w), lanes):
            r = row[i]
            y_adj = gradients.place[i] + moved_adj[i]
            free_v_adj_out[r] = free_v_adj_out[r] + from_space(gradients.velocity[i])
            x_adj_out[r] = x_adj_out[r] + from_space(y_adj + surface_adj[i])
            v_adj_out[r] = v_adj_out[r] + from_space(time_of(bound, r % masses, b, b_bound) * y_adj)
            if mass_adj_out:
                mass_adj_out[r] = mass_adj_out[r] + real(weight[r % masses] * gradients.mass[i])

    return MassPoints(place_masses, adj_place_masses, gather_masses, move_masses, adj_move_masses, adj_gather_masses)
