"""The contact conditions of ChainQueen §3.2, and Coulomb's law of friction, for all solvers.

A condition maps the velocity v of a point in contact with a static surface of outward normal n to an admissible
velocity. Warp generates the derivative of this map. At the kinks of the map the derivative is one-sided: for v . n = 0
it is the derivative of a point that separates, at the edge of the friction cone the derivative of a point that sticks,
and at rest without friction the derivative of a point that slides.
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics import real, vector
from warpbots.scene import CONDITIONS, Obstacle

__all__ = ["CODES", "coefficients", "constrain", "extra_rest_friction"]

CODES = {name: code for code, name in enumerate(CONDITIONS)}
"""Code of each contact condition in kernels."""

_STICKY = wp.constant(CODES["sticky"])
_SLIP = wp.constant(CODES["slip"])
_SEPARATE = wp.constant(CODES["separate"])


def coefficients(obstacles: tuple[Obstacle, ...]) -> np.ndarray:
    """Coulomb coefficient of each obstacle, shape (n_obstacles,): 0 for conditions without friction."""
    return np.array([o.friction if o.condition == "friction" else 0.0 for o in obstacles])


def extra_rest_friction(obstacles: tuple[Obstacle, ...]) -> np.ndarray:
    """Static friction coefficient minus sliding friction coefficient of each obstacle [1], shape (n_obstacles,)."""
    rough = [o.condition == "friction" and o.static_friction is not None for o in obstacles]
    return np.array([o.static_friction - o.friction if r else 0.0 for o, r in zip(obstacles, rough, strict=True)])


@functools.cache
def constrain(dim: int, scalar: type = real) -> wp.Function:
    """Warp function v' = constrain(v, n, push, condition, mu, extra) for vectors of `dim` components of type `scalar`.

    ==========  ==========================================================================================
    sticky      v' = 0
    slip        v' = v_t, the component of v perpendicular to n
    friction    v' = v + push n - (the smaller of mu push and |v_t|) v_t / |v_t|; v' = v if push <= 0
    separate    friction with mu = 0
    ==========  ==========================================================================================

    `push` is the change of velocity along n that the pressure of the surface causes; for a rigid surface it is -v . n.
    A point that sticks continues to stick while |v_t| is at most (mu + extra) push.
    """
    vec = vector(dim, scalar)

    @wp.func
    def constrain_velocity(v: vec, n: vec, push: scalar, condition: int, mu: scalar, extra: scalar):
        """Velocity v' after contact with a surface of outward normal n [m/s]."""
        v_n = wp.dot(v, n)
        v_t = v - v_n * n
        allowed = v_t
        if condition == _STICKY:
            allowed = vec()
        elif condition != _SLIP:
            if push <= scalar(0.0):
                allowed = v
            else:
                slide = mu * push
                stick = (mu + extra) * push
                if condition == _SEPARATE:
                    slide = scalar(0.0)
                    stick = scalar(0.0)
                speed = wp.length(v_t)
                allowed = v_t + (v_n + push) * n
                if speed > stick:
                    allowed = (scalar(1.0) - slide / speed) * v_t + (v_n + push) * n
                elif stick > scalar(0.0):
                    allowed = (v_n + push) * n
        return allowed

    return constrain_velocity
