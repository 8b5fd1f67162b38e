"""Return mapping of von Mises plasticity with linear isotropic hardening (de Souza Neto et al. 2008, chapter 14).

In logarithmic strains e of Hencky's law the mapping has the form of small strains. With s = dev(tau) = 2 mu dev(e),

    q       = sqrt(3/2) |s|                      (equivalent stress)
    f       = q - (sigma_y + H a) <= 0           (yield function)
    Delta a = f / (3 mu + H)                     (where f > 0)
    dev(e') = (1 - 3 mu Delta a / q) dev(e),   a' = a + Delta a

with the trial strain e of the deformation gradient F, the accumulated plastic strain a, the yield stress sigma_y and
the hardening modulus H. This radial return is exact: q' = sigma_y + H a'. As e' has the axes of e, F' = exp(e' - e) F,
which has the rotation and the determinant of F. In 2D, dev is the deviator in the plane.
"""

import functools

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.materials.lame import lame_mu
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["von_mises"]


@functools.cache
def von_mises(dim: int) -> wp.Function:
    """Warp function (F, a, E, nu, sigma_y, H) -> (F', a'): elastic deformation and plastic strain after the flow.

    At the kink f = 0 the derivative is taken on the elastic side.
    """
    mat = matrix(dim)
    strain, exp = log_strain(dim), exp_symmetric(dim)
    d = real(dim)

    @wp.func
    def von_mises_return(F: mat, a: real, E: real, nu: real, yield_stress: real, hardening: real):
        """Delta a = f / (3 mu + H), F' = exp(-3 mu Delta a / q dev(e)) F."""
        mu = lame_mu(E, nu)
        e = strain(F)
        e -= wp.trace(e) / d * wp.identity(n=dim, dtype=real)
        strength = yield_stress + hardening * a
        square = real(6.0) * mu * mu * wp.ddot(e, e)
        F_out = F
        a_out = a
        if square > strength * strength:
            q = wp.sqrt(square)
            flow = (q - strength) / (real(3.0) * mu + hardening)
            F_out = exp((-real(3.0) * mu * flow / q) * e) @ F
            a_out = a + flow
        return F_out, a_out

    return von_mises_return
