"""Elementary joints: their coordinates, and the change of the coordinates by a displacement in a step.

Every joint is a chain of elementary joints: a planar joint consists of two prismatic joints, a free joint of three
prismatic joints and a ball joint. A step starts at coordinates q and displaces them by x. It ends at q + x for an angle
or a length, and at q cay(x) for the quaternion of a ball joint, with the Cayley map

    cay(x) = (x / 2, 1) / sqrt(1 + |x|^2 / 4),

which is the rotation by 2 atan(|x| / 2) about x. The map needs no trigonometric function, and has no singularity for
rotations below pi in a step. While x changes at a rate r, the body has the angular velocity s (r - x × r / 2) in the
axes of the body, with s = 1 / (1 + |x|^2 / 4).
"""

import warp as wp

from warpbots.solvers.articulated.spatial import quat, scalar, vec3

__all__ = [
    "BALL",
    "COORDINATES",
    "FIXED",
    "FREEDOM",
    "PRISMATIC",
    "REVOLUTE",
    "cayley",
    "cayley_rate",
    "cayley_tangent",
    "cayley_velocity",
    "freedom_of",
    "logarithm",
    "logarithm_tangent",
    "rotation_about",
]

FIXED, PRISMATIC, REVOLUTE, BALL = (wp.constant(k) for k in range(4))

FREEDOM = (0, 1, 1, 3)
"""Number of velocities of each kind of elementary joint."""

COORDINATES = (0, 1, 1, 4)
"""Number of coordinates of each kind: the orientation of a ball is a quaternion (x, y, z, w)."""

_HALF, _QUARTER = wp.constant(scalar(0.5)), wp.constant(scalar(0.25))
_ONE, _TWO = wp.constant(scalar(1.0)), wp.constant(scalar(2.0))


@wp.func
def freedom_of(kind: int):
    """Number of velocities of an element of the given kind."""
    n = int(1)
    if kind == FIXED:
        n = 0
    if kind == BALL:
        n = 3
    return n


@wp.func
def rotation_about(axis: vec3, angle: scalar):
    """Matrix of the rotation by `angle` [rad] about a unit axis (formula of Rodrigues)."""
    c = wp.cos(angle)
    return (
        c * wp.identity(n=3, dtype=scalar) + wp.sin(angle) * wp.skew(axis) + (_ONE - c) * wp.outer(axis, axis)
    )  # fmt: skip


@wp.func
def _shrink(x: vec3):
    """The factor s = 1 / (1 + |x|^2 / 4) of the angular velocity."""
    return _ONE / (_ONE + _QUARTER * wp.dot(x, x))


@wp.func
def cayley(x: vec3):
    """Unit quaternion cay(x) of the displacement x."""
    n = wp.sqrt(_shrink(x))
    return quat(_HALF * n * x[0], _HALF * n * x[1], _HALF * n * x[2], n)


@wp.func
def cayley_velocity(x: vec3, rate: vec3):
    """Angular velocity of the body, in the axes of the body, while the displacement x changes at `rate`."""
    return _shrink(x) * (rate - _HALF * wp.cross(x, rate))


@wp.func
def cayley_tangent(x: vec3):
    """Matrix T(x) that maps the rate of x to the angular velocity in the axes of the body."""
    return _shrink(x) * (wp.identity(n=3, dtype=scalar) - _HALF * wp.skew(x))


@wp.func
def cayley_rate(x: vec3, rate: vec3):
    """Derivative of T(x) rate with respect to x at constant `rate`, with the matrix T(x) from `cayley_tangent`."""
    v = cayley_velocity(x, rate)
    return _HALF * _shrink(x) * (wp.skew(rate) - wp.outer(v, x))


@wp.func
def logarithm(q: quat):
    """Rotation vector of a unit quaternion; its length is in [0, pi]."""
    v = vec3(q[0], q[1], q[2])
    w = q[3]
    if w < scalar(0.0):
        v = -v
        w = -w
    s = wp.dot(v, v)
    factor = _TWO / w  # series of 2 asin(|v|) / |v|, where the quotient would lose digits
    if s > scalar(1.0e-6):
        n = wp.sqrt(s)
        factor = _TWO * wp.atan2(n, w) / n
    else:
        factor = _TWO + s / scalar(3.0) + scalar(3.0) * s * s / scalar(20.0)
    return factor * v


@wp.func
def logarithm_tangent(phi: vec3):
    """Derivative of the rotation vector phi with respect to a small rotation about the axes of the body."""
    s = wp.dot(phi, phi)
    b = _ONE / scalar(12.0) + s / scalar(720.0) + s * s / scalar(30240.0)
    if s > scalar(1.0e-4):
        n = wp.sqrt(s)
        b = (_ONE - _HALF * n / wp.tan(_HALF * n)) / s
    K = wp.skew(phi)
    return wp.identity(n=3, dtype=scalar) + _HALF * K + b * (K @ K)
