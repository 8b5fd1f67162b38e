"""Measurements of a single spring: strain, tension and elastic energy."""

import functools

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["spring_kernel"]

_HALF = wp.constant(real(0.5))


@functools.cache
def spring_kernel(dim: int, damped: bool, breaks: bool) -> wp.Kernel:
    """Kernel over (worlds, springs): computes strain, tension and elastic energy; Warp differentiates it.

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
