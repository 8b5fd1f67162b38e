"""Bone surfaces: the faces of bones that are outside of the soft bodies bound to these bones, on the host.

The vertices of bone surfaces are points like the nodes of soft bodies: contacts use vertices and nodes; everything
else, states included, uses nodes only. A vertex moves with its bone.

A rigid body without flesh is a bone whose whole surface is bare. The iteration of a step measures its error at points,
so each of these bodies has points, even if nothing can touch it. A body that has no shape and carries no body has four
markers, which are points without faces.
"""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.meshing.fitted import fitted_surface, samples
from warpbots.meshing.self_intersection import crossings
from warpbots.scene import RigidBody, Scene, SceneError, SoftBody, bars_of, sheets_of, unnamed_pairs, whole_bodies
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.projective.contact.contact_laws import names_both
from warpbots.solvers.scene_parts import immovable

__all__ = [
    "BARE",
    "BoneSurfaces",
    "body_of",
    "bone_surfaces_of",
    "distance_to_body",
    "never_in_contact",
    "posed_surface",
    "refuse_penetration",
]

BARE = 1e-3
"""Distance outside of a soft body from which a bone has a surface, and depth inside another that is refused [cells]."""

_ASIDE = (0.06, 0.12, 0.15)
"""Shift of bones that turns intersections along edges into intersections inside faces [depths BARE]."""

_SOFT_ASIDE = 0.05
"""Length of the shift of each soft body for the same purpose, in a direction of its own [depths BARE]."""

_FACING = 1.0 - 1e-6
"""Cosine between normals above which faces are parallel."""


@dataclasses.dataclass(frozen=True)
class BoneSurfaces:
    """The surfaces of all bones of a scene outside their soft bodies, in their start poses.

    Attributes:
        position: Vertices, and markers [m], shape (n, 3).
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
        return np.unique(self.bone[self.faces])

    @property
    def vertices(self) -> np.ndarray:
        """Indices of the points that are corners of faces, ascending, shape (n,); all others are markers."""
        return np.unique(self.faces)

    @property
    def normals(self) -> np.ndarray:
        """Unit outer normals of the faces in the start poses; 0 for a face without an area, shape (m, 3)."""
        a, b, c = np.moveaxis(self.position[self.faces], 1, 0)
        normal = np.cross(b - a, c - a)
        return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)


def distance_to_body(body: SoftBody | RigidBody, x: np.ndarray) -> np.ndarray:
    """Signed distance of points from a body [m], shape (n,).

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


def bone_surfaces_of(scene: Scene, mesh: object, cell_size: float, obstructed: bool) -> BoneSurfaces:
    """The faces of bones that are not wholly inside the soft bodies that are bound to them, and markers.

    Args:
        scene: The scene with the bones in their start poses.
        mesh: The soft bodies, a `Mesh`.
        cell_size: Approximate length of the edges, and distance of markers [m].
        obstructed: Whether bones may touch anything; otherwise only bones without bound nodes have points.

    Raises:
        SceneError: A bone has a shape without a surface.
    """
    inside, carriers = _inside(scene, mesh), {j.parent for j in scene.joints}
    parts, first = [BoneSurfaces.none()], 0
    for k, bone in enumerate(scene.rigid):
        if (bone.shape is None and (inside[k] or bone.name in carriers)) or (inside[k] and not obstructed):
            continue
        x, faces = _markers(bone, cell_size) if bone.shape is None else _bare(scene, bone, inside[k], cell_size)
        parts.append(BoneSurfaces(x, np.full(len(x), k), faces + first))
        first += len(x)
    return BoneSurfaces(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in dataclasses.fields(BoneSurfaces))
    )


def _markers(bone: RigidBody, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """The centre of mass of a body and three points beside it, and no faces."""
    inertia = body_inertia(bone)
    center = np.zeros(3) if inertia is None else np.array(inertia.center)
    x = center + distance * np.eye(4, 3, -1)
    return x @ np.array(bone.rotation).T + np.array(bone.position), np.zeros((0, 3), dtype=int)


def _bare(scene: Scene, bone: RigidBody, inside: list[int], cell_size: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of a bone, and those faces that are not wholly inside the soft bodies `inside`."""
    x, faces = posed_surface(bone, cell_size)
    points = samples(x, faces).reshape(-1, 3)
    covered = np.zeros(len(points), dtype=bool)
    for body in inside:
        covered |= signed_distance(scene.soft[body].shape, points) <= BARE * cell_size
    faces = faces[~covered.reshape(len(faces), -1).all(axis=1)]
    used, faces = np.unique(faces, return_inverse=True)
    return x[used], faces.reshape(-1, 3)


def posed_surface(bone: RigidBody, cell_size: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m], shape (n, 3), and faces, shape (m, 3), of the whole surface of a bone in its start pose.

    Raises:
        SceneError: The shape has no surface.
    """
    try:
        x, faces = fitted_surface(bone.shape, cell_size)
    except SceneError as fault:
        raise SceneError(f"RigidBody {bone.name!r}: {fault}") from None
    return x @ np.array(bone.rotation).T + np.array(bone.position), faces


def never_in_contact(scene: Scene, mesh: object, bone_surfaces: BoneSurfaces) -> np.ndarray:
    """Which pairs of bodies are never in contact, soft bodies first, then bones with a surface, shape (n, n), bool.

    These pairs are: two soft bodies that are attached to one another; a bone and itself; a bone and a soft body with
        nodes bound to this bone; two bones that a joint connects, directly or through bodies without a shape, where
        bones fixed to one another count as one, unless a `Contact` law names both; two bones that cannot move; and two
        rigid bodies that no `Contact` law names, unless `Scene.contacts` is None.

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
    inside, joined, standing = _inside(scene, mesh), _joined(scene), immovable(scene)
    unnamed = unnamed_pairs(scene)[:, : len(scene.rigid)]
    for k in bones:
        table[number[k], inside[k]] = True
        name = scene.rigid[k].name
        apart = {j for j in joined[k] if not names_both(scene, name, scene.rigid[j].name)}
        apart |= {k} | set(np.flatnonzero(unnamed[k]).tolist())
        apart |= set(np.flatnonzero(standing).tolist()) if standing[k] else set()
        table[number[k], [number[j] for j in bones if j in apart]] = True
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
    """Raise if a body starts inside another one, or if their surfaces intersect.

    Args:
        scene: The scene with the bodies in their start poses.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: From `bone_surfaces_of`.
        cell_size: Approximate length of the edges [m].

    Raises:
        SceneError: A body starts inside another one, or their surfaces intersect; the message names both bodies.
    """
    never = never_in_contact(scene, mesh, bone_surfaces)
    bodies = [*scene.soft, *(scene.rigid[k] for k in bone_surfaces.bones)]
    for i, bone in enumerate(bodies[len(scene.soft) :], len(scene.soft)):
        x = bone_surfaces.position[bone_surfaces.bone == bone_surfaces.bones[i - len(scene.soft)]]
        for other in (bodies[j] for j in range(len(bodies)) if not never[i, j]):
            near = x[_in_box(x, x, (other if isinstance(other, RigidBody) else other.shape).bounds)]
            depth = -distance_to_body(other, near) if len(near) else np.zeros(1)
            if depth.max() > BARE * cell_size:
                raise _penetration(bone, other, f"it starts up to {depth.max():.4g} m inside it", near[depth.argmax()])
    for i, j in np.argwhere(~never[: len(scene.soft), : len(scene.soft)] & ~np.eye(len(scene.soft), dtype=bool)):
        x = mesh.position[mesh.meshes[i].nodes]
        near = x[_in_box(x, x, bodies[j].shape.bounds)]
        if len(near) == len(x) and (depth := -distance_to_body(bodies[j], x)).min() > 0.0:
            raise _penetration(
                bodies[i], bodies[j], f"it starts up to {depth.max():.4g} m inside it", x[depth.argmax()]
            )
    _refuse_crossings(scene, mesh, bone_surfaces, cell_size, bodies, never)


def _refuse_crossings(
    scene: Scene,
    mesh: object,
    bone_surfaces: BoneSurfaces,
    cell_size: float,
    bodies: list[SoftBody | RigidBody],
    never: np.ndarray,
) -> None:
    """Raise if the surfaces of two bodies intersect that are not `never` in contact, also where edges lie in faces."""
    of_point = body_of(scene, mesh, bone_surfaces)
    x = np.concatenate([mesh.position, bone_surfaces.position])
    surfaces = np.concatenate([*(p.faces + p.nodes.start for p in mesh.meshes), bone_surfaces.faces + len(mesh)])
    faces = surfaces[_may_cross(x, surfaces, of_point, never, 2.0 * BARE * cell_size)]
    if not len(faces):
        return
    hollow = np.array([isinstance(b, SoftBody) and bool(sheets_of(b.shape)) for b in bodies])
    solid = surfaces[~hollow[of_point[surfaces[:, 0]]]]
    inset = BARE * cell_size * (_asides(len(scene.soft), len(bodies))[of_point] - _outwards(x, solid))
    for shift in (np.zeros_like(x), inset):
        met = faces[crossings(x + shift, faces)]
        met = met[~_face_to_face(x, met, mesh.triangles)]
        pairs = of_point[met[:, :, 0]]
        wrong = (pairs[:, 0] != pairs[:, 1]) & ~never[pairs[:, 0], pairs[:, 1]]
        if shift is inset:  # sheets have no inside, so that two of them which touch may cross when they are moved
            wrong &= ~hollow[pairs].all(axis=1)
        if wrong.any():
            place = x[met[wrong][0]].mean(axis=(0, 1))
            pair = pairs[wrong][0]
            raise _penetration(bodies[pair.max()], bodies[pair.min()], "their surfaces intersect", place)


def _in_box(lower: np.ndarray, upper: np.ndarray, box: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Which of the boxes from `lower` to `upper`, shape (n, 3), overlap with a box from corner to corner; bool."""
    return (upper >= box[0]).all(axis=1) & (lower <= box[1]).all(axis=1)


def _may_cross(x: np.ndarray, faces: np.ndarray, of_point: np.ndarray, never: np.ndarray, around: float) -> np.ndarray:
    """Which faces are in the intersection of the boxes of two bodies that may touch, shape (n,), bool.

    Args:
        x: Points [m], shape (n_points, 3).
        faces: Points at the corners of the faces, shape (n, 3).
        of_point: Body of each point, shape (n_points,).
        never: Which pairs of bodies are never in contact, shape (n_bodies, n_bodies), bool.
        around: Distance by which the boxes of the bodies are larger than the bodies [m].
    """
    lower, upper, body = x[faces].min(axis=1), x[faces].max(axis=1), of_point[faces[:, 0]]
    low, high = np.full((len(never), 3), np.inf), np.full((len(never), 3), -np.inf)
    np.minimum.at(low, body, lower - around)
    np.maximum.at(high, body, upper + around)
    first, last = np.maximum(low[:, None], low), np.minimum(high[:, None], high)
    found = np.zeros(len(faces), dtype=bool)
    for i, j in np.argwhere((first <= last).all(axis=2) & ~never & ~np.eye(len(never), dtype=bool)):
        own = np.flatnonzero(body == i)
        found[own] |= _in_box(lower[own], upper[own], (first[i, j], last[i, j]))
    return found


def _asides(soft: int, bodies: int) -> np.ndarray:
    """Shifts of the first `soft` and all other `bodies` [depths BARE], shape (bodies, 3)."""
    direction = np.random.default_rng(0).normal(size=(soft, 3))
    shift = np.tile(np.array(_ASIDE), (bodies, 1))
    shift[:soft] = _SOFT_ASIDE * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return shift


def _outwards(x: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit outer normals at the points of closed surfaces, averaged by area, shape (n, 3); 0 at other points."""
    a, b, c = np.moveaxis(x[faces], 1, 0)
    normal = np.zeros_like(x)
    for k in range(3):
        np.add.at(normal, faces[:, k], np.cross(b - a, c - a))
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)


def _face_to_face(x: np.ndarray, pairs: np.ndarray, sheets: np.ndarray) -> np.ndarray:
    """Which pairs of faces touch from outside, shape (n,), bool: their outer normals are opposite.

    Args:
        x: Points [m], shape (n_points, 3).
        pairs: Points of the faces of each pair of faces, shape (n, 2, 3).
        sheets: Points of the triangles of sheets, which have no outer side, shape (m, 3).
    """
    a, b, c = np.moveaxis(x[pairs], 2, 0)
    normal = np.cross(b - a, c - a)
    cosine = np.einsum("ni,ni->n", *np.moveaxis(normal, 1, 0)) / np.linalg.norm(normal, axis=2).prod(axis=1)
    thin = {tuple(sorted(t)) for t in sheets.tolist()}
    hollow = np.array([any(tuple(sorted(f)) in thin for f in pair) for pair in pairs.tolist()], dtype=bool)
    return np.where(hollow, np.abs(cosine), -cosine) > _FACING


def _penetration(body: SoftBody | RigidBody, other: SoftBody | RigidBody, how: str, place: np.ndarray) -> SceneError:
    kinds = [type(b).__name__ for b in (body, other)]
    remedy = (", or connect them by a Joint", "", ", or use collisions=False")
    return SceneError(
        f"{kinds[0]} {body.name!r} and {kinds[1]} {other.name!r}: {how} near {place.round(4).tolist()} m; move them "
        f"apart, so that they touch at most" + remedy[kinds.count("SoftBody")]
    )


def _inside(scene: Scene, mesh: object) -> list[list[int]]:
    """For each bone, the indices (among soft bodies) of the soft bodies with nodes that are bound to this bone."""
    of_body = np.searchsorted([p.body for p in mesh.meshes], mesh.body)
    return [np.unique(of_body[mesh.bone == k]).tolist() for k in range(len(scene.rigid))]


def _joined(scene: Scene) -> list[set[int]]:
    """For each bone, the bones that joints connect with it, directly or through bodies without a shape.

    Bones fixed to one another count as one body.
    """
    whole = whole_bodies(scene.rigid, scene.joints)
    parts: dict[str, set[int]] = {}
    for k, bone in enumerate(scene.rigid):
        parts.setdefault(whole[bone.name], set()).add(k)
    shaped = {name for name, own in parts.items() if any(scene.rigid[k].shape is not None for k in own)}
    ends = {(whole[j.parent], whole[j.child]) for j in scene.joints if j.parent is not None}
    found = []
    for bone in scene.rigid:
        first = whole[bone.name]
        seen, ahead = {first}, [first]
        while ahead:
            name = ahead.pop()
            new = {b for a, b in (*ends, *((b, a) for a, b in ends)) if a == name} - seen
            seen |= new
            ahead += new - shaped
        found.append(set().union(*(parts[name] for name in seen)))
    return found
