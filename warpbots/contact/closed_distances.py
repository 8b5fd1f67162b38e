"""Signed distances in closed form, with gradient and Hessian, in the frame of the solid: double precision, 3D."""

import warp as wp

__all__ = ["box_distance", "capsule_distance", "cylinder_distance", "sphere_distance"]

_scalar, _vec3, _mat33 = wp.float64, wp.vec3d, wp.mat33d
_ZERO, _ONE = wp.constant(_scalar(0.0)), wp.constant(_scalar(1.0))


@wp.func
def sphere_distance(y: _vec3, radius: _scalar, flat: _vec3, curved: int):
    """Distance to a sphere about the origin, gradient and Hessian; y must be 0 along axes at which `flat` is 0."""
    r = wp.length(y)
    n = _vec3(flat[0], _ZERO, _ZERO)
    C = _mat33()
    if r > _ZERO:
        n = y / r
        if curved == 1:
            C = (wp.diag(flat) - wp.outer(n, n)) / r
    return r - radius, n, C


@wp.func
def box_distance(y: _vec3, half: _vec3, curved: int):
    """Distance, gradient and Hessian of a box with half edges `half` about the origin."""
    d = half[0]
    n = _vec3()
    C = _mat33()
    beyond = _vec3()
    flat = _vec3()
    nearest = int(0)
    depth = wp.abs(y[0]) - half[0]
    for a in range(3):
        q = wp.abs(y[a]) - half[a]
        if q > depth:
            depth = q
            nearest = a
        if q > _ZERO:
            beyond[a] = wp.where(y[a] < _ZERO, -q, q)
            flat[a] = _ONE
    if depth > _ZERO:
        d, n, C = sphere_distance(beyond, _ZERO, flat, curved)
    else:
        d = depth
        n[nearest] = wp.where(y[nearest] < _ZERO, -_ONE, _ONE)
    return d, n, C


@wp.func
def capsule_distance(y: _vec3, radius: _scalar, half: _scalar, curved: int):
    """Distance, gradient and Hessian of a capsule along z; its axis has the half length `half`."""
    along = y[2] - wp.clamp(y[2], -half, half)
    flat = _vec3(_ONE, _ONE, wp.where(along == _ZERO, _ZERO, _ONE))
    return sphere_distance(_vec3(y[0], y[1], along), radius, flat, curved)


@wp.func
def cylinder_distance(y: _vec3, radius: _scalar, half: _scalar, curved: int):
    """Distance, gradient and Hessian of a cylinder along z of half length `half`."""
    d, n, C = sphere_distance(_vec3(y[0], y[1], _ZERO), radius, _vec3(_ONE, _ONE, _ZERO), curved)
    above = wp.abs(y[2]) - half
    up = wp.where(y[2] < _ZERO, -_ONE, _ONE)
    if d > _ZERO and above > _ZERO:  # nearest to the rim
        gap = wp.sqrt(d * d + above * above)
        m = (d * n + above * up * _vec3(_ZERO, _ZERO, _ONE)) / gap
        C = (wp.outer(n, n) + d * C + wp.diag(_vec3(_ZERO, _ZERO, _ONE)) - wp.outer(m, m)) / gap
        d = gap
        n = m
    elif above > d:
        d = above
        n = _vec3(_ZERO, _ZERO, up)
        C = _mat33()
    return d, n, C
