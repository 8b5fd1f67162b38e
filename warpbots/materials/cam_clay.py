"""Return mapping of the modified Cam clay model with cohesion, for matter that compacts and breaks, such as snow.

The model is from Roscoe & Burland 1968; its cohesion and its logarithmic strains e of Hencky's law are from Gaume et
al. 2018, "Dynamic anticrack propagation in snow". With the pressure p and the equivalent stress q,

    p   = -tr(tau) / d = -K tr(e),   q = sqrt(3/2) |dev(tau)|,   K = lambda + 2/d mu
    p_c = p_0 exp(-xi v)                             (preconsolidation pressure)
    f   = (q / M)^2 + (p + beta p_c)(p - p_c) <= 0   (yield function: an ellipse)

with the initial preconsolidation pressure p_0, the stress ratio M at the critical state, the cohesion beta and the
hardening coefficient xi; v is the logarithm of the plastic volume ratio. Flow is associated: e' is the strain in f <= 0
that is nearest to the trial strain e in the norm of the elastic energy, for the p_c at the end of the step, p_c' = p_0
exp(-xi v'). The ellipse has the centre p_m = (1 - beta) p_c' / 2 and the half-axis r = (1 + beta) p_c' / 2, and

    q' = q / (1 + a x),   p' - p_m = (p - p_m) / (1 + b x),   a = 3 / M^2,   b = K / mu
    h = (q' / M)^2 + (p' - p_m)^2 - r^2 = 0          (x > 0, the amount of flow)
    g = v' - v - tr(e) - p' / K = 0                  (volume changes are plastic or elastic)

For a given v' the equation h = 0 is solved for x by Newton's method on 1 / sqrt(h + r^2) - 1 / r, which is nearly
linear in x (Moré and Sorensen 1983). The equation g = 0 is solved for v' by Newton's method, safeguarded by bisection:
g grows with v' unless matter softens faster than it can unload, xi beta p_c > K. The derivatives of x and v' follow
from the derivatives of h and g. Because flow is associated, f is convex and e = 0 is never beyond f = 0, flow
dissipates energy on every path. Matter whose p_c would fall below 1e-6 mu bears no stress: e' = 0. As e' has the axes
of e, F' = exp(e' - e) F. In 2D, dev is the deviator in the plane.
"""

import functools

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.materials.lame import lame_lambda, lame_mu
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["cam_clay"]

_ITERATIONS = 20
"""Largest number of Newton iterations for x; two to five are needed."""

_OUTER = 40
"""Largest number of iterations for v'; one to three are needed, and bisection where hardening is very strong."""

_ROUNDING = wp.constant(real({wp.float32: 1e-7, wp.float64: 1e-14}[real]))


@wp.struct
class Clay:
    """A trial state, and the constants of its material.

    shear: (q / M)^2 [Pa^2].
    p: Pressure [Pa].
    volume: tr(e) [1].
    v: Logarithm of the plastic volume ratio before the step [1].
    a: 3 / M^2 [1].
    b: K / mu [1].
    K: Bulk modulus [Pa].
    p_0: Initial preconsolidation pressure [Pa].
    beta: Cohesion [1].
    xi: Hardening coefficient [1].
    """

    shear: real
    p: real
    volume: real
    v: real
    a: real
    b: real
    K: real
    p_0: real
    beta: real
    xi: real


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
    """The root x >= 0 at which the first result of `ellipse` is r^2."""
    x = real(0.0)
    for _ in range(_ITERATIONS):
        value, slope = ellipse(x, shear, D, a, b)
        step = real(2.0) * value * (real(1.0) - wp.sqrt(value) / r) / slope  # of 1 / sqrt(value) - 1 / r
        x += step
        if step <= real(1e-7) * x:
            break
    return x


@wp.func
def strength_of(s: Clay, y: real):
    """The preconsolidation pressure p_c for v' = y."""
    return s.p_0 * wp.exp(-s.xi * y)


@wp.func
def is_beyond(s: Clay, p_c: real):
    """Whether the trial state is outside the ellipse of the preconsolidation pressure p_c."""
    return s.shear + (s.p + s.beta * p_c) * (s.p - p_c) > real(0.0)


@wp.func
def equations(s: Clay, x: real, y: real):
    """The residuals h and g at x and v' = y, and their partial derivatives h_x, h_y, g_x, g_y."""
    p_c = strength_of(s, y)
    center = real(0.5) * (real(1.0) - s.beta) * p_c
    r = real(0.5) * (real(1.0) + s.beta) * p_c
    D = s.p - center
    w = real(1.0) / (real(1.0) + s.b * x)
    value, h_x = ellipse(x, s.shear, D, s.a, s.b)
    h_y = s.xi * p_c * (D * w * w * (real(1.0) - s.beta) + r * (real(1.0) + s.beta))
    g = y - s.v - s.volume - (center + D * w) / s.K
    g_x = s.b * w * w * D / s.K
    g_y = real(1.0) + s.xi * center * (real(1.0) - w) / s.K
    return value - r * r, g, h_x, h_y, g_x, g_y


@wp.func
def root_at(s: Clay, y: real):
    """The root x of h for v' = y (0 if the trial is in the ellipse), g at this root, and the total derivative dg/dy."""
    p_c = strength_of(s, y)
    if not is_beyond(s, p_c):
        return real(0.0), y - s.v, real(1.0)
    center = real(0.5) * (real(1.0) - s.beta) * p_c
    x = root_of(s.shear, s.p - center, s.a, s.b, p_c - center)
    _h, g, h_x, h_y, g_x, g_y = equations(s, x, y)
    return x, g, g_y - g_x * h_y / h_x


@wp.func
def flow_of(s: Clay):
    """The solution x and v' of h = g = 0 for a trial state outside the ellipse; its adjoint does nothing."""
    y = s.v
    x, g, slope = root_at(s, y)
    low = y
    high = y + s.volume + strength_of(s, y) / s.K
    if g > real(0.0):
        low = y - g
        high = y
    for _ in range(_OUTER):
        if wp.abs(g) <= _ROUNDING * wp.abs(slope) * (wp.abs(y) + real(1e-3)):
            break
        if g < real(0.0):
            low = y
        else:
            high = y
            if y <= low:
                low = y - real(2.0) * (s.v - y)
        ahead = y - g / slope
        if not (ahead > low and ahead < high):
            ahead = real(0.5) * (low + high)
        y = ahead
        x, g, slope = root_at(s, y)
    return x, y


@wp.func_grad(flow_of)
def adj_flow_of(s: Clay, adj_x: real, adj_y: real):
    wp.adjoint[s].p += real(0.0)


@functools.cache
def cam_clay(dim: int) -> wp.Function:
    """Warp function (F, v, E, nu, p_0, M, beta, xi) -> (F', v'): elastic deformation and plastic volume after the flow.

    v and v' are logarithms of the plastic volume ratio. At the kink f = 0 the derivative is taken on the elastic side.
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
        s = Clay()
        s.shear = real(6.0) * mu * mu * wp.ddot(dev, dev) / (M * M)
        s.p = -K * volume
        s.volume = volume
        s.v = v
        s.a = real(3.0) / (M * M)
        s.b = K / mu
        s.K = K
        s.p_0 = p_0
        s.beta = beta
        s.xi = xi
        F_out = F
        v_out = v
        if is_beyond(s, strength_of(s, v)):
            if strength_of(s, v + volume) < negligible * mu:
                F_out = exp(-e) @ F
                v_out = v + volume
            else:
                x, y = flow_of(s)
                h, g, h_x, h_y, g_x, g_y = equations(s, x, y)
                det = h_x * g_y - h_y * g_x
                x -= (g_y * h - h_y * g) / det  # carry the derivatives of the roots
                y -= (h_x * g - g_x * h) / det
                center = real(0.5) * (real(1.0) - beta) * strength_of(s, y)
                left = -(center + (s.p - center) / (real(1.0) + s.b * x)) / K
                F_out = exp((left - volume) / d * I - s.a * x / (real(1.0) + s.a * x) * dev) @ F
                v_out = v + volume - left
        return F_out, v_out

    return cam_clay_return
