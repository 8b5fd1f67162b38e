"""Makes printed parts: the solids of rigid bodies, with holes, in the pose in which they lie on the printer bed."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.drilling import drill
from warpbots.design.export.holes import AxleHole, Drilled, TendonChannel
from warpbots.design.export.orientation import lay_down
from warpbots.design.export.printer import Printer
from warpbots.design.export.solids import MM, body_solid, mesh_of
from warpbots.scene import JOINTS, RigidBody, Scene, SceneError
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    import trimesh
    from manifold3d import Manifold

__all__ = ["PrintedPart", "printed_parts"]


@dataclasses.dataclass(frozen=True, eq=False)
class PrintedPart:
    """A solid that is printed in one piece.

    Attributes:
        name: Name of the body.
        mesh: Surface of the part in the pose in which it lies on the bed, in the first octant [mm], a
            `trimesh.Trimesh`.
        pose: Transformation from the frame of the body [mm] to the frame of the mesh, shape (4, 4).
        placed: The solid in the world with all joint coordinates at zero [mm], a `manifold3d.Manifold`.
        density: Density of the body [kg/m^3].
        drilled: The cuts of the holes in the part.
    """

    name: str
    mesh: "trimesh.Trimesh"
    pose: np.ndarray
    placed: "Manifold"
    density: float
    drilled: tuple[Drilled, ...] = ()


@checked
def printed_parts(
    scene: Scene,
    holes: Sequence[AxleHole | TendonChannel] = (),
    printer: Printer | None = None,
    up: Mapping[str, Sequence[float]] | None = None,
) -> tuple[PrintedPart, ...]:
    """The parts of a robot: one for each rigid body that has a shape, in the order of the scene.

    The shapes of a body are united into one solid, the holes are cut, and the solid is laid on the bed. The part lies
    on one of the 200 largest sides of its convex hull: the side that gives the least overhang. Overhangs that differ by
    less than a hundredth of the surface, or that are below the limit of the printer, count as equal. Among sides with
    equal overhang, the side with the largest contact with the bed is chosen; among sides with equal contact, the side
    on which the part is lowest.

    Args:
        scene: The scene.
        holes: Holes for axles and tendons.
        printer: The printer; None for `Printer` with its defaults.
        up: Upward directions in the frames of bodies, by name of the body, for bodies that must be printed in a given
            orientation.

    Raises:
        SceneError: A shape is not a solid, a hole misses its part or belongs to no part, or there are no parts.
        ImportError: manifold3d is not installed.
    """
    printer, up = printer or Printer(), up or {}
    bodies = [body for body in scene.rigid if body.shape is not None]
    if not bodies:
        raise SceneError(f"Scene {scene.name!r} has no rigid body with a shape; there is nothing to print")
    _refuse_strangers(scene, bodies, holes, up)
    drilled = drill({body.name: body_solid(body) for body in bodies}, holes, scene)
    return tuple(_part(body, *drilled[body.name], printer, up.get(body.name)) for body in bodies)


def _part(
    body: RigidBody,
    solid: "Manifold",
    drilled: tuple[Drilled, ...],
    printer: Printer,
    up: Sequence[float] | None,
) -> PrintedPart:
    mesh = mesh_of(solid)
    pose = lay_down(mesh, printer, up)
    placed = solid.transform(np.column_stack([np.array(body.rotation), MM * np.array(body.position)]))
    return PrintedPart(body.name, mesh.apply_transform(pose), pose, placed, body.density, drilled)


def _refuse_strangers(
    scene: Scene,
    bodies: Sequence[RigidBody],
    holes: Sequence[AxleHole | TendonChannel],
    up: Mapping[str, Sequence[float]],
) -> None:
    """Raise if holes or orientations name bodies or joints that do not exist."""
    names, joints = [b.name for b in bodies], {j.name: j for j in scene.joints}
    faults = [
        f"TendonChannel {h.name!r}: there is no body {h.body!r} with a shape; the scene has {', '.join(names)}"
        for h in holes
        if isinstance(h, TendonChannel) and h.body not in names
    ]
    for hole in (h for h in holes if isinstance(h, AxleHole)):
        joint = joints.get(hole.joint)
        if joint is None:
            faults.append(
                f"AxleHole at {hole.joint!r}: there is no such joint; the scene has {', '.join(joints) or 'none'}"
            )
        elif not JOINTS[joint.kind].has_axis:
            faults.append(f"AxleHole at {hole.joint!r}: a {joint.kind} joint has no axis; use a revolute one")
        elif not {joint.parent, joint.child} & set(names):
            ends = " and ".join(repr(name) for name in (joint.parent, joint.child) if name is not None)
            faults.append(
                f"AxleHole at {hole.joint!r}: none of its bodies is printed, as {ends} has no shape; give one a shape, "
                f"or leave the hole out"
            )
    faults += [
        f"up: there is no body {name!r} with a shape; the scene has {', '.join(names)}"
        for name in up
        if name not in names
    ]
    faults += [
        f"up[{name!r}] must be three numbers, not all zero, got {list(direction)}"
        for name, direction in up.items()
        if np.shape(direction) != (3,) or not np.linalg.norm(direction) > 0.0
    ]
    if faults:
        raise SceneError("\n".join(faults))
