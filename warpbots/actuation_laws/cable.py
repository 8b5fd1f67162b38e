"""Cables through particles (ChainQueen eq. 16 and 17), as Warp kernels.

    E = k/2 max(0, L - R (1 - u))^2,   L = sum_i |x_{i+1} - x_i|
    f_i = T (d_i - d_{i-1}),           T = k max(0, L - R (1 - u)),  d_i = (x_{i+1} - x_i) / |x_{i+1} - x_i|

The forces are internal: they sum to zero and exert no torque. For a cable that is just taut, the derivative is taken on
the taut side. A segment between coincident waypoints has no direction and exerts no force.
"""

import functools

import warp as wp

from warpbots.numerics import positive_part, real, vector

__all__ = ["cable_arrays", "cable_kernels"]


@functools.cache
def cable_arrays() -> type:
    """Warp struct that holds all cables of a scene."""

    @wp.struct
    class CableArrays:
        """Cables of a scene.

        start: Index of the first waypoint of each cable, followed by the total number of waypoints, shape (n_cables +
            1,).
        particle: Index of the particle at each waypoint, shape (n_waypoints,).
        cable: Index of the cable of each waypoint, shape (n_waypoints,).
        channel: Control channel of each cable, shape (n_cables,).
        stiffness: Spring constant [N/m], shape (n_cables,).
        rest_length: Length paid out at u = 0 [m], shape (n_cables,).
        rounding: Slack up to which derivatives treat a cable as just taut [m], shape (n_cables,).
        """

        start: wp.array[int]
        particle: wp.array[int]
        cable: wp.array[int]
        channel: wp.array[int]
        stiffness: wp.array[real]
        rest_length: wp.array[real]
        rounding: wp.array[real]

    return CableArrays


@functools.cache
def cable_kernels(dim: int) -> tuple[wp.Kernel, wp.Kernel, wp.Kernel]:
    """Kernels (length, tension, force) for vectors of `dim` components; all are differentiated by Warp.

    ``length(cables, x, length_out)`` over (worlds, n_waypoints) adds to lengths [m] of shape (worlds, n_cables);
    ``tension(cables, length, u, tension_out)`` over (worlds, n_cables) writes tensions [N] of shape (worlds, n_cables);
    ``force(cables, x, tension, force_out)`` over (worlds, n_waypoints) writes forces [N], one for each waypoint of each
    world. Positions `x` [m] have shape (worlds, n_particles), `u` (worlds, n_channels).
    """
    vec = vector(dim)
    CableArrays, part = cable_arrays(), positive_part()
    module = wp.get_module(f"warpbots.actuation_laws.cable_{dim}d")

    @wp.kernel(module=module)
    def length(
        # model
        cables: CableArrays,
        # state
        x: wp.array2d[vec],
        # out
        length_out: wp.array2d[real],
    ):
        """L += |x_{i+1} - x_i|, one thread per waypoint, since Warp does not replay dynamic loops in adjoints."""
        w, i = wp.tid()
        c = cables.cable[i]
        if i + 1 < cables.start[c + 1]:
            wp.atomic_add(length_out, w, c, wp.length(x[w, cables.particle[i + 1]] - x[w, cables.particle[i]]))

    @wp.kernel(module=module)
    def tension(
        # model
        cables: CableArrays,
        # state
        length: wp.array2d[real],
        u: wp.array2d[real],
        # out
        tension_out: wp.array2d[real],
    ):
        """T = k max(0, L - R (1 - u))."""
        w, c = wp.tid()
        stretch = length[w, c] - cables.rest_length[c] * (real(1.0) - u[w, cables.channel[c]])
        tension_out[w, c] = cables.stiffness[c] * part(stretch, cables.rounding[c])

    @wp.kernel(module=module)
    def force(
        # model
        cables: CableArrays,
        # state
        x: wp.array2d[vec],
        tension: wp.array2d[real],
        # out
        force_out: wp.array2d[vec],
    ):
        """f_i = T (d_i - d_{i-1})."""
        w, i = wp.tid()
        c = cables.cable[i]
        T = tension[w, c]
        f = vec()
        if i + 1 < cables.start[c + 1]:
            f = f + T * wp.normalize(x[w, cables.particle[i + 1]] - x[w, cables.particle[i]])
        if i > cables.start[c]:
            f = f - T * wp.normalize(x[w, cables.particle[i]] - x[w, cables.particle[i - 1]])
        force_out[w, i] = f

    return length, tension, force
