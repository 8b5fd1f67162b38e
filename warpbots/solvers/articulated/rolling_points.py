"""Contact points that move over their body, as on a rolling ball, capsule or cylinder.

A group of points is of one of three kinds:

    BALLS   Points fixed to the body, with balls of radius r around them: a sphere, or points of a surface with r = 0.
    AXIS    A capsule: balls at both ends of its axis, and a ball at the point of the axis nearest to the solid.
    RIMS    A cylinder: four points on each rim, first the deepest point, then three points at quarter turns; and one
            point on the lateral surface, beside the point of the axis nearest to the solid.

The distance of a ball is the distance of its centre minus r, which is exact for every signed distance. The force acts
at the point of the ball nearest to the solid. Along an axis p + t S, |t| <= 1/2, the nearest point minimises

    D(p + t S) + b t^2 / 2,   b = 1e-3 |S|,

for a convex distance function D. Without the second term the point would jump from end to end as an axis rolls over a
flat face; the second term acts as if the axis were bent by |S| / 8000. On a rim with the half axes E_1, E_2 the deepest
point is in the direction

    (cos a, sin a) ~ -(n . E_1, n . E_2)

with the gradient n of the distance at the centre of the rim. The angle a is undefined if the axis is along n, but then
its value does not matter: the wrench of four points at quarter turns, all in contact, is the same for every a. If the
sine of the angle between the axis and n is below 1e-6, a is set to 0.
"""

import warp as wp

from warpbots.contact.solid import Solids, shape_distance
from warpbots.solvers.articulated.spatial import scalar, vec3

__all__ = ["AXIS", "BALLS", "BEND", "RIMS", "nearest_on_axis", "quarter", "rim_direction", "slides"]

BALLS, AXIS, RIMS = (wp.constant(k) for k in range(3))

BEND = wp.constant(scalar(1e-3))
"""Bending b of an axis, per length [1]."""

_END = wp.constant(scalar(0.5))
_STRAIGHT = wp.constant(scalar(1e-12))  # square of the sine of the angle between axis and slope
_CLOSE = wp.constant(scalar(1e-15))
_ZERO, _ONE = (wp.constant(scalar(c)) for c in (0.0, 1.0))


@wp.func
def slides(kind: int, i: int):
    """Whether point i of a group of the given kind slides along the axis of its shape."""
    return (kind == AXIS and i == 2) or (kind == RIMS and i == 8)


@wp.func
def _slope(solids: Solids, w: int, s: int, y: vec3, S: vec3, t: scalar):
    """First and second derivative, with respect to t, of the distance of the bent axis y + t S to solid s."""
    _d, n, C = shape_distance(solids, w, s, y + t * S, 1)
    b = BEND * wp.length(S)
    return wp.dot(n, S) + b * t, wp.dot(S, C @ S) + b


@wp.func
def nearest_on_axis(solids: Solids, w: int, s: int, y: vec3, S: vec3):
    """Parameter t at which a bent axis y + t S is nearest to solid s, and the second derivative of the distance there.

    y and S are in the frame of the solid. At an end of the axis the second derivative is returned as 0, because t is
    then constant.
    """
    low = -_END
    high = _END * _ONE
    t = _ZERO * _ONE
    step, curvature = _slope(solids, w, s, y, S, low)
    if step >= _ZERO:
        return low, _ZERO
    step, curvature = _slope(solids, w, s, y, S, high)
    if step <= _ZERO:
        return high, _ZERO
    for _k in range(60):
        step, curvature = _slope(solids, w, s, y, S, t)
        if step > _ZERO:
            high = t
        else:
            low = t
        new = t - step / curvature
        if new <= low or new >= high:
            new = _END * (low + high)
        moved = wp.abs(new - t)
        t = new
        if moved < _CLOSE:
            break
    return t, curvature


@wp.func_grad(nearest_on_axis)
def adj_nearest_on_axis(solids: Solids, w: int, s: int, y: vec3, S: vec3, adj_t: scalar, adj_curvature: scalar):
    """Adjoint of `nearest_on_axis`, which does nothing.

    Callers add one Newton step, whose derivative is the derivative of the minimising t.
    """


@wp.func
def rim_direction(n: vec3, E1: vec3, E2: vec3):
    """Cosine and sine of the angle a of the deepest point of a rim, and 1 / ((n . E1)^2 + (n . E2)^2).

    The third result is 0 if the axis of the rim is along n.
    """
    a = -wp.dot(n, E1)
    b = -wp.dot(n, E2)
    size2 = a * a + b * b
    c = _ONE * _ONE
    s = _ZERO * _ONE
    inverse = _ZERO * _ONE
    if size2 > _STRAIGHT * wp.dot(E1, E1):
        size = wp.sqrt(size2)
        c = a / size
        s = b / size
        inverse = _ONE / size2
    return c, s, inverse


@wp.func
def quarter(c: scalar, s: scalar, i: int):
    """Cosine and sine of an angle after i quarter turns."""
    k = i % 4
    cosine = wp.where(k % 2 == 0, c, s)
    sine = wp.where(k % 2 == 0, s, c)
    return wp.where(k == 1 or k == 2, -cosine, cosine), wp.where(k >= 2, -sine, sine)
