"""Reasons to doubt the result of a search, in words, and the warning that says them."""

from collections.abc import Sequence
from statistics import median

__all__ = ["OptimizeWarning", "doubt_of_iterations"]

_CLEAR = 0.1
"""Part of the change of the loss from the start to the result above which a smaller loss is clearly smaller."""

_STEPS = "take smaller steps (learning rate, scale), another start or another method"
_CONSTRAINTS = (
    "take more iterations, with an AugmentedLagrangian a larger penalty or smaller steps at the end (a scheduler), or "
    "a larger allowed_violation if such a violation does not matter"
)


class OptimizeWarning(UserWarning):
    """The result of a search may be poor. The message says why, and what can be done."""

    def __init__(self, message: str):
        """Create the warning; `message` says why the result may be poor, and what can be done."""
        super().__init__(message)


def doubt_of_iterations(
    loss: Sequence[float], violation: Sequence[float], first: int, best: int, allowed: float, stays: bool
) -> str:
    """Why the best iteration may be a poor result, and the remedy, as a clause; empty if there is no reason.

    There are three reasons. No iteration fulfils the constraints. Or at least half of all iterations came after the
    best one, violate a constraint, and have a smaller loss; their median loss is clearly smaller, by more than a tenth
    of the change of the loss from the start to the best iteration. Then the search has found better results, but
    outside the constraints. Or no iteration is better than the first one, and the search has not converged there.

    Args:
        loss: Loss of each iteration, or mean over recent iterations.
        violation: Largest violation of a constraint in each iteration, or mean over recent iterations.
        first: Index of the first iteration that counts.
        best: Index of the best iteration.
        allowed: Largest violation with which a constraint counts as fulfilled.
        stays: Whether there is no reason to leave the first iteration, because the method has converged there.
    """
    if violation[best] > allowed:
        return (
            f"no iteration fulfils all constraints: the smallest violation is {violation[best]:.2g}, in iteration "
            f"{best}, and allowed_violation is {allowed:.2g}; {_CONSTRAINTS}"
        )
    outside = [i for i in range(best + 1, len(loss)) if violation[i] > allowed and loss[i] < loss[best]]
    if 2 * len(outside) >= len(loss) - first:
        there = median(loss[i] for i in outside)
        if loss[best] - there > _CLEAR * abs(loss[first] - loss[best]):
            least, most = (f(violation[i] for i in outside) for f in (min, max))
            return (
                f"the result is iteration {best} of {len(loss) - 1}, with a loss of {loss[best]:.5g}, although "
                f"{len(outside)} later iterations have a smaller loss, in the median {there:.5g}: they violate a "
                f"constraint by {least:.2g} to {most:.2g}, and allowed_violation is {allowed:.2g}; "
                f"{_CONSTRAINTS}"
            )
    if best == first and not stays:
        return (
            f"no iteration is better than the {'start' if first == 0 else f'mean of the first {first + 1}'}, with a "
            f"loss of {loss[first]:.5g}, after {len(loss) - 1} iterations; {_STEPS}"
        )
    return ""
