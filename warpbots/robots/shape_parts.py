"""Divides shapes into the parts of robot files: boxes, spheres, capsules, cylinders, planes and meshes, with poses."""

import dataclasses
import functools

import numpy as np

from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    Posed,
    SceneError,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    Union,
)

__all__ = ["PlacedShape", "hollows", "mesh_text", "parts_of"]

_HOLLOW = 0.02
"""Largest excess volume of the convex hull of a mesh without a warning, divided by the volume of the mesh [1]."""

_REMEDY = "give it a Box, Sphere, Capsule, Cylinder or TriangleMesh, or a Union of them"


@dataclasses.dataclass(frozen=True, eq=False)
class PlacedShape:
    """A primitive or a mesh, with its pose in the frame of its body, or in the world frame for an obstacle.

    Attributes:
        kind: Kind of the part: ``"box"``, ``"sphere"``, ``"capsule"``, ``"cylinder"``, ``"plane"`` or ``"mesh"``.
        size: Half edges of a box; radius of a sphere; radius and half length along z of a capsule or cylinder [m].
        position: Origin of the part [m], shape (3,).
        rotation: Axes of the part as columns, shape (3, 3); z is the axis of a capsule or cylinder, or the normal of a
            plane.
        mesh: The mesh; None for a primitive.
    """

    kind: str
    size: tuple[float, ...]
    position: np.ndarray
    rotation: np.ndarray
    mesh: TriangleMesh | None = None

    def core(self, rounding: float) -> tuple["PlacedShape", float]:
        """The core of a box or cylinder, and the radius of its rounded edges [m].

        The core is smaller than the part by this radius on all sides. All points within this radius of the core form
        the solid with rounded edges, as in `Articulated`. For parts of other kinds, the core is the part itself, and
        the radius is 0.

        Args:
            rounding: Radius of the rounded edges divided by the smallest half edge of a box, or by the smaller of
                radius and half length of a cylinder [1].
        """
        if self.kind not in ("box", "cylinder"):
            return self, 0.0
        radius = rounding * min(self.size)
        return dataclasses.replace(self, size=tuple(s - radius for s in self.size)), radius

    def moved(self, position: np.ndarray, rotation: np.ndarray) -> "PlacedShape":
        """The part, rotated by `rotation` and then translated by `position`."""
        return dataclasses.replace(
            self, position=rotation @ self.position + position, rotation=rotation @ self.rotation
        )


def parts_of(shape: Shape, what: str) -> list[PlacedShape]:
    """The primitives and meshes that make up a shape.

    Args:
        shape: A shape.
        what: Owner of the shape, for messages.

    Raises:
        SceneError: Robot files cannot express the shape.
    """
    try:
        return _parts(shape)
    except TypeError as fault:
        raise SceneError(f"{what}: {fault}; {_REMEDY}") from None


@functools.singledispatch
def _parts(shape: Shape) -> list[PlacedShape]:
    raise TypeError(f"URDF and MJCF files are not written with a {type(shape).__name__}")


@_parts.register
def _(shape: Box) -> list[PlacedShape]:
    lower, upper = shape.bounds
    return [PlacedShape("box", tuple((upper - lower) / 2.0), (lower + upper) / 2.0, np.eye(3))]


@_parts.register
def _(shape: Sphere) -> list[PlacedShape]:
    return [PlacedShape("sphere", (shape.radius,), np.array(shape.center), np.eye(3))]


@_parts.register(Capsule)
@_parts.register(Cylinder)
def _(shape: Capsule | Cylinder) -> list[PlacedShape]:
    start, end = np.array(shape.start), np.array(shape.end)
    length = float(np.linalg.norm(end - start))
    size = (shape.radius, length / 2.0)
    return [PlacedShape(type(shape).__name__.lower(), size, (start + end) / 2.0, _along((end - start) / length))]


@_parts.register
def _(shape: HalfSpace) -> list[PlacedShape]:
    return [PlacedShape("plane", (), np.array(shape.point), _along(np.array(shape.normal)))]


@_parts.register
def _(shape: TriangleMesh) -> list[PlacedShape]:
    return [PlacedShape("mesh", (), np.zeros(3), np.eye(3), shape)]


@_parts.register
def _(shape: TetMesh) -> list[PlacedShape]:
    used, faces = np.unique(shape.surface, return_inverse=True)
    return _parts(TriangleMesh(shape.vertices[used], faces.reshape(shape.surface.shape)))


@_parts.register
def _(shape: Union) -> list[PlacedShape]:
    return [part for one in shape.shapes for part in _parts(one)]


@_parts.register
def _(shape: Posed) -> list[PlacedShape]:
    position, rotation = np.array(shape.translation), np.array(shape.rotation)
    return [part.moved(position, rotation) for part in _parts(shape.shape)]


def _along(z: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the unit vector z; the identity for the z axis."""
    if z[2] == 1.0:
        return np.eye(3)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def mesh_text(mesh: TriangleMesh) -> bytes:
    """A mesh as Wavefront OBJ, with all digits of its vertices."""
    import trimesh

    plain = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    text = trimesh.exchange.obj.export_obj(plain, include_normals=False, header=None, digits=17)
    return (text + "\n").encode()


def hollows(parts: list[tuple[str, PlacedShape]]) -> list[tuple[str, str]]:
    """A note that names the meshes that are not convex: MuJoCo uses their hulls for contact.

    The list is empty if all meshes are convex.

    Args:
        parts: Parts with the names of their bodies or obstacles.
    """
    import trimesh

    found = {}
    for name, part in parts:
        if part.mesh is not None:
            hull = trimesh.convex.convex_hull(part.mesh.vertices)
            excess = float(hull.volume) / part.mesh.volume - 1.0
            if excess > _HOLLOW:
                found[name] = max(excess, found.get(name, 0.0))
    if not found:
        return []
    names = ", ".join(f"{name!r} (by {excess:.0%})" for name, excess in found.items())
    return [
        ("", f"in contact MuJoCo takes meshes as their convex hulls, which are larger than the meshes of {names}; for "
             f"contact with their hollows make them Unions of convex parts")
    ]  # fmt: skip
