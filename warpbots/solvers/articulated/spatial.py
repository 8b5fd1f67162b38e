"""Spatial vectors: twists and wrenches about the origin of the world (Featherstone 2008, "Rigid Body Dynamics").

A twist is (w, v) with the angular velocity w and the velocity v of the point of the body that is at the origin of the
world. A wrench is (torque about the origin of the world, force). Twists and wrenches are in world axes, so that
relative twists simply add. Articulated bodies always use double precision, even if the process is set to single
precision, because contact is stiff.
"""

import numpy as np
import warp as wp

__all__ = [
    "Twist",
    "angular",
    "cross_columns",
    "cross_force",
    "cross_motion",
    "linear",
    "mat33",
    "mat66",
    "momentum",
    "numpy_scalar",
    "outer_cross",
    "quat",
    "scalar",
    "spatial",
    "unit_quaternion",
    "vec3",
]

scalar = wp.float64
"""Scalar of articulated bodies."""

numpy_scalar = np.float64
"""NumPy scalar type of the same width."""

vec3, mat33, quat = wp.vec3d, wp.mat33d, wp.quatd
Twist = wp.spatial_vectord
mat66 = wp.spatial_matrixd


@wp.func
def spatial(angular: vec3, linear: vec3):
    """Build the spatial vector (angular, linear)."""
    return Twist(angular[0], angular[1], angular[2], linear[0], linear[1], linear[2])


@wp.func
def angular(a: Twist):
    """First three components of a spatial vector: the angular velocity of a twist or the torque of a wrench."""
    return vec3(a[0], a[1], a[2])


@wp.func
def linear(a: Twist):
    """Last three components of a spatial vector: the velocity v of a twist or the force of a wrench."""
    return vec3(a[3], a[4], a[5])


@wp.func
def cross_motion(a: Twist, b: Twist):
    """Spatial product a x b: the rate of change of a twist b that moves with the twist a."""
    w = angular(a)
    return spatial(wp.cross(w, angular(b)), wp.cross(w, linear(b)) + wp.cross(linear(a), angular(b)))


@wp.func
def cross_force(a: Twist, f: Twist):
    """Spatial product a x* f: the rate of change of a wrench f that moves with the twist a."""
    w = angular(a)
    return spatial(wp.cross(w, angular(f)) + wp.cross(linear(a), linear(f)), wp.cross(w, linear(f)))


@wp.func
def momentum(m: scalar, mc: vec3, J: mat33, a: Twist):
    """Product I a of a spatial inertia I and a twist (or acceleration) a.

    I consists of the mass m, the first moment mc and the moments of inertia J about the origin of the world.
    """
    w = angular(a)
    v = linear(a)
    return spatial(J @ w + wp.cross(mc, v), m * v - wp.cross(mc, w))


@wp.func
def cross_columns(a: vec3, J: mat33):
    """Product [a]x J of the cross product matrix of a and the matrix J, column by column."""
    x = wp.cross(a, vec3(J[0, 0], J[1, 0], J[2, 0]))
    y = wp.cross(a, vec3(J[0, 1], J[1, 1], J[2, 1]))
    z = wp.cross(a, vec3(J[0, 2], J[1, 2], J[2, 2]))
    return wp.matrix_from_cols(x, y, z)


@wp.func
def outer_cross(a: vec3, b: vec3):
    """Product [a]x [b]x = b a^T - (a . b) 1 of the cross product matrices of a and b."""
    return wp.outer(b, a) - wp.dot(a, b) * wp.identity(n=3, dtype=scalar)


@wp.func
def unit_quaternion(q: quat):
    """Rotation matrix of q / |q|, for a quaternion q = (x, y, z, w) of any length."""
    return wp.quat_to_matrix(wp.normalize(q))
