"""How the last step ended: its corrections, what they left of the imbalance of forces, and the forces of contacts."""

import dataclasses

import numpy as np

from warpbots.scene import RigidBody, SoftBody
from warpbots.solvers.projective.contact.bone_surface import body_of
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["StepReport", "report_of", "where_lost", "where_sunk"]


@dataclasses.dataclass(frozen=True)
class StepReport:
    """The end of the last step of every world, as NumPy arrays; nothing here is differentiable.

    Attributes:
        iterations: Number of corrections, shape (worlds,).
        correction: How far the last one moved a node, or would have for a force of a contact [m], shape (worlds,). A
            step has converged when that is at most the tolerance.
        tolerance: The tolerance [m].
        imbalance: Largest force at a node that nothing balanced, before the last correction [N], shape (worlds,).
        contacts: Number of contacts that count, shape (worlds,).
        contact_force: Force of all contacts on each node [N], shape (worlds, n_nodes, 3).
        bone_force: The same on what of each bone is outside of its flesh [N], shape (worlds, n_bones, 3).
    """

    iterations: np.ndarray
    correction: np.ndarray
    tolerance: float
    imbalance: np.ndarray
    contacts: np.ndarray
    contact_force: np.ndarray
    bone_force: np.ndarray


def report_of(model: ProjectiveModel, dt: float, tolerance: float) -> StepReport:
    """Read how the last step ended.

    Args:
        model: Where it ran.
        dt: Its length [s].
        tolerance: Its tolerance [mean edges].

    Raises:
        RuntimeError: No step of this length has run, or the last thing that ran was an adjoint.
    """
    scratch = model.scratch
    ended = scratch.stepped.numpy()[0] == 1
    progress = scratch.matrix(dt).iteration.progress if ended else None
    if not ended or progress.iterations.numpy().min() == 0:
        raise RuntimeError(
            f"ProjectiveDynamics: no step of {dt:.3g} s is the last thing that ran here (a backward pass uses the same "
            f"arrays); ask for its report right after the step"
        )
    free = ~scratch.fixed & (scratch.mesh.bone < 0)
    lacking = scratch.lacking.numpy().reshape(model.worlds, scratch.stride, 4)[:, : scratch.count, :3][:, free]
    contacts, force = _contact_forces(model, dt)
    bones = np.arange(len(model.scene.rigid))[:, None] == scratch.shells.bone
    return StepReport(
        iterations=progress.iterations.numpy().copy(),
        correction=progress.size.numpy().copy(),
        tolerance=tolerance * model.matter.edge,
        imbalance=np.linalg.norm(lacking, axis=-1).max(axis=1, initial=0.0),
        contacts=contacts,
        contact_force=force[:, : scratch.count],
        bone_force=bones @ force[:, scratch.count :],
    )


def where_lost(model: ProjectiveModel, w: int, position: np.ndarray) -> str:
    """Say which bodies are not kept apart in the last step of a world, and where.

    Args:
        model: Where it ran; it has found at least one pair of features that meet, or an edge that runs through a face.
        w: The world.
        position: Where its nodes were before the step [m], shape (n_nodes, 3).
    """
    scratch, search, surface = model.scratch, model.scratch.search, model.scratch.surface
    crossing = int(search.crossing.numpy()[w])
    if crossing:
        edge, face = divmod(crossing - 1, surface.face.size)
        points = np.append(surface.edge.numpy()[edge], surface.face.numpy()[face])
    else:
        last = min(int(search.count.numpy()[w]), scratch.capacity) - 1
        points = search.node.numpy()[w * scratch.capacity + last]
    bodies = [_bodies(model)[k] for k in _numbers(model)[points[[0, -1]]]]
    one, other = (f"{type(b).__name__} {b.name!r}" for b in bodies)
    how = "an edge of it runs through" if crossing else "it meets"
    return f"{one}: {how} {'itself' if one == other else other} near {_place(model, w, position, points)} m"


def where_sunk(model: ProjectiveModel, w: int, position: np.ndarray) -> str:
    """Say which obstacle is inside of which body after the last step of a world, and where; nothing if none is.

    Args:
        model: Where it ran.
        w: The world.
        position: Where its nodes were before the step [m], shape (n_nodes, 3).
    """
    scratch, edge = model.scratch, model.matter.edge
    depth = scratch.sunk.depth.numpy().reshape(model.worlds, -1)[w] if model.sharp else np.zeros(1)
    if not depth.any():
        return ""
    k = int(depth.argmax())
    solid = int(scratch.sunk.solid.numpy().reshape(model.worlds, -1)[w, k])
    points = scratch.sunk.corners[k]
    obstacle = model.scene.obstacles[int(model.obstacle.numpy()[solid])]
    width = float(model.obstacles.thinnest.numpy()[solid])
    body, place = _bodies(model)[_numbers(model)[points[0]]], _place(model, w, position, points)
    return (
        f"Obstacle {obstacle.name!r} is {depth[k]:.4g} m inside of {type(body).__name__} {body.name!r} near {place} m, "
        f"between nodes and spots that touch obstacles: it is {width:.4g} m wide where it is thinnest, and edges are "
        f"{edge:.4g} m long; use cells of {0.5 * min(width, edge):.2g} m or less"
    )


def _bodies(model: ProjectiveModel) -> list[SoftBody | RigidBody]:
    return [*model.scene.soft, *(model.scene.rigid[k] for k in model.scratch.shells.bones)]


def _numbers(model: ProjectiveModel) -> np.ndarray:
    return body_of(model.scene, model.matter, model.scratch.shells)


def _place(model: ProjectiveModel, w: int, position: np.ndarray, points: np.ndarray) -> str:
    """The middle of some points before a step."""
    if len(model.scratch.shells):
        position = model.scratch.start[0].numpy().reshape(model.worlds, -1, 3)[w]
    return "(" + ", ".join(f"{c:.4g}" for c in position[points].mean(axis=0)) + ")"


def _contact_forces(model: ProjectiveModel, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Number of contacts that count, and their forces on nodes and vertices of shells."""
    scratch, worlds = model.scratch, model.worlds
    force = np.zeros((worlds, scratch.points, 3))
    if not scratch.contacts:
        return np.zeros(worlds, dtype=int), force
    z = scratch.matrix(dt).iteration.history.z.numpy().reshape(worlds, scratch.stride, 4)
    lam = z[:, scratch.points + scratch.freedom :, :3].astype(float)
    listed = scratch.meeting.listed.numpy().reshape(worlds, -1) == 1
    node = scratch.meeting.node.numpy().reshape(worlds, -1, 4)
    weight = scratch.meeting.weight.numpy().reshape(worlds, -1, 4)
    w, c, p = np.nonzero(listed[..., None] & (node >= 0))
    np.add.at(force, (w, node[w, c, p]), weight[w, c, p, None] * lam[w, c])
    return listed.sum(axis=1), force
