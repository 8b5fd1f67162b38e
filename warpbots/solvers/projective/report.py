"""The end of the last step: its iterations, residual and contact forces."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.scene import Obstacle, RigidBody, SoftBody
from warpbots.solvers.projective.iterate.anderson_arrays import Iteration, IterationState
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["KEPT", "StepReport", "bodies_of", "keep_report", "report_of", "where_embedded", "where_lost"]

KEPT = 2
"""Value of `ProjectiveWorkspace.stepped` while the report of the last step is kept, though an adjoint has run since."""


@dataclasses.dataclass(frozen=True)
class StepReport:
    """The end of the last step of every world, as NumPy arrays; nothing here is differentiable.

    Attributes:
        iterations: Number of iterations, of all attempts together, shape (worlds,). Uncoupled parts of a world iterate
            at the same time, and rest when they have converged.
        shorter_steps: Number of shorter steps that replaced the last step, 0 if the step converged without them, shape
            (worlds,). The attributes below describe the last shorter step.
        correction: Largest displacement of a node by the last correction, or its estimated error if that is larger [m],
            shape (worlds,). A step has converged when `correction` is at most the tolerance. Uncoupled parts of a world
            have tolerances in proportion to their own edges: `correction` is the largest ratio of a part to its
            tolerance, times `tolerance`.
        tolerance: The tolerance of the part with the shortest edges [m].
        residual: Largest residual force on a node before the last correction [N], shape (worlds,).
        contacts: Number of active contacts, shape (worlds,).
        room: Number of pairs of surfaces for which each world has room; it grows when more come into contact.
        contact_force: Force of all contacts on each node [N], shape (worlds, n_nodes, 3).
        bone_force: Force of all contacts on the surface of each bone outside of its soft body [N], shape (worlds,
            n_bones, 3).
        obstacle_force: Force of all contacts on each obstacle [N], shape (worlds, n_obstacles, 3).
    """

    iterations: np.ndarray
    shorter_steps: np.ndarray
    correction: np.ndarray
    tolerance: float
    residual: np.ndarray
    contacts: np.ndarray
    room: int
    contact_force: np.ndarray
    bone_force: np.ndarray
    obstacle_force: np.ndarray


def report_of(model: ProjectiveModel, dt: float, tolerance: float) -> StepReport:
    """Read how the last step ended.

    Args:
        model: The model.
        dt: Length of the step [s].
        tolerance: Tolerance of the step [mean edges].

    Raises:
        RuntimeError: No step of this length has run, or an adjoint has run since.
    """
    workspace, topology, clock = model.workspace, model.topology, model.workspace.shorter.clock
    if workspace.stepped.numpy()[0] == KEPT and dt in workspace.reports:
        return workspace.reports[dt]
    iterations, level = clock.iterations.numpy().copy(), clock.level.numpy()
    if workspace.stepped.numpy()[0] != 1 or not model.matrices.has(dt):
        raise RuntimeError(
            f"ProjectiveDynamics: the last thing that ran was not a step of {dt:.3g} s (a backward pass uses the same "
            f"arrays); ask for the report right after the step"
        )
    free = ~topology.fixed & (topology.mesh.bone < 0)
    residual = _nodal(model, workspace.residual)[:, free]
    own = [model.matrices.of(dt / 2**k).iteration for k in level.tolist()]
    least = float(topology.components.length.min())
    correction = np.array([_worst(model, it.progress, w) for w, it in enumerate(own)]) * tolerance * least
    contacts, force, on_obstacles = _contact_forces(model, own)
    nodes = topology.sizes.nodes
    bones = np.arange(len(model.scene.rigid))[:, None] == topology.bone_surfaces.bone
    return StepReport(
        iterations=iterations,
        shorter_steps=np.where(level > 0, clock.steps.numpy(), 0),
        correction=correction,
        tolerance=tolerance * least,
        residual=np.linalg.norm(residual, axis=-1).max(axis=1, initial=0.0),
        contacts=contacts,
        room=topology.sizes.capacity,
        contact_force=force[:, :nodes],
        bone_force=bones @ force[:, nodes : nodes + topology.sizes.vertices],
        obstacle_force=on_obstacles,
    )


def keep_report(model: ProjectiveModel, dt: float, tolerance: float) -> StepReport:
    """`report_of` the last step, which it will give while `ProjectiveWorkspace.stepped` is `KEPT`."""
    report = report_of(model, dt, tolerance)
    model.workspace.reports.clear()
    model.workspace.reports[dt] = report
    return report


def _worst(model: ProjectiveModel, progress: IterationState, w: int) -> float:
    """Largest last correction, or estimated error, of an island of a world, as a multiple of its tolerance [1]."""
    islands, count = model.matrices.islands, len(model.topology.components)
    own = slice(w * count, (w + 1) * count)
    roots = (islands.root.numpy()[own] == np.arange(count)) & (islands.moves.numpy()[own] == 1)
    size, enough = (a.numpy()[own][roots] for a in (progress.size, progress.enough))
    with np.errstate(over="ignore"):  # an error that is not known yet is huge
        return float((size / np.where(enough > 0.0, enough, np.inf)).max(initial=0.0))


def _nodal(model: ProjectiveModel, iterate: wp.array) -> np.ndarray:
    """The entries of nodes in an iterate, shape (worlds, n_nodes, 3)."""
    sizes = model.topology.sizes
    return iterate.numpy().reshape(model.worlds, sizes.stride, 4)[:, : sizes.nodes, :3]


def where_lost(model: ProjectiveModel, w: int, position: np.ndarray) -> str:
    """Text that says which bodies could not be kept apart in the last step of a world, and where.

    Args:
        model: The model of the step; it has at least one pair in contact, or an edge that intersects a face.
        w: The world.
        position: Nodes before the step [m], shape (n_nodes, 3).
    """
    sizes, search, surface = model.topology.sizes, model.workspace.contact.search, model.topology.surface
    intersection = int(search.intersection.numpy()[w])
    if intersection:
        edge, face = divmod(intersection - 1, surface.face.size)
        points = np.append(surface.edge.numpy()[edge], surface.face.numpy()[face])
    else:
        last = min(int(search.count.numpy()[w]), sizes.capacity) - 1
        points = search.node.numpy()[w * sizes.capacity + last]
    bodies = [bodies_of(model)[k] for k in _numbers(model)[points[[0, -1]]]]
    one, other = (f"{type(b).__name__} {b.name!r}" for b in bodies)
    other = "itself" if one == other else other
    how = f"an edge of {one} intersects {other}" if intersection else f"{one} is in contact with {other}"
    return f"{how} near {_place(model, w, position, points)} m"


def where_embedded(model: ProjectiveModel, w: int, position: np.ndarray) -> str:
    """Text that says which obstacle is inside which body after the last step of a world, and where; empty if none is.

    Args:
        model: The model.
        w: The world.
        position: Nodes before the step [m], shape (n_nodes, 3).
    """
    if not model.sharp:
        return ""
    embedded = model.workspace.contact.embedded
    depth = embedded.depth.numpy().reshape(model.worlds, -1)[w]
    if not depth.any():
        return ""
    k = int(depth.argmax())
    solid = int(embedded.solid.numpy().reshape(model.worlds, -1)[w, k])
    points = embedded.corners[k]
    edge = model.topology.point_edge[points[0]]
    obstacle = model.scene.obstacles[int(model.obstacle.numpy()[solid])]
    width = float(model.obstacles.thinnest.numpy()[solid])
    body, place = bodies_of(model)[_numbers(model)[points[0]]], _place(model, w, position, points)
    return (
        f"Obstacle {obstacle.name!r} is {depth[k]:.4g} m inside {type(body).__name__} {body.name!r} near {place} m, "
        f"between the nodes and surface samples that detect contact: its smallest width is {width:.4g} m, and edges "
        f"are {edge:.4g} m long; use cells of {0.5 * min(width, edge):.2g} m or less"
    )


def bodies_of(model: ProjectiveModel) -> list[SoftBody | RigidBody | Obstacle]:
    """Bodies in the order of `PairArrays.body`: soft bodies, bones with a surface, obstacles."""
    bones = (model.scene.rigid[k] for k in model.topology.bone_surfaces.bones)
    return [*model.scene.soft, *bones, *model.scene.obstacles]


def _numbers(model: ProjectiveModel) -> np.ndarray:
    return model.pairs.body.numpy()


def _place(model: ProjectiveModel, w: int, position: np.ndarray, points: np.ndarray) -> str:
    """Text with the mean position of `points` before a step."""
    if model.topology.sizes.points > model.topology.sizes.nodes:
        position = model.workspace.start[0].numpy().reshape(model.worlds, -1, 3)[w]
    return "(" + ", ".join(f"{c:.4g}" for c in position[points].mean(axis=0)) + ")"


def _contact_forces(model: ProjectiveModel, own: list[Iteration]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of active contacts, and their forces on points and obstacles, from the last iteration of each world."""
    sizes, worlds = model.topology.sizes, model.worlds
    force, on_obstacles = np.zeros((worlds, sizes.points, 3)), np.zeros((worlds, len(model.scene.obstacles), 3))
    if not sizes.contacts:
        return np.zeros(worlds, dtype=int), force, on_obstacles
    contacts = model.workspace.contact.contacts
    z = np.stack([it.history.z.numpy().reshape(worlds, sizes.stride, 4)[w] for w, it in enumerate(own)])
    lam = z[:, sizes.first_contact :, :3].astype(float)
    listed = contacts.listed.numpy().reshape(worlds, -1) == 1
    node = contacts.node.numpy().reshape(worlds, -1, 4)
    weight = contacts.weight.numpy().reshape(worlds, -1, 4)
    w, c, p = np.nonzero(listed[..., None] & (node >= 0))
    np.add.at(force, (w, node[w, c, p]), weight[w, c, p, None] * lam[w, c])
    w, c = np.nonzero(listed & (contacts.obstacle.numpy().reshape(worlds, -1) >= 0))
    first = c >= sizes.solid_contacts
    first[first] = _numbers(model)[node[w, c, 0][first]] >= model.pairs.movers  # the obstacle is the first side
    obstacle = contacts.obstacle.numpy().reshape(worlds, -1)[w, c]
    np.add.at(on_obstacles, (w, obstacle), np.where(first, 1.0, -1.0)[:, None] * lam[w, c])
    return listed.sum(axis=1), force, on_obstacles
