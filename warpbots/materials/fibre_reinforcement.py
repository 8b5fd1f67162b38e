"""A family of fibres in a matrix: their stress is linear in the stretch, and acts in tension only.

The reinforcement is an energy of the stretch along a direction (Spencer 1984; Holzapfel 2000, section 6.7). The fibres
are Hookean threads, which buckle when they are shortened:

    L   = |F a|                                      (stretch of fibres with the unit direction a at rest)
    Psi = k/2 <L - 1>^2
    tau = k <L - 1> / L (F a)(F a)^T,   P = k <L - 1> / L (F a) a^T

with <x> = max(x, 0). Only the direction of a counts, not its length. At the kink L = 1, the state at rest, the stress
is continuous; its derivative is taken on the stretched side.
"""

import functools

import warp as wp

from warpbots.numerics import ROUNDING, matrix, positive_part, real, vector

__all__ = ["fibre_reinforcement"]


@functools.cache
def fibre_reinforcement(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions Psi(F, a, k) and tau(F, a, k) [Pa] in `dim` dimensions."""
    vec, mat = vector(dim), matrix(dim)
    rounding, part = real(ROUNDING), positive_part()

    @wp.func
    def fibre_energy(F: mat, a: vec, k: real):
        """Psi = k/2 <L - 1>^2."""
        extension = wp.max(wp.length(F @ wp.normalize(a)) - real(1.0), real(0.0))
        return real(0.5) * k * extension * extension

    @wp.func
    def fibre_stress(F: mat, a: vec, k: real):
        """tau = k <L - 1> / L (F a)(F a)^T."""
        tau = mat()
        along = F @ wp.normalize(a)
        stretch = wp.length(along)
        if stretch >= real(1.0) - rounding:
            tau = (k * part(stretch - real(1.0), rounding) / stretch) * wp.outer(along, along)
        return tau

    return fibre_energy, fibre_stress
