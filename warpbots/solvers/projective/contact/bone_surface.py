"""Shells: what of the surfaces of bones is outside of their flesh and touches by itself, on the host.

Vertices of shells are points beside the nodes of the flesh: contacts know of both, and everything else, states among
it, of nodes alone. A vertex goes where its bone goes.
"""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.meshing.fitted import fitted_surface, samples
from warpbots.meshing.self_intersection import crossings
from warpbots.scene import RigidBody, Scene, SceneError, SoftBody, bars_of, sheets_of

__all__ = ["Shells", "apart", "body_of", "distance_to_body", "refuse_meeting", "shells_of"]

_BARE = 1e-3
"""How far a surface has to be outside of the flesh to touch by itself, and inside of another to be refused [cells]."""

_ASIDE = (0.31, 0.59, 0.74)
"""A direction in which a shell that runs through a surface along its own edges crosses it, too."""


@dataclasses.dataclass(frozen=True)
class Shells:
    """The shells of all bones of a scene, where all joints are at zero.

    Attributes:
        position: Vertices [m], shape (n, 3).
        bone: Index in `Scene.rigid` of the bone of each vertex, ascending, shape (n,).
        faces: Vertices of the faces, counter-clockwise from outside, shape (m, 3).
    """

    position: np.ndarray
    bone: np.ndarray
    faces: np.ndarray

    @classmethod
    def none(cls) -> "Shells":
        """No bone has one."""
        return cls(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros((0, 3), dtype=int))

    def __len__(self) -> int:
        return len(self.position)

    @property
    def bones(self) -> np.ndarray:
        """Indices of the bones that have a shell, ascending."""
        return np.unique(self.bone)


def distance_to_body(body: SoftBody | RigidBody, x: np.ndarray) -> np.ndarray:
    """Signed distance of points from a body where all joints are at zero [m], shape (n,).

    It is infinite from what has no inside: sheets, trusses, and rigid bodies without a shape.

    Args:
        body: The body.
        x: Points [m], shape (n, 3).
    """
    if isinstance(body, SoftBody):
        hollow = sheets_of(body.shape) or bars_of(body.shape) is not None
        return np.full(len(x), np.inf) if hollow else signed_distance(body.shape, x)
    if body.shape is None:
        return np.full(len(x), np.inf)
    return signed_distance(body.shape, (x - np.array(body.position)) @ np.array(body.rotation))


def shells_of(scene: Scene, mesh: object, cell_size: float) -> Shells:
    """The faces of bones that are not wholly inside the flesh that these bones hold.

    Args:
        scene: Has the bones.
        mesh: The flesh, a `Mesh`.
        cell_size: Length of the edges of shells, about [m].

    Raises:
        SceneError: A bone has no surface.
    """
    inside = _inside(scene, mesh)
    parts, first = [Shells.none()], 0
    for k, bone in enumerate(scene.rigid):
        if bone.shape is None:
            continue
        try:
            x, faces = fitted_surface(bone.shape, cell_size)
        except SceneError as fault:
            raise SceneError(f"RigidBody {bone.name!r}: {fault}") from None
        x = x @ np.array(bone.rotation).T + np.array(bone.position)
        points = samples(x, faces).reshape(-1, 3)
        covered = np.zeros(len(points), dtype=bool)
        for body in inside[k]:
            covered |= signed_distance(scene.soft[body].shape, points) <= _BARE * cell_size
        faces = faces[~covered.reshape(len(faces), -1).all(axis=1)]
        used, faces = np.unique(faces, return_inverse=True)
        parts.append(Shells(x[used], np.full(len(used), k), faces.reshape(-1, 3) + first))
        first += len(used)
    return Shells(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in dataclasses.fields(Shells)))


def apart(scene: Scene, mesh: object, shells: Shells) -> np.ndarray:
    """Which bodies never touch: soft ones, then bones with a shell, shape (n, n), bool.

    That are soft bodies that are attached to one another, a bone and itself, a bone and soft bodies of which it holds
    nodes, and bones that a joint connects, be it by way of bodies without a shape.

    Args:
        scene: Has the bodies.
        mesh: The flesh, a `Mesh`.
        shells: From `shells_of`.
    """
    names, bones = [b.name for b in scene.soft], shells.bones
    n, number = len(names), {k: len(names) + i for i, k in enumerate(bones)}
    table = np.zeros((n + len(bones),) * 2, dtype=bool)
    for part in scene.attachments:
        table[names.index(part.first), names.index(part.second)] = True
    inside, joined = _inside(scene, mesh), _joined(scene)
    for k in bones:
        table[number[k], inside[k]] = True
        table[number[k], [number[j] for j in bones if j == k or j in joined[k]]] = True
    return table | table.T


def body_of(scene: Scene, mesh: object, shells: Shells) -> np.ndarray:
    """Number of the body of every node and vertex of a shell: of soft bodies, then of bones that have one.

    Args:
        scene: Has the bodies.
        mesh: The flesh, a `Mesh`.
        shells: From `shells_of`.
    """
    of_node = np.searchsorted([p.body for p in mesh.meshes], mesh.body)
    return np.append(of_node, len(scene.soft) + np.searchsorted(shells.bones, shells.bone))


def refuse_meeting(scene: Scene, mesh: object, shells: Shells, cell_size: float) -> None:
    """Raise if the shell of a bone starts inside of another body or runs through its surface.

    Args:
        scene: Has the bodies.
        mesh: The flesh, a `Mesh`.
        shells: From `shells_of`.
        cell_size: Length of the edges of shells, about [m].

    Raises:
        SceneError: It does; with the names of both.
    """
    if not len(shells):
        return
    never = apart(scene, mesh, shells)
    bodies = [*scene.soft, *(scene.rigid[k] for k in shells.bones)]
    for i, bone in enumerate(bodies[len(scene.soft) :], len(scene.soft)):
        x = shells.position[shells.bone == shells.bones[i - len(scene.soft)]]
        for other in (bodies[j] for j in range(len(bodies)) if not never[i, j]):
            depth = -distance_to_body(other, x)
            if depth.max() > _BARE * cell_size:
                raise _meeting(bone, other, f"it starts up to {depth.max():.4g} m inside of it")
    of_point = body_of(scene, mesh, shells)
    x = np.concatenate([mesh.position, shells.position])
    faces = np.concatenate([*(p.faces + p.nodes.start for p in mesh.meshes), shells.faces + len(mesh)])
    lower, upper = x[faces].min(axis=1), x[faces].max(axis=1)
    near = (upper >= shells.position.min(axis=0)).all(axis=1) & (lower <= shells.position.max(axis=0)).all(axis=1)
    faces = faces[near]
    of_shell = np.arange(len(x))[:, None] >= len(mesh)
    for shift in (0.0, _BARE * cell_size * np.array(_ASIDE)):
        pairs = of_point[faces[crossings(x + shift * of_shell, faces)][:, :, 0]]
        pairs = pairs[(pairs.max(axis=1, initial=0) >= len(scene.soft)) & ~never[pairs[:, 0], pairs[:, 1]]]
        if len(pairs):
            raise _meeting(
                bodies[pairs[0].max()], bodies[pairs[0].min()], "their surfaces run through or into each other"
            )


def _meeting(bone: RigidBody, other: object, how: str) -> SceneError:
    kind = type(other).__name__
    return SceneError(
        f"RigidBody {bone.name!r} and {kind} {other.name!r}: {how}; move them apart by a hundredth of a cell or more"
        + ("" if kind == "SoftBody" else ", or connect them by a Joint")
    )


def _inside(scene: Scene, mesh: object) -> list[list[int]]:
    """For each bone the soft bodies, by their number among these, of which it holds nodes."""
    of_body = np.searchsorted([p.body for p in mesh.meshes], mesh.body)
    return [np.unique(of_body[mesh.bone == k]).tolist() for k in range(len(scene.rigid))]


def _joined(scene: Scene) -> list[set[int]]:
    """For each bone those that joints connect it with, also through bodies that have no shape."""
    number = {b.name: k for k, b in enumerate(scene.rigid)}
    ends = [(number[j.parent], number[j.child]) for j in scene.joints if j.parent is not None]
    next_to = [{b for a, b in (*ends, *((b, a) for a, b in ends)) if a == k} for k in range(len(number))]
    found = []
    for k in range(len(number)):
        seen, ahead = set(), [k]
        while ahead:
            new = next_to[ahead.pop()] - seen - {k}
            seen |= new
            ahead += [j for j in new if scene.rigid[j].shape is None]
        found.append(seen)
    return found
