"""Converts collision geoms to shapes of bodies, and to obstacles."""

import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np

from warpbots.meshing.convex_hulls import convex_hull
from warpbots.robots.contact_filter import Filter
from warpbots.robots.kinematic_tree import TreeLink
from warpbots.robots.names import distinct
from warpbots.robots.records import GeomRecord, MeshRecord, RobotRecord
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    Obstacle,
    Posed,
    RigidBody,
    SceneError,
    Shape,
    Sphere,
    TriangleMesh,
    Union,
)
from warpbots.solvers.articulated.point_cloud import clouds

__all__ = ["CollisionSolid", "solids_of"]

_SMALL = 1e-2
"""Radius below which a geom may be too small for its surface to be sampled [m]."""

_FINEST = 1e-3
"""First size of a slender geom below which it may be too small, divided by `_SMALL` [1]."""

_THIN = 5e-3
"""Ratio of the thickness of a mesh to its length below which a sampled distance field misses the mesh [1]."""


@dataclasses.dataclass(frozen=True, eq=False)
class CollisionSolid:
    """A solid that can be in contact: either geoms of one body that touch the same other geoms, or a geom of the world.

    Attributes:
        name: Name of the body, of the part of a body or of the obstacle.
        body: Index of the body to which the geoms belong in the file.
        shape: Shape of the solid, in the frame of the body, or in the world frame for an obstacle.
        geoms: Indices of the geoms that form the solid.
        obstacle: Whether the solid becomes an obstacle rather than a part of a body.
    """

    name: str
    body: int
    shape: Shape
    geoms: tuple[int, ...]
    obstacle: bool


def solids_of(
    robot: RobotRecord, links: list[TreeLink], contact: Filter, more: Sequence[Obstacle], unknown: list[str]
) -> list[CollisionSolid]:
    """The collision solids of a file: first the solids of bodies, then the obstacles (geoms of the world, all planes).

    Geoms of a body that touch different geoms are separate solids: the first solid has the name of the body, all other
    solids are called ``"<body>/<geom>"``.

    Args:
        robot: The file.
        links: The bodies of the scene with their poses.
        contact: The rules that decide which geoms touch each other.
        more: Obstacles that are not in the file.
        unknown: Receives a line for each geom that is left out.
    """
    shapes: dict[int, Shape] = {}
    for k, geom in enumerate(robot.geoms):
        if not (geom.contype or geom.conaffinity):
            continue  # a visual
        what = f"geom {geom.name!r} of {robot.bodies[geom.body].name!r}"
        try:
            shapes[k] = _posed(geom, robot.meshes, what, unknown)
        except SceneError as fault:
            unknown.append(f"{what}: {fault}")
    at = {link.body: link for link in links if link.body is not None}
    taken = {link.name for link in links} | {obstacle.name for obstacle in more}
    world = {}
    for k, shape in shapes.items():
        body = robot.geoms[k].body
        if body == 0 or isinstance(shape, HalfSpace):
            world[k] = _moved(shape, at[body].position, at[body].rotation) if body else shape
    groups = [[k for k in group if k not in world] for group in contact.groups(list(shapes), bool(more))]
    groups, bodies = [group for group in groups if group], set()
    proposed = [robot.geoms[k].name for k in world]
    for group in groups:
        body = robot.geoms[group[0]].body
        if body in bodies:
            proposed.append(f"{robot.bodies[body].name}/{robot.geoms[group[0]].name}")
        bodies.add(body)
    names, solids = iter(distinct(proposed, taken)), []
    obstacles = [
        CollisionSolid(next(names), robot.geoms[k].body, shape, (k,), obstacle=True) for k, shape in world.items()
    ]
    for group in groups:
        body = robot.geoms[group[0]].body
        name = robot.bodies[body].name if body in bodies else next(names)
        bodies.discard(body)
        parts = tuple(shapes[k] for k in group)
        solids.append(
            CollisionSolid(name, body, parts[0] if len(parts) == 1 else Union(parts), tuple(group), obstacle=False)
        )
    return solids + obstacles


def _has_surface(shape: Shape) -> bool:
    """Whether contact points can be spread over the surface of a shape; trimesh drops tiny triangles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return isinstance(shape, HalfSpace) or bool(clouds(RigidBody("geom", shape, points=8)))
    except (SceneError, ArithmeticError, Warning):
        return False


def _posed(geom: GeomRecord, meshes: dict[int, MeshRecord], what: str, unknown: list[str]) -> Shape:
    """Shape of a geom, in the frame of its body.

    Raises:
        SceneError: The geom is of a kind that is not supported, too small, or a mesh without a convex hull.
    """
    shape = _shape(geom, meshes)
    if min(geom.radius, geom.size[0] / _FINEST) < _SMALL and not _has_surface(shape):
        raise SceneError(f"its radius of {geom.radius:.2g} m is too small for contact")
    if isinstance(shape, TriangleMesh):
        import trimesh

        turned, edges = trimesh.bounds.oriented_bounds(shape.vertices)
        if edges.min() < _THIN * edges.max():
            unknown.append(f"{what}: it is {edges.min():.2g} m thick, and in contact it is the box around it")
            pose = np.linalg.inv(turned)
            shape = _moved(Box(tuple(-edges / 2.0), tuple(edges / 2.0)), pose[:3, 3], pose[:3, :3])
    return _moved(shape, geom.position, geom.rotation)


def _moved(shape: Shape, p: np.ndarray, R: np.ndarray) -> Shape:
    """A shape, rotated by `R` and then translated by `p`; the result is a `Posed` shape only if necessary."""
    if isinstance(shape, Sphere):
        return Sphere(tuple(R @ shape.center + p), shape.radius)
    if isinstance(shape, Capsule | Cylinder):
        return type(shape)(tuple(R @ shape.start + p), tuple(R @ shape.end + p), shape.radius)
    if isinstance(shape, HalfSpace):
        return HalfSpace(tuple(R @ shape.point + p), tuple(R @ shape.normal))
    if isinstance(shape, TriangleMesh):
        return TriangleMesh(shape.vertices @ R.T + p, shape.faces)
    if isinstance(shape, Posed):
        return Posed(shape.shape, tuple(R @ shape.translation + p), R @ shape.rotation)
    return Posed(shape, tuple(p), R)


def _shape(geom: GeomRecord, meshes: dict[int, MeshRecord]) -> Shape:
    """Shape of a geom, in the frame of the geom.

    Raises:
        SceneError: The geom is of a kind that is not supported, or a mesh without a convex hull.
    """
    kind, size = geom.kind, geom.size
    if kind == "plane":
        return HalfSpace((0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    if kind == "sphere":
        return Sphere((0.0, 0.0, 0.0), size[0])
    if kind in ("capsule", "cylinder"):
        ends = (0.0, 0.0, -size[1]), (0.0, 0.0, size[1])
        return (Capsule if kind == "capsule" else Cylinder)(*ends, size[0])
    if kind == "box":
        return Box(tuple(-size), tuple(size))
    if kind == "ellipsoid":
        return _ellipsoid(size)
    if kind == "mesh":
        return _hull(meshes[geom.mesh])
    raise SceneError(f"a {kind} is not supported; use spheres, capsules, cylinders, boxes, ellipsoids, meshes, planes")


def _ellipsoid(half: np.ndarray) -> TriangleMesh:
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=3)
    return TriangleMesh(ball.vertices * half, ball.faces)


def _hull(mesh: MeshRecord) -> TriangleMesh:
    """Convex hull of a mesh, which MuJoCo uses for contact in place of the mesh."""
    hull = convex_hull(mesh.vertices)
    if hull is None:
        raise SceneError(f"mesh {mesh.name!r} has no convex hull with a volume")
    return TriangleMesh(*hull)
