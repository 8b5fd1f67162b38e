"""Return mapping of Drucker-Prager plasticity without cohesion, for sand; the gap between separated grains is stored.

Klar et al. 2016, "Drucker-Prager elastoplasticity for sand animation"; the volume correction is from Tampubolon et al.
2017, "Multi-species simulation of porous sand and water mixtures".

With the logarithmic trial strain e of the deformation gradient F (Hencky's law), g = v + tr(e) is the logarithm of the
volume of the grains relative to packed grains; v is the gap that remains from earlier steps.

    g > 0:   e' = 0,  v' = g                                     (grains apart: no stress)
    g <= 0:  tr(e') = g,  dev(e') = min(1, c / |dev(e)|) dev(e),  v' = 0
             c = -alpha (d lambda + 2 mu) / (2 mu) g

so that |dev(tau)| <= -alpha tr(tau) with tau = 2 mu e + lambda tr(e) I: friction between grains. Shear does not change
the volume. For a friction angle phi, the Mohr-Coulomb law sin(phi) = (tau_1 - tau_3) / (-tau_1 - tau_3) holds exactly
in 2D, and in 3D in triaxial compression:

    alpha = sin(phi) / sqrt(2)                                   (d = 2)
    alpha = sqrt(2/3) 2 sin(phi) / (3 - sin(phi))                (d = 3)

As e' has the axes of e, F' = exp(e' - e) F. Without v, sand that was shaken loose would keep the larger volume.
"""

import functools
import math

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["drucker_prager"]


@functools.cache
def drucker_prager(dim: int) -> wp.Function:
    """Warp function (F, v, E, nu, phi) -> (F', v'): elastic deformation and gap [1] after the flow; phi in degrees.

    At the kink at which shear begins, the derivative is taken on the elastic side; at the kink where grains meet, which
    includes the state at rest, it is taken on the side of packed grains.
    """
    mat = matrix(dim)
    strain, exp = log_strain(dim), exp_symmetric(dim)
    d, degree = real(dim), real(math.pi / 180.0)
    factor = real({2: math.sqrt(0.5), 3: math.sqrt(8.0 / 3.0)}[dim])
    least, less = real({2: 1.0, 3: 3.0}[dim]), real({2: 0.0, 3: 1.0}[dim])

    @wp.func
    def friction_of(phi: real):
        """The coefficient alpha of the friction angle phi [degrees]."""
        s = wp.sin(degree * phi)
        return factor * s / (least - less * s)

    @wp.func
    def drucker_prager_return(F: mat, v: real, E: real, nu: real, phi: real):
        """F' = exp(e' - e) F."""
        mu = lame_mu(E, nu)
        I = wp.identity(n=dim, dtype=real)
        e = strain(F)
        mean = wp.trace(e) / d
        dev = e - mean * I
        gap = v + wp.log(wp.determinant(F))
        change = -e
        v_out = gap
        if gap <= real(0.0):
            limit = -friction_of(phi) * (d * lame_lambda(E, nu) + real(2.0) * mu) / (real(2.0) * mu) * gap
            change = v / d * I
            square = wp.ddot(dev, dev)
            if square > limit * limit:
                change += (limit / wp.sqrt(square) - real(1.0)) * dev
            v_out = real(0.0)
        return exp(change) @ F, v_out

    return drucker_prager_return
