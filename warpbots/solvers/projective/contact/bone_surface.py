"""Bone surfaces: the faces of bones that are outside of the soft bodies bound to these bones, on the host.

The vertices of bone surfaces are points like the nodes of soft bodies: contacts use vertices and nodes; everything
else, states included, uses nodes only. A vertex moves with its bone.
"""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.meshing.fitted import fitted_surface, samples
from warpbots.meshing.self_intersection import crossings
from warpbots.scene import RigidBody, Scene, SceneError, SoftBody, bars_of, sheets_of

__all__ = [
    "BoneSurfaces",
    "body_of",
    "bone_surfaces_of",
    "distance_to_body",
    "never_in_contact",
    "refuse_penetration",
]

_BARE = 1e-3
"""Distance outside of a soft body from which a bone has a surface, and depth inside another that is refused [cells]."""

_ASIDE = (0.31, 0.59, 0.74)
"""Direction of a shift that turns intersections along edges into intersections inside faces."""


@dataclasses.dataclass(frozen=True)
class BoneSurfaces:
    """The surfaces of all bones of a scene outside of their soft bodies, with all joints at zero.

    Attributes:
        position: Vertices [m], shape (n, 3).
        bone: Index in `Scene.rigid` of the bone of each vertex, ascending, shape (n,).
        faces: Vertices of the faces, counter-clockwise seen from outside, shape (m, 3).
    """

    position: np.ndarray
    bone: np.ndarray
    faces: np.ndarray

    @classmethod
    def none(cls) -> "BoneSurfaces":
        """Surfaces of a scene in which no bone has a surface."""
        return cls(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros((0, 3), dtype=int))

    def __len__(self) -> int:
        return len(self.position)

    @property
    def bones(self) -> np.ndarray:
        """Indices of the bones that have a surface, ascending."""
        return np.unique(self.bone)


def distance_to_body(body: SoftBody | RigidBody, x: np.ndarray) -> np.ndarray:
    """Signed distance of points from a body, with all joints at zero [m], shape (n,).

    The distance is infinite for bodies without an inside: sheets, trusses, and rigid bodies without a shape.

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


def bone_surfaces_of(scene: Scene, mesh: object, cell_size: float) -> BoneSurfaces:
    """The faces of bones that are not wholly inside the soft bodies that are bound to them.

    Args:
        scene: The scene with the bones.
        mesh: The soft bodies, a `Mesh`.
        cell_size: Approximate length of the edges [m].

    Raises:
        SceneError: A bone has a shape without a surface.
    """
    inside = _inside(scene, mesh)
    parts, first = [BoneSurfaces.none()], 0
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
        parts.append(BoneSurfaces(x[used], np.full(len(used), k), faces.reshape(-1, 3) + first))
        first += len(used)
    return BoneSurfaces(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in dataclasses.fields(BoneSurfaces))
    )


def never_in_contact(scene: Scene, mesh: object, bone_surfaces: BoneSurfaces) -> np.ndarray:
    """Which pairs of bodies are never in contact, soft bodies first, then bones with a surface, shape (n, n), bool.

    These pairs are: two soft bodies that are attached to one another; a bone and itself; a bone and a soft body with
        nodes bound to this bone; two bones that a joint connects, directly or through bodies without a shape.

    Args:
        scene: The scene with the bodies.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: From `bone_surfaces_of`.
    """
    names, bones = [b.name for b in scene.soft], bone_surfaces.bones
    n, number = len(names), {k: len(names) + i for i, k in enumerate(bones)}
    table = np.zeros((n + len(bones),) * 2, dtype=bool)
    for part in scene.attachments:
        table[names.index(part.first), names.index(part.second)] = True
    inside, joined = _inside(scene, mesh), _joined(scene)
    for k in bones:
        table[number[k], inside[k]] = True
        table[number[k], [number[j] for j in bones if j == k or j in joined[k]]] = True
    return table | table.T


def body_of(scene: Scene, mesh: object, bone_surfaces: BoneSurfaces) -> np.ndarray:
    """Index of the body of every point; soft bodies are counted first, then bones with a surface.

    Args:
        scene: The scene with the bodies.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: From `bone_surfaces_of`.
    """
    of_node = np.searchsorted([p.body for p in mesh.meshes], mesh.body)
    return np.append(of_node, len(scene.soft) + np.searchsorted(bone_surfaces.bones, bone_surfaces.bone))


def refuse_penetration(scene: Scene, mesh: object, bone_surfaces: BoneSurfaces, cell_size: float) -> None:
    """Raise if the surface of a bone starts inside another body or intersects its surface.

    Args:
        scene: The scene with the bodies.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: From `bone_surfaces_of`.
        cell_size: Approximate length of the edges [m].

    Raises:
        SceneError: A bone starts inside another body or intersects its surface; the message names both bodies.
    """
    if not len(bone_surfaces):
        return
    never = never_in_contact(scene, mesh, bone_surfaces)
    bodies = [*scene.soft, *(scene.rigid[k] for k in bone_surfaces.bones)]
    for i, bone in enumerate(bodies[len(scene.soft) :], len(scene.soft)):
        x = bone_surfaces.position[bone_surfaces.bone == bone_surfaces.bones[i - len(scene.soft)]]
        for other in (bodies[j] for j in range(len(bodies)) if not never[i, j]):
            depth = -distance_to_body(other, x)
            if depth.max() > _BARE * cell_size:
                raise _penetration(bone, other, f"it starts up to {depth.max():.4g} m inside it")
    of_point = body_of(scene, mesh, bone_surfaces)
    x = np.concatenate([mesh.position, bone_surfaces.position])
    faces = np.concatenate([*(p.faces + p.nodes.start for p in mesh.meshes), bone_surfaces.faces + len(mesh)])
    lower, upper = x[faces].min(axis=1), x[faces].max(axis=1)
    near = (upper >= bone_surfaces.position.min(axis=0)).all(axis=1) & (
        lower <= bone_surfaces.position.max(axis=0)
    ).all(axis=1)
    faces = faces[near]
    of_bone = np.arange(len(x))[:, None] >= len(mesh)
    for shift in (0.0, _BARE * cell_size * np.array(_ASIDE)):
        pairs = of_point[faces[crossings(x + shift * of_bone, faces)][:, :, 0]]
        pairs = pairs[(pairs.max(axis=1, initial=0) >= len(scene.soft)) & ~never[pairs[:, 0], pairs[:, 1]]]
        if len(pairs):
            raise _penetration(bodies[pairs[0].max()], bodies[pairs[0].min()], "their surfaces intersect")


def _penetration(bone: RigidBody, other: object, how: str) -> SceneError:
    kind = type(other).__name__
    return SceneError(
        f"RigidBody {bone.name!r} and {kind} {other.name!r}: {how}; move them apart by a hundredth of a cell or more"
        + ("" if kind == "SoftBody" else ", or connect them by a Joint")
    )


def _inside(scene: Scene, mesh: object) -> list[list[int]]:
    """For each bone, the indices (among soft bodies) of the soft bodies with nodes that are bound to this bone."""
    of_body = np.searchsorted([p.body for p in mesh.meshes], mesh.body)
    return [np.unique(of_body[mesh.bone == k]).tolist() for k in range(len(scene.rigid))]


def _joined(scene: Scene) -> list[set[int]]:
    """For each bone, the bones that joints connect with it, directly or through bodies without a shape."""
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
