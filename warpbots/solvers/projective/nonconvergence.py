"""Why a step has no end, in words."""

import numpy as np

from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import where_lost, where_sunk

__all__ = ["diagnosis"]

_LONG_MEMORY = 40
"""Corrections that are worth remembering in long steps."""


def diagnosis(
    model: ProjectiveModel,
    before: dict[str, np.ndarray],
    after: dict[str, np.ndarray],
    dt: float,
    tolerance: float,
    max_iterations: int,
    memory: int,
) -> str:
    """One sentence on why `after`, one step on from `before`, is not finite.

    Args:
        model: Where the step was the last thing that ran.
        before: Fields of the last state as NumPy arrays.
        after: Fields of the bad state.
        dt: Length of the step [s].
        tolerance: Correction at which it would have converged [m].
        max_iterations: Corrections after which it has failed.
        memory: Corrections that the acceleration remembers.
    """
    for name, values in before.items():
        if not np.isfinite(values).all():
            return f"{name} was not finite before the step"
    scratch, it = model.scratch, model.scratch.matrix(dt).iteration
    w = int(np.argwhere(~np.isfinite(after["velocity"]).all(axis=(1, 2)))[0, 0])
    corrections, size = int(it.progress.iterations.numpy()[w]), float(it.progress.size.numpy()[w])
    shorter = f"use a shorter step (this one has {dt:.3g} s)"
    if sunk := where_sunk(model, w, before["position"][w]):
        return f"{sunk}; or {shorter}"
    columns = scratch.matrix(dt).compliance
    if int(columns.lacking.numpy()[0]):
        return (
            f"more nodes touch at once than there is room for: {len(scratch.touching)} nodes may, and what a force on "
            f"one does to all others is kept for {columns.owner.size} of them; use larger cells, or fewer worlds"
        )
    room, pairs, crossing = (
        scratch.capacity,
        *(int(a.numpy()[w]) for a in (scratch.search.count, scratch.search.crossing)),
    )
    z = it.history.z.numpy().reshape(model.worlds, scratch.stride, 4)[w, : scratch.count, :3]
    inverted = _inverted(model, before["position"][w].astype(float) + z)
    converged = size <= tolerance
    if pairs > room or crossing or (pairs and converged and not inverted):
        return (
            f"surfaces cannot be kept apart in world {w}: {where_lost(model, w, before['position'][w])}; {pairs} pairs "
            f"of vertices, faces and edges meet (room for {room}) in {int(scratch.search.rounds.numpy()[w])} searches; "
            f"move bodies that start inside one another apart, {shorter}, or collisions=False"
        )
    if converged:
        return (
            f"the step ends with matter turned inside out in world {w}: {inverted}; no motion leads there, and where "
            f"the step ends would be left to chance: {shorter}, smaller cells, weaker loads or actuators, or "
            f"law='neo_hookean', whose stress grows without bound before"
        )
    if not np.isfinite(size):
        where = "where its search begins" if corrections == 1 else f"after {corrections} corrections"
        why = f": {inverted}" if inverted else _infinite(model, w)
        return f"forces of the step in world {w} are not finite {where}{why}; {shorter}, or weaker loads or actuators"
    longer = (
        ""
        if memory >= _LONG_MEMORY
        else f"a longer memory of the acceleration (memory={_LONG_MEMORY}, now {memory}) or "
    )
    return (
        f"the step did not converge in world {w}: after {corrections} corrections the last one moves a node by "
        f"{size:.3g} m (tolerance {tolerance:.3g} m){f', with {inverted}' if inverted else ''}; {shorter}, a larger "
        f"tolerance or weaker actuators; {longer}more corrections (max_iterations, now {max_iterations}) help long "
        f"steps of stiff matter"
    )


def _inverted(model: ProjectiveModel, x: np.ndarray) -> str:
    """Tetrahedra that are inside out where nodes are at `x` [m], shape (n_nodes, 3); empty for none."""
    mesh = model.matter
    corners = x[mesh.tets]
    with np.errstate(all="ignore"):  # what is looked at here may overflow
        bad = np.flatnonzero(np.linalg.det(corners[:, 1:] - corners[:, :1]) <= 0.0)
    if not len(bad):
        return ""
    at = ", ".join(f"{c:.3g}" for c in corners[bad[0]].mean(axis=0))
    body = model.scene.bodies[mesh.element_body[bad[0]]]
    law = body.material.law
    return (
        f"{len(bad)} of {len(corners)} tetrahedra inverted, the first of them of SoftBody {body.name!r} "
        f"(law {law!r}) at ({at}) m"
    )


def _infinite(model: ProjectiveModel, w: int) -> str:
    """At which node the imbalance of forces is not finite."""
    scratch, mesh = model.scratch, model.matter
    lacking = scratch.lacking.numpy().reshape(model.worlds, scratch.stride, 4)[w, : scratch.count, :3]
    bad = np.flatnonzero(~np.isfinite(lacking).all(axis=1))
    if not len(bad):
        return ""
    at = ", ".join(f"{c:.3g}" for c in mesh.position[bad[0]])
    body = model.scene.bodies[mesh.body[bad[0]]].name
    return f" at {len(bad)} nodes, the first of them of SoftBody {body!r}, at rest at ({at}) m"
