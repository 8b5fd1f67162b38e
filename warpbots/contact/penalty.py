"""The penalty contact of DiffHand: a force that grows with depth, with damping and friction.

Let d < 0 be the signed distance of a point to a solid, n the gradient of d, and u the velocity of the point relative to
the solid. The contact exerts the pressure N and the stress F on the point:

    N = -d max(0, k - c d'),   d' = n . u                      (the damping term c d d' n is continuous at d = 0)
    F = N n - min(k_t, mu N / |u_t|) u_t,   u_t = u - n (n . u) / (n . n)

with the stiffness k [Pa/m], the damping c [Pa s/m^2], the viscosity k_t [Pa s/m] inside the friction cone, and the
friction coefficient mu. The force is F times the area of the point (Xu et al. 2021, section III-B; Geilinger et al.
2020). The force never pulls. If the distance has no gradient (n = 0), there is no normal direction, and u_t = u. A body
that impacts at speed v rebounds at the speed r, with a = c / k (Hunt and Crossley 1975):

    ln(1 + a v) - a v = ln(1 - a r) + a r.

So a faster impact keeps a smaller fraction of its speed. A sticking point creeps at the speed shear stress / k_t. A
coefficient of restitution e bounds the damping, as the friction coefficient bounds the shear stress:

    N = -d (k - min(max(c d', -b k), b k)),   b = (1 - e^2) / (1 + e^2)

If the bound is reached, the stiffness of a surface during unloading is e^2 times the stiffness during loading (Walton &
Braun 1986), and the surface returns the fraction e^2 of the work, for every speed, mass, stiffness and number of
points. At rest the stiffness is k, as without the bound. At any speed, r follows from v in units of s = b k / c:

    R(v / s, b) = R(r / s, -b),   R(x, b) = x / b - ln(1 + b x) / b^2                 for x <= 1,
                                  R(x, b) = R(1, b) + (x^2 - 1) / (2 (1 + b))         for x > 1.
"""

import warp as wp

from warpbots.numerics import positive_part

__all__ = ["TOUCH", "damping_bounds", "penalty_force", "penalty_tangents", "sticking_margin"]

_scalar, _vec3, _mat33 = wp.float64, wp.vec3d, wp.mat33d
_ZERO, _ONE = (wp.constant(_scalar(c)) for c in (0.0, 1.0))
_part = positive_part(_scalar)

_TURN = wp.constant(_scalar(1e-3))  # rotation of the force of a contact that slides [rad]
TOUCH = wp.constant(_scalar(1e-13))
"""Distance up to which a point counts as touching, for rounding [m]; it has no force, but the derivative of contact."""


@wp.func
def _square(n: _vec3):
    """n . n, or 1 if n = 0; serves as the denominator of fractions whose numerator vanishes for n = 0."""
    nn = wp.dot(n, n)
    if nn == _ZERO:
        nn = _ONE
    return nn


@wp.func
def damping_bounds(k: _scalar, e: _scalar, bounded: int):
    """Lower and upper bound of k - c d' for the coefficient of restitution e; 0 and infinity if `bounded` is 0."""
    least = _scalar(0.0)
    most = _scalar(wp.inf)
    if bounded == 1:
        most = _scalar(2.0) * k / (_ONE + e * e)
        least = e * e * most
    return least, most


@wp.func
def penalty_force(
    d: _scalar, n: _vec3, u: _vec3, k: _scalar, c: _scalar, least: _scalar, most: _scalar, mu: _scalar, k_t: _scalar
):
    """Stress F on a point in contact, from pressure and friction [Pa], for d <= TOUCH.

    The module docstring defines the symbols. `least` and `most` are the results of `damping_bounds`.
    """
    along = wp.dot(n, u)
    N = _part(-d, TOUCH) * wp.min(most, wp.max(least, k - c * along))
    u_t = u - n * (along / _square(n))
    drag = _scalar(0.0)
    speed2 = wp.dot(u_t, u_t)
    if k_t * k_t * speed2 > mu * mu * N * N:
        drag = mu * N / wp.sqrt(speed2)
    elif mu * N > _ZERO:  # a point at rest without friction slides
        drag = k_t
    return N * n - drag * u_t


@wp.func
def sticking_margin(
    d: _scalar, n: _vec3, u: _vec3, k: _scalar, c: _scalar, least: _scalar, most: _scalar, mu: _scalar, k_t: _scalar
):
    """Change of velocity that turns sticking into sliding, sliding into sticking, or friction by 1e-3 rad [m/s].

    Infinite for a point that touches within rounding errors, for example where two faces lie in one plane.
    """
    along = wp.dot(n, u)
    N = -d * wp.min(most, wp.max(least, k - c * along))
    margin = _scalar(wp.inf)
    if d < -TOUCH and mu * N > _ZERO and k_t > _ZERO:
        speed = wp.length(u - n * (along / _square(n)))
        margin = wp.abs(speed - mu * N / k_t)
        if speed > mu * N / k_t:
            margin = wp.min(margin, _TURN * speed)
    return margin


@wp.func
def penalty_tangents(
    d: _scalar, n: _vec3, u: _vec3, k: _scalar, c: _scalar, least: _scalar, most: _scalar, mu: _scalar, k_t: _scalar
):
    """Derivatives of `penalty_force` with respect to the distance d, the gradient n and the velocity u."""
    nn = _square(n)
    along = wp.dot(n, u)
    damped = k - c * along
    push = wp.min(most, wp.max(least, damped))
    depth = wp.max(-d, _ZERO)
    N = depth * push
    m = along / nn
    u_t = u - m * n
    N_n = _vec3()
    N_u = _vec3()
    if damped > least and damped < most:
        N_n = -(depth * c) * u
        N_u = -(depth * c) * n
    one = wp.identity(n=3, dtype=_scalar)
    t_n = -m * one - wp.outer(n, (u - _scalar(2.0) * m * n) / nn)
    drag = _mat33()
    to = n  # direction of the force that grows with N
    speed2 = wp.dot(u_t, u_t)
    if k_t * k_t * speed2 > mu * mu * N * N:
        speed = wp.sqrt(speed2)
        e = u_t / speed
        drag = (mu * N / speed) * (one - wp.outer(e, e))
        to = n - mu * e
    elif mu * N > _ZERO:
        drag = k_t * one
    F_n = wp.outer(to, N_n) + N * one - drag @ t_n
    F_u = wp.outer(to, N_u) - drag @ (one - wp.outer(n, n) / nn)
    return -push * to, F_n, F_u
