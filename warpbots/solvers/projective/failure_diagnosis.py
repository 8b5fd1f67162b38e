"""Explains in words why a step did not converge."""

import numpy as np

from warpbots.solvers.law_constants import law_in_words
from warpbots.solvers.moving_frames import have_met
from warpbots.solvers.projective.elements.cavity_surface import volume_of_walls
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import where_embedded, where_lost

__all__ = ["diagnosis"]

_LONG_MEMORY = 40
"""Memory of the acceleration that helps with long steps."""

_EMPTY = 0.05
"""Fraction of its rest volume below which a chamber counts as collapsed."""

_SHRUNK = 0.9
"""Fraction of its rest volume below which a pneumatic cell counts as shrunk."""


def diagnosis(
    model: ProjectiveModel,
    before: dict[str, np.ndarray],
    after: dict[str, np.ndarray],
    dt: float,
    max_iterations: int,
    memory: int,
) -> str:
    """Say in one sentence why a world is lost in `after`, one step after `before`.

    Args:
        model: The model; the step must be the last computation that ran with it.
        before: Fields of the last state as NumPy arrays.
        after: Fields of the state in which a world is lost.
        dt: Length of the step [s].
        max_iterations: Number of iterations after which a step fails.
        memory: Number of corrections that Anderson's acceleration remembers.
    """
    for name, values in before.items():
        if not np.isfinite(values).all():
            return f"{name} was not finite before the step"
    lost = after["lost"] > before["lost"]
    if before["time"].size and (ended := model.frames.diagnosis(before["time"], np.where(lost, np.nan, 0.0), dt)):
        return ended
    w, whole = int(np.flatnonzero(lost)[0]), dt
    if model.may_close and (impossible := _met(model, before, w, dt) or _buried(model, before, w, dt)):
        return impossible
    if halvings := int(model.workspace.shorter.clock.level.numpy()[w]):
        dt, before = whole / 2**halvings, model.workspace.shorter.last_start()
    tried = f", and parts of {dt:.3g} s were tried" if halvings else ""
    matrix = model.matrices.of(dt)
    progress = matrix.iteration.progress
    u = _failed_island(model, progress, w)
    iterations, size = int(progress.iterations.numpy()[u]), float(progress.size.numpy()[u])
    position, shorter = before["position"][w], f"use a shorter step (now {whole:.3g} s{tried})"
    if embedded := where_embedded(model, w, position):
        return f"{embedded}; or {shorter}"
    if int(matrix.compliance.missing.numpy()[0]):
        return (
            f"too many nodes are in contact at once: {len(model.topology.candidates)} nodes may be, and there is room "
            f"for the compliances of {matrix.compliance.owner.size} of them; use larger cells, or fewer worlds"
        )
    if emptied := _emptied(model, w, position, dt):
        return emptied
    end = position.astype(float) + _displacement(model, dt, w)
    inverted = _inverted(model, end)
    enough = float(progress.enough.numpy()[u])
    converged = size <= enough
    if lost := _lost(model, w, position, converged and not inverted):
        return f"{lost}; move bodies apart that overlap at the start, {shorter}, or collisions=False"
    if converged and not inverted:
        return (
            f"the step did not converge in world {w}: {iterations} iterations leave none for the Newton step that "
            f"estimates its error; use more (max_iterations, now {max_iterations})"
        )
    if converged:
        return (
            f"the step converged to an inverted state in world {w}: {inverted}; no motion leads to such a state: "
            f"{shorter}, smaller cells, weaker loads or actuators, or law='neo_hookean', whose stress grows without "
            f"bound before elements invert"
        )
    if not np.isfinite(size):
        where = "at the initial guess" if iterations == 1 else f"after {iterations} iterations"
        why = f": {inverted}" if inverted else _infinite(model, w)
        return f"forces of the step in world {w} are not finite {where}{why}; {shorter}, or weaker loads or actuators"
    longer = (
        ""
        if memory >= _LONG_MEMORY
        else f"a longer memory of the acceleration (memory={_LONG_MEMORY}, now {memory}) or "
    )
    among = (f", with {inverted}" if inverted else "") + _shrunk(model, end)
    return (
        f"the step did not converge in world {w}: after {iterations} iterations the estimated error of a node is "
        f"{size:.3g} m (tolerance {enough:.3g} m){among}; {shorter}, a larger tolerance or weaker actuators; "
        f"{longer}more iterations (max_iterations, now {max_iterations}) help with long steps of stiff matter"
    )


def _met(model: ProjectiveModel, before: dict[str, np.ndarray], w: int, dt: float) -> str:
    """Sentence about obstacles that have met at a node at the end of a step; empty if there are none."""
    node, frames = int(model.workspace.closed.numpy()[w]), model.frames
    if node == len(model.mesh):
        return ""
    time, travel = before["time"] + dt, before["travel"] + dt * frames.rate.numpy()
    x = before["position"][w, node].astype(np.float64)
    names = (model.scene.obstacles[k].name for k in np.argsort(-frames.depths(model, time, travel, w, x))[:2])
    body = model.scene.bodies[model.mesh.body[node]].name
    return have_met(f"node {node} of SoftBody {body!r} in world {w}, at {x.round(4).tolist()} m,", *names, time[w])


def _buried(model: ProjectiveModel, before: dict[str, np.ndarray], w: int, dt: float) -> str:
    """Sentence about a held node inside an obstacle at the end of a step; empty if there is none."""
    node, frames = int(model.workspace.buried.numpy()[w]), model.frames
    if node == len(model.mesh):
        return ""
    time, travel = before["time"] + dt, before["travel"] + dt * frames.rate.numpy()
    x, own = before["position"][w, node].astype(np.float64), int(np.cumsum(model.topology.anchored)[node]) - 1
    if model.topology.anchored[node]:
        x = model.nodes.anchor.numpy().reshape(model.worlds, -1, 3)[w, own].astype(np.float64)
    depth = frames.depths(model, time, travel, w, x)
    holds = (c.name for c in model.scene.constraints if model.mesh.regions[c.region][node])
    return (
        f"Obstacle {model.scene.obstacles[int(depth.argmax())].name!r} is {depth.max():.4g} m inside SoftBody "
        f"{model.scene.bodies[model.mesh.body[node]].name!r} in world {w} at {time[w]:.4g} s, at node {node}, at "
        f"{x.round(4).tolist()} m, which Constraint {next(holds)!r} holds: obstacles do not act on held nodes; change "
        f"one of the motions, or make the region of the constraint smaller"
    )


def _failed_island(model: ProjectiveModel, progress: IterationState, w: int) -> int:
    """Index of the first island of a world that has not converged; of the first island if all have converged."""
    islands, count = model.matrices.islands, len(model.topology.components)
    own = slice(w * count, (w + 1) * count)
    roots = islands.root.numpy()[own] == np.arange(count)
    return w * count + int((roots & (progress.converged.numpy()[own] == 0)).argmax())


def _displacement(model: ProjectiveModel, dt: float, w: int) -> np.ndarray:
    """Displacements of the nodes of a world in the last step [m], shape (n_nodes, 3)."""
    sizes = model.topology.sizes
    z = model.matrices.of(dt).iteration.history.z.numpy()
    return z.reshape(model.worlds, sizes.stride, 4)[w, : sizes.nodes, :3]


def _lost(model: ProjectiveModel, w: int, position: np.ndarray, otherwise: bool) -> str:
    """Sentence about surfaces that could not be kept apart; empty if there are none.

    Args:
        model: The model of the step.
        w: The world.
        position: Nodes before the step [m], shape (n_nodes, 3).
        otherwise: Whether no other reason for the failure is known.
    """
    search, room = model.workspace.contact.search, model.topology.sizes.capacity
    pairs, intersection, searches = (int(a.numpy()[w]) for a in (search.count, search.intersection, search.searches))
    if not (pairs > room or intersection or (pairs and otherwise)):
        return ""
    too_many = f" and there is room for {room}; the model of ProjectiveDynamics.grown has more," if pairs > room else ""
    return (
        f"surfaces cannot be kept apart in world {w}: {where_lost(model, w, position)}; {pairs} pairs of vertices, "
        f"faces and edges are in contact{too_many} after {searches} runs of collision detection"
    )


def _emptied(model: ProjectiveModel, w: int, position: np.ndarray, dt: float) -> str:
    """Sentence about a chamber that has collapsed because nothing keeps its walls apart; empty if there is none."""
    mesh = model.mesh
    if model.topology.sizes.capacity:
        return ""
    for cavity, channel in enumerate(mesh.cavity_channel):
        walls = mesh.cavities[mesh.cavity == cavity]
        rest = volume_of_walls(mesh.position, walls)
        now = min(volume_of_walls(x, walls) for x in (position, position + _displacement(model, dt, w)))
        if now < _EMPTY * rest:
            return (
                f"the walls of Cavity {model.scene.actuators[channel].name!r} pass through one another in world {w}: "
                f"its volume is {now:.3g} m^3, and {rest:.3g} m^3 at rest; use ProjectiveDynamics(collisions=True), "
                f"which keeps them apart, or less suction"
            )
    return ""


def _shrunk(model: ProjectiveModel, x: np.ndarray) -> str:
    """Words about the pneumatic cell that has lost the largest part of its volume, with nodes at `x` [m].

    Strong cells that are to shrink may have no equilibrium; see `PneumaticCell`. The stiffest of the actuators that
    drive the cell is named. The result is empty if no cell has lost a tenth.
    """
    mesh = model.mesh
    if not len(mesh.pneumatic):
        return ""
    with np.errstate(all="ignore"):  # positions of a failed step may overflow
        rest, end = (mesh.solid.volumes(nodes, mesh.pneumatic) for nodes in (mesh.position, x))
    left = (end / rest).min(axis=1)
    least = int(np.lexsort((-mesh.cell_stiffness, left))[0])
    if not left[least] < _SHRUNK:
        return ""
    return (
        f"; a cell of PneumaticCell {model.scene.actuators[mesh.cell_channel[least]].name!r} is left with "
        f"{max(left[least], 0.0):.2g} of its volume at rest, and strong cells that shrink may have no equilibrium: "
        f"keep its signal at or above 0, or give it a smaller stiffness or max_expansion"
    )


def _inverted(model: ProjectiveModel, x: np.ndarray) -> str:
    """Sentence about solid elements that are inverted with nodes at `x` [m], shape (n_nodes, 3); empty if none are."""
    mesh = model.mesh
    with np.errstate(all="ignore"):  # positions of a failed step may overflow
        bad = np.flatnonzero((mesh.solid.volumes(x, mesh.solids) <= 0.0).any(axis=1))
    if not len(bad):
        return ""
    at = ", ".join(f"{c:.3g}" for c in x[mesh.solids[bad[0]]].mean(axis=0))
    body = model.scene.bodies[mesh.element_body[bad[0]]]
    law = body.material.law
    return (
        f"{len(bad)} of {len(mesh.solids)} {mesh.solid.title} inverted, the first of them of SoftBody {body.name!r} "
        f"(law {law!r}) at ({at}) m"
    )


def _infinite(model: ProjectiveModel, w: int) -> str:
    """Sentence about the nodes at which the residual is not finite."""
    sizes, mesh = model.topology.sizes, model.mesh
    residual = model.workspace.residual.numpy().reshape(model.worlds, sizes.stride, 4)[w, : sizes.nodes, :3]
    bad = np.flatnonzero(~np.isfinite(residual).all(axis=1))
    if not len(bad):
        return ""
    at = ", ".join(f"{c:.3g}" for c in mesh.position[bad[0]])
    body = model.scene.bodies[mesh.body[bad[0]]]
    law = law_in_words(body.material)
    return f" at {len(bad)} nodes, the first of them of SoftBody {body.name!r} ({law}), at rest at ({at}) m"
