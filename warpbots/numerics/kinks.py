"""The positive part, with the derivative 1 at its kink.

When bodies are at rest, elements that only pull or only push are at the kink of max(x, 0): a cable that is just taut,
threads that are as long as the matter at rest, a contact that just touches. At the kink the derivative of max(x, 0) may
be taken as 0 or 1. Here the derivative is 1, as for positive x, for which a control has an effect, so that training can
begin from rest. Numbers that are negative only because of rounding also have the derivative 1. The values are exactly
max(x, 0).
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics.scalars import real, real_numpy

__all__ = ["ROUNDING", "positive_part"]

ROUNDING = 32.0 * float(np.finfo(real_numpy).eps)
"""Width of a kink relative to the quantities whose difference is taken [1]; rounding moves a body at rest by 5 eps."""


@functools.cache
def positive_part(scalar: type = real) -> wp.Function:
    """Warp function part(x, width) = max(x, 0); its derivative with respect to x is 1 for x >= -width, otherwise 0."""

    @wp.func
    def part(x: scalar, width: scalar):
        """The positive part max(x, 0)."""
        return wp.max(x, scalar(0.0))

    @wp.func_grad(part)
    def adj_part(x: scalar, width: scalar, adj_ret: scalar):
        if x >= -width:
            wp.adjoint[x] += adj_ret

    return part
