"""The positive part, with the derivative of its growing side at the kink.

What pulls and never pushes is at its kink in the undeformed body: cables that are just taut, threads of the length of
matter. There the derivative of max(x, 0) is either 0 or 1. It is 1 here, the side on which a control has an effect, so
that training can begin from rest; and rounding does not decide, since what lies below 0 by rounding alone is at the
kink. Values are those of max(x, 0).
"""

import numpy as np
import warp as wp

from warpbots.numerics.scalars import real, real_numpy

__all__ = ["ROUNDING", "positive_part"]

ROUNDING = 32.0 * float(np.finfo(real_numpy).eps)
"""Width of a kink relative to the quantities whose difference decides [1]; a body at rest moves by 5 eps."""


@wp.func
def positive_part(x: real, width: real):
    """max(x, 0), whose derivative is 1 for x >= -width."""
    return wp.max(x, real(0.0))


@wp.func_grad(positive_part)
def adj_positive_part(x: real, width: real, adj_ret: real):
    if x >= -width:
        wp.adjoint[x] += adj_ret
