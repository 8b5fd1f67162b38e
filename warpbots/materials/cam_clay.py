"""Return mapping of the modified Cam clay model with cohesion: matter that compacts and breaks, such as snow.

Roscoe & Burland 1968, with the cohesion that Gaume et al. 2018, "Dynamic anticrack propagation in snow", give to snow,
and as there in logarithmic strains e of Hencky's law. With the pressure p and the equivalent stress q,

    p   = -tr(tau) / d = -K tr(e),   q = sqrt(3/2) |dev(tau)|,   K = lambda + 2/d mu
    p_c = p_0 exp(-xi v)                             (preconsolidation pressure)
    f   = (q / M)^2 + (p + beta p_c)(p - p_c) <= 0   (yield function: an ellipse)

for the initial p_0, the stress ratio M at the critical state, the cohesion beta and the hardening coefficient xi; v is
the logarithm of the volume that flow has left, at the beginning of the step. Flow is associated: e' is what the
elastic energy has nearest to the trial strain e within f <= 0. With the centre p_m = (1 - beta) p_c / 2 of the ellipse
and its half-axis r = (1 + beta) p_c / 2 it is

    q' = q / (1 + a x),   p' - p_m = (p - p_m) / (1 + b x),   a = 3 / M^2,   b = K / mu
    (q' / M)^2 + (p' - p_m)^2 = r^2                  (an equation for x > 0)
    v' = v + tr(e) - tr(e')

The equation is solved by Newton's method for the reciprocal of the left side's root, which is nearly linear in x (Moré
and Sorensen 1983); its derivative follows from that of the equation. As flow is associated, f is convex and e = 0 is
never beyond f = 0, flow dissipates whatever the path. Matter whose p_c has fallen below 1e-6 mu bears nothing: e' = 0.
As e' has the axes of e, F' = exp(e' - e) F. In 2D, dev is that of the plane.
"""

import functools

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["cam_clay"]

_ITERATIONS = 20
"""Newton iterations at most; two to five are needed."""


@wp.func
def ellipse(x: real, shear: real, D: real, a: real, b: real):
    """shear / (1 + a x)^2 + D^2 / (1 + b x)^2, and its derivative with respect to x."""
    u = real(1.0) / (real(1.0) + a * x)
    w = real(1.0) / (real(1.0) + b * x)
    deviatoric = shear * u * u
    volumetric = D * D * w * w
    return deviatoric + volumetric, -real(2.0) * (a * u * deviatoric + b * w * volumetric)


@wp.func
def root_of(shear: real, D: real, a: real, b: real, r: real):
    """x >= 0 with ellipse(x) = r^2; a constant for derivatives."""
    x = real(0.0)
    for _ in range(_ITERATIONS):
        value, slope = ellipse(x, shear, D, a, b)
        step = real(2.0) * value * (real(1.0) - wp.sqrt(value) / r) / slope  # of 1 / sqrt(value) - 1 / r
        x += step
        if step <= real(1e-7) * x:
            break
    return x


@wp.func_grad(root_of)
def adj_root_of(shear: real, D: real, a: real, b: real, r: real, adj_ret: real):
    wp.adjoint[shear] += real(0.0)


@functools.cache
def cam_clay(dim: int) -> wp.Function:
    """Warp function (F', v') of (F, v, E, nu, p_0, M, beta, xi): elastic deformation and volume left after the flow.

    At the kink f = 0 its derivative is that of the elastic side.
    """
    mat = matrix(dim)
    strain, exp = log_strain(dim), exp_symmetric(dim)
    d, negligible = real(dim), real(1e-6)

    @wp.func
    def cam_clay_return(F: mat, v: real, E: real, nu: real, p_0: real, M: real, beta: real, xi: real):
        """F' = exp(e' - e) F."""
        mu = lame_mu(E, nu)
        K = lame_lambda(E, nu) + real(2.0) / d * mu
        I = wp.identity(n=dim, dtype=real)
        e = strain(F)
        volume = wp.trace(e)
        dev = e - volume / d * I
        p_c = p_0 * wp.exp(-xi * v)
        center = real(0.5) * (real(1.0) - beta) * p_c
        r = real(0.5) * (real(1.0) + beta) * p_c
        D = -K * volume - center
        shear = real(6.0) * mu * mu * wp.ddot(dev, dev) / (M * M)  # (q / M)^2
        F_out = F
        v_out = v
        if p_c < negligible * mu:
            F_out = exp(-e) @ F
            v_out = v + volume
        elif shear > r * r - D * D:
            a = real(3.0) / (M * M)
            b = K / mu
            x = root_of(shear, D, a, b, r)
            value, slope = ellipse(x, shear, D, a, b)
            x -= (value - r * r) / slope  # carries the derivative of the root
            left = -(center + D / (real(1.0) + b * x)) / K
            F_out = exp((left - volume) / d * I - a * x / (real(1.0) + a * x) * dev) @ F
            v_out = v + volume - left
        return F_out, v_out

    return cam_clay_return
