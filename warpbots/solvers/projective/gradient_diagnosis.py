"""Explains in words why the adjoint of a step has no result."""

import numpy as np

from warpbots.solvers.projective.contact.contacts_without_gradient import loosest
from warpbots.solvers.projective.lost_gradients import FROZEN, INFINITE, ROOM, TURNS
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import bodies_of

__all__ = ["gradient_diagnosis"]


def gradient_diagnosis(
    model: ProjectiveModel, first: int, substeps: int, tolerance: float, max_iterations: int
) -> str | None:
    """Say in one sentence why the adjoint of a step had no result, and forget it; None if every adjoint had one.

    Args:
        model: The model.
        first: Index of the first world of the model in the simulation.
        substeps: Number of steps of a control interval.
        tolerance: Tolerance of a step [mean edges].
        max_iterations: Number of iterations after which an adjoint has failed.
    """
    loss = model.workspace.loss
    cause, passed = loss.cause.numpy().copy(), loss.passed.numpy()
    loss.cause.zero_()
    if not cause.any():
        return None
    at = np.where(cause > 0, loss.at.numpy(), np.iinfo(np.int32).max)
    w = int(at.argmin())  # adjoints run backwards: the others may follow from this one
    length, cause = float(loss.length.numpy()[w]), int(cause[w])
    number = f", substep {int(passed[w] - at[w]) % substeps}," if substeps > 1 else ""
    step = f"a step of {length:.3g} s in world {first + w}{number}"
    if cause in (FROZEN, TURNS):
        return f"{_plane(model, w, cause, step, tolerance)}: use a shorter step or smaller cells"
    if cause == ROOM:
        return f"too many nodes are in contact at once in the adjoint of {step}: use larger cells, or fewer worlds"
    iterations, ratio = int(loss.iterations.numpy()[w]), float(loss.size.numpy()[w])
    if cause == INFINITE:
        return (
            f"the adjoint of {step} is not finite after {iterations} iterations, because a force of its elements or "
            f"contacts has no finite derivative at its end: use a shorter step, or smaller loads"
        )
    times = f"{ratio:.3g}" if ratio < 1e6 else "over 1e6"  # one that never fell is as large as a number can be
    return (
        f"the adjoint of {step} did not converge in {max_iterations} iterations (its estimated error is {times} "
        f"times the largest allowed one): use a shorter step, a larger tolerance (now {tolerance:g}) or "
        f"WARPBOTS_PRECISION=float64"
    )


def _plane(model: ProjectiveModel, w: int, cause: int, step: str, tolerance: float) -> str:
    """What happened to the plane of the pair in the record of a world."""
    loss, surface = model.workspace.loss, model.topology.surface
    node, place = loss.node.numpy()[w], loss.place.numpy()[w]
    corners = {tuple(sorted(face)) for face in surface.face.numpy().tolist()}
    features = ("a vertex", "a face") if tuple(sorted(node[1:].tolist())) in corners else ("an edge", "an edge")
    bodies = [bodies_of(model)[k] for k in model.pairs.body.numpy()[node[[0, -1]]]]
    one, other = (
        f"{feature} of {type(body).__name__} {body.name!r}" for feature, body in zip(features, bodies, strict=True)
    )
    where = ", ".join(f"{c:.4g}" for c in place)
    pair = f"{one} and {other} are in contact near ({where}) m"
    if cause == FROZEN:
        return (
            f"{pair}, at a plane that was frozen within {step}, because they passed through each other at planes that "
            f"follow them; a frozen plane has no gradient"
        )
    return (
        f"{pair}, at a plane that had not settled when {step} ended: it still changed by "
        f"{loss.size.numpy()[w]:.2g}, and a gradient needs {loosest(tolerance):.1g}"
    )
