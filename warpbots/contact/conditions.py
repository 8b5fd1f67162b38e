"""The contact conditions of ChainQueen §3.2 and Coulomb's law, once for all solvers.

A condition maps the velocity v of something that touches a static surface with outward normal n to the velocity it is
allowed to have. Its derivative is the one that Warp generates; at the kinks (v . n = 0, and the edge of the friction
cone) it is the derivative of the branch that the code takes.
"""

import functools

import numpy as np
import warp as wp

from warpbots.math import real, vector
from warpbots.scene import CONDITIONS, Obstacle

__all__ = ["CODES", "coefficients", "constrain"]

CODES = {name: code for code, name in enumerate(CONDITIONS)}
"""Integer of each condition, as kernels know it."""

_STICKY = wp.constant(CODES["sticky"])
_SLIP = wp.constant(CODES["slip"])
_SEPARATE = wp.constant(CODES["separate"])


def coefficients(obstacles: tuple[Obstacle, ...]) -> np.ndarray:
    """Coulomb coefficient of each obstacle, shape (n_obstacles,): 0 where its condition knows no friction."""
    return np.array([o.friction if o.condition == "friction" else 0.0 for o in obstacles])


@functools.cache
def constrain(dim: int) -> wp.Function:
    """Warp function v' = constrain(v, n, condition, mu) for vectors of `dim` components.

    ==========  ==========================================================================
    sticky      v' = 0
    slip        v' = v - (v . n) n
    friction    v' = v where v . n >= 0; else v_t max(0, 1 + mu (v . n) / |v_t|)
    separate    friction with mu = 0
    ==========  ==========================================================================
    """
    vec = vector(dim)

    @wp.func
    def constrain_velocity(v: vec, n: vec, condition: int, mu: real):
        """Velocity that remains after contact with a surface of outward normal n [m/s]."""
        v_n = wp.dot(v, n)
        v_t = v - v_n * n
        allowed = v_t
        if condition == _STICKY:
            allowed = vec()
        elif condition != _SLIP:
            if v_n >= real(0.0):
                allowed = v
            else:
                c = mu
                if condition == _SEPARATE:
                    c = real(0.0)
                speed = wp.length(v_t)
                if speed <= -c * v_n:
                    allowed = vec()
                else:
                    allowed = (real(1.0) + c * v_n / speed) * v_t
        return allowed

    return constrain_velocity
