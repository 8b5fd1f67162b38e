"""Fibres of a muscle, which pull matter towards a target length.

The law is from the soft multi-body paper (appendix D) and Min et al. 2019, "SoftCon":

    Psi = k/2 (|y| - L)^2,   y = F m,   dPsi/dy = k (y - L y / |y|),   P = dPsi/dy m^T

for a fibre along the unit vector m of the undeformed body; the stretch at which the fibre has no stress is L = 1 - u
max_contraction. The paper prints |(1 - r) y| with r = L / |y|; the formula above has the square of this expression,
which the paper must mean. A fibre of zero length exerts no force. No eigenvalue of the Hessian of Psi with respect to y
exceeds k.
"""

import functools

import warp as wp

from warpbots.numerics import real, vector

__all__ = ["fibre_pull"]


@functools.cache
def fibre_pull(dim: int) -> wp.Function:
    """Warp function p(y, k, L) = dPsi/dy: stress vector of a fibre along m [Pa]."""
    vec = vector(dim)

    @wp.func
    def pull(y: vec, k: real, L: real):
        """k (y - L y / |y|)."""
        return k * (y - L * wp.normalize(y))

    return pull
