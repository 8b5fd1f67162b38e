"""Estimates the error of a point of an iteration, to which the criterion of convergence refers.

For an iteration with the derivative G and the solution z*, a correction f = (1 - G) (z* - z) is not the error z* - z:
if G is near 1, as for the bending of slender bodies, the error is a thousand times as large. The error is estimated
from the last two moves d of the accelerated iteration, in which such modes are scaled up, and from the factor q by
which the norm of f fell per point over the last five points,

    |z* - z| ~ q / (1 - q) max |d|,

or from Newton steps if there are any (`newton`). docs/design/projective.md compares criteria.
"""

import numpy as np
import warp as wp

from warpbots.numerics import real_numpy
from warpbots.solvers.projective.iterate.anderson_arrays import NORMS, IterationState

__all__ = ["HUGE", "Criterion", "clear_estimate", "criterion", "estimate", "is_rounding", "note"]

_ZERO, _ONE, _TWO, HUGE = (wp.constant(wp.float64(c)) for c in (0.0, 1.0, 2.0, 1e300))
_SPAN = wp.constant(NORMS - 1)  # points over which the rate of convergence is measured
_SLOWEST = wp.constant(wp.float64(0.02))  # least 1 - q: rounding hides slower convergence
_STALLS = wp.constant(wp.float64(0.9))  # largest rate of the last two points: rounding looks like higher rates
_LONG = wp.constant(wp.float64(100.0))  # Newton step [tolerances] whose error in single precision may exceed one
_CHECKS = wp.constant(4)  # Newton steps after which a long last one counts as noise
_EPS = wp.constant(wp.float64(np.finfo(real_numpy).eps))


@wp.struct
class Criterion:
    """Criterion for when an island has converged, or has failed.

    tolerance: Estimated error of the largest entry of the point at which it has converged [length].
    limit: Number of iterations after which it has failed.
    by_edge: Whether the unit of `tolerance` is the mean edge of an island; otherwise it is the largest entry of the
        point.
    newton_steps: Number of Newton steps that an island may wait for, if its second derivative is symmetric.
    needed: Number of Newton steps that such an island needs to converge.
    near: Correction at which an island waits for a Newton step [length].
    near_thin: `near` for an island with sheets [length].
    telling: Correction up to which a Newton step estimates the error of later points [length].
    """

    tolerance: wp.float64
    limit: int
    by_edge: int
    newton_steps: int
    needed: int
    near: wp.float64
    near_thin: wp.float64
    telling: wp.float64


def criterion(
    tolerance: float,
    limit: int,
    by_edge: bool = False,
    newton_steps: int = 0,
    needed: int = 0,
    near: float = 0.0,
    near_thin: float = 0.0,
    telling: float = 0.0,
) -> Criterion:
    """The criterion with these fields; by default, islands do not wait for Newton steps."""
    made = Criterion()
    made.tolerance, made.limit, made.by_edge = tolerance, limit, int(by_edge)
    made.newton_steps, made.needed, made.telling = newton_steps, needed, telling
    made.near, made.near_thin = near, near_thin
    return made


@wp.func
def clear_estimate(progress: IterationState, w: int):
    """Discard the estimate of the error."""
    progress.share[w] = _ONE
    progress.stalled[w] = 0
    progress.best[w] = HUGE
    progress.points[w] = 0
    progress.error_ratio[w] = _ZERO
    progress.newton_size[w] = HUGE


@wp.func
def note(progress: IterationState, w: int, norm: wp.float64, move: wp.float64):
    """Remember the norm of an accepted point, and the move that led to it."""
    norms = progress.norms[w]
    for i in range(_SPAN):
        norms[_SPAN - i] = norms[_SPAN - i - 1]
    norms[0] = norm
    progress.norms[w] = norms
    progress.moves[w] = wp.vec2d(move, progress.moves[w][0])
    progress.points[w] = progress.points[w] + 1


@wp.func
def is_rounding(progress: IterationState, w: int, correction: wp.float64):
    """Whether a correction is at the level of rounding of the solution without contact (`IterationState.free`)."""
    return correction <= _TWO * _EPS * progress.free[w]


@wp.func
def error_of(progress: IterationState, w: int, correction: wp.float64, told: int):
    """Estimated largest entry of the error, from Newton steps if `told`, else from moves; `HUGE` before two moves."""
    if told == 1:
        return wp.min(progress.newton_size[w], progress.error_ratio[w] * correction)
    if progress.points[w] < 3:
        return HUGE
    span = wp.min(progress.points[w] - 1, _SPAN)
    norms = progress.norms[w]
    lately = wp.min(wp.sqrt(norms[0] / norms[2]), _STALLS)
    rate = wp.max(wp.pow(norms[0] / norms[span], _ONE / wp.float64(span)), lately)
    return wp.max(progress.moves[w]) * rate / wp.max(_ONE - rate, _SLOWEST)


@wp.func
def estimate(
    progress: IterationState, w: int, iterations: int, symmetric: int, unit: wp.float64, edge: wp.float64,
    correction: wp.float64, enough: Criterion,
):  # fmt: skip
    """Write the estimated error of a point; returns the number of Newton steps that a solution needs.

    Rounding is the rounding of the point, or of the forces that hold it (`IterationState.held`).

    A correction below rounding does not show an error a thousand times as large. At the first point a Newton step has
    to estimate this error, and after a long Newton step another one. If the system of a Newton step was not solved, the
    ratio of the last iterate to the correction still bounds the error from below. An early Newton step tells less: it
    leaves the slow modes, which are the smaller part of a large correction.
    """
    size = correction
    most = symmetric * enough.newton_steps
    least = wp.min(enough.needed, most)
    noise = _TWO * _EPS * wp.max(unit, progress.held[w])
    rounding = correction <= noise
    known = progress.error_ratio[w] > _ZERO
    told = known and progress.correction[w] <= enough.telling * edge
    lost = told and progress.newton_size[w] == HUGE
    if lost or not rounding:
        size = wp.max(correction, error_of(progress, w, correction, int(told)))
    elif iterations == 1:
        least = wp.max(least, wp.min(most, 1))
    elif known and progress.newton_size[w] > _LONG * enough.tolerance * unit:
        least = wp.min(wp.min(progress.newton_steps[w] + 1, _CHECKS), most)
    if known and not told and progress.newton_size[w] > enough.tolerance * unit:
        least = wp.min(progress.newton_steps[w] + 1, most)
    progress.size[w] = size
    progress.enough[w] = wp.max(enough.tolerance * unit, wp.where(progress.held[w] > _ZERO, noise, _ZERO))
    return wp.where(correction > _ZERO, least, 0)
