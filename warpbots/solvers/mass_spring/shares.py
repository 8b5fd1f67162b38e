"""Kernels that compute the contribution of each spring and each mass to readings; differentiated by Warp."""

import functools

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["mass_kernel", "spin_type", "spring_kernel"]

_HALF = wp.constant(real(0.5))


def spin_type(dim: int) -> type:
    """Type of an angular momentum: a number in 2D, a vector in 3D."""
    return {2: real, 3: vector(3)}[dim]


@functools.cache
def spring_kernel(dim: int, damped: bool, breaks: bool) -> wp.Kernel:
    """Kernel over (worlds, springs): computes the strain, tension and elastic energy of each spring.

    Args:
        dim: 2 or 3.
        damped: Whether springs have damping.
        breaks: Whether springs can be broken.
    """
    vec = vector(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.tension_{dim}d_{damped:d}{breaks:d}"))
    def spring(
        # model
        ends: wp.array[wp.vec2i],
        stiffness: wp.array2d[real],
        rest_length: wp.array2d[real],
        damping: wp.array2d[real],
        # state
        x: wp.array2d[vec],
        v: wp.array2d[vec],
        broken: wp.array2d[real],
        # out
        strain_out: wp.array2d[real],
        tension_out: wp.array2d[real],
        energy_out: wp.array2d[real],
    ):
        """Strain (l - r) / r, tension k (l - r) + c dl/dt and energy k (l - r)^2 / 2 of a spring.

        l is the length and r the rest length. Tension and energy of a broken spring are 0.
        """
        w, s = wp.tid()
        i = ends[s][0]
        j = ends[s][1]
        d = x[w, j] - x[w, i]
        l = wp.length(d)
        r = rest_length[w, s]
        k = stiffness[w, s]
        whole = real(1.0)
        if wp.static(breaks):
            whole = real(1.0) - broken[w, s]
        t = k * (l - r)
        if wp.static(damped):  # noqa: SIM102 (decides what is compiled)
            if l > real(0.0):
                t += damping[w, s] * wp.dot(d, v[w, j] - v[w, i]) / l
        strain_out[w, s] = (l - r) / r
        tension_out[w, s] = whole * t
        energy_out[w, s] = _HALF * whole * k * (l - r) * (l - r)

    return spring


@functools.cache
def mass_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): computes the energies and momenta of each mass."""
    vec, spin = vector(dim), spin_type(dim)

    if dim == 2:

        @wp.func
        def moment(a: vec, b: vec):
            """Cross product a x b."""
            return a[0] * b[1] - a[1] * b[0]

    else:

        @wp.func
        def moment(a: vec, b: vec):
            """Cross product a x b."""
            return wp.cross(a, b)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.mass_shares_{dim}d"))
    def mass_share(
        # model
        mass: wp.array2d[real],
        gravity: wp.array[vec],
        # state
        x: wp.array2d[vec],
        v: wp.array2d[vec],
        # out
        kinetic_out: wp.array2d[real],
        potential_out: wp.array2d[real],
        momentum_out: wp.array2d[vec],
        spin_out: wp.array2d[spin],
    ):
        """Kinetic energy m v^2 / 2, potential energy -m g . x, momentum m v and angular momentum x × m v."""
        w, i = wp.tid()
        m = mass[w, i]
        p = m * v[w, i]
        kinetic_out[w, i] = _HALF * wp.dot(p, v[w, i])
        potential_out[w, i] = -m * wp.dot(gravity[w], x[w, i])
        momentum_out[w, i] = p
        spin_out[w, i] = moment(x[w, i], p)

    return mass_share
