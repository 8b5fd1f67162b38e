"""Writing scenes of rigid bodies to MJCF and URDF files."""

import logging
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from warpbots.output_files import replacing
from warpbots.robots.mjcf_writer import mjcf
from warpbots.robots.shape_parts import parts_of, warn_of_hollows
from warpbots.robots.urdf_writer import urdf
from warpbots.scene import Field, HalfSpace, Scene, SceneError, Servo, Torque
from warpbots.scene.field_types import checked

__all__ = ["save_robot"]

_logger = logging.getLogger(__name__)


@checked
def save_robot(path: str | Path, scene: Scene, *, contact: str = "solids", rounding: float = 0.05, timestep: float = 0.002) -> None:
    """Write a scene of rigid bodies as MJCF (.xml) or URDF (.urdf), with its meshes beside it.

    A mesh becomes ``<file>_<body>.obj``. Numbers have all their digits. MuJoCo compiles MJCF before anything is
    written, and all files are replaced, or none. Either file is read again by `load_robot`.

    **MJCF**, exact: bodies and their names, frames, masses, centres and moments of inertia; shapes; joints with axes,
    springs, dampers and armature; motors; gravity. The keyframe ``"start"`` has the start, with the controls of u = 0.
    Free motion is that of `Articulated`, to the error of the steps. Names and coordinates change where MJCF differs:

    - Planar, translational and free_2d joints are slides and hinges ``"<joint>/x"``, ``/y``, ``/z``, ``/angle``.
    - A body that floats has the coordinates of MuJoCo, its pose in the world. With springs, servos, or damping or
      armature of different sizes, or on another body, a free joint is three slides and the ball ``"<joint>/rotation"``.
    - Quaternions are (w, x, y, z), in the axes of the child.
    - The control of a `Torque` is u, that of a `Servo` its target, target + u reach [rad or m].
    - Fixed joints have no names, and no coordinates without limits are ``-1e10`` and ``1e10``.

    Approximated: MuJoCo's constraints are soft, and for an impedance of nearly zero (``solimp="0.0001 0.0001 ..."``)
    they are springs and dampers. This is how limits and contacts are written.

    - *Limits*: the stiffness is that of the joint to 1e-4; the damping is not bounded by the force of the stiffness.
    - *Which solids touch*: exactly those of `Scene.contacts`, by contype, conaffinity, ``<exclude>`` and ``<pair>``.
      Where a contact names the points of one body, both surfaces are felt.
    - *Where*: contact points and their areas are replaced by those that MuJoCo finds, at most a few for a pair. Each has
      the area of the largest face of points, divided among four. Meshes are their convex hulls, with a warning that
      names those that are not convex. Edges are sharp.
    - *Normal force*: the stiffness of that area; damping in proportion to the depth becomes that at the depth at which
      the body rests on four contacts, or, with a restitution, that of a linear spring with the same restitution.
    - *Friction*: Coulomb's cone (elliptic), with a viscosity while sticking of that area, as here, so that sticking
      contacts creep as here; ``impratio`` 100 keeps sliding from changing the normal force.

    Such contacts are springs in explicit steps: choose a `timestep` below sqrt(m / k).

    **URDF**, exact: bodies, inertia, shapes, and fixed, revolute, prismatic and floating joints with damping and limits.
    Planar, translational and free_2d joints are chains with massless links. The origin of a link is that of its joint.
    A capsule is a cylinder and two spheres. A `Torque` is an effort limit. Balls, springs and armature are refused.
    One warning lists the rest, which URDF has no words for: start, servos, obstacles, contact, gravity.

    Args:
        path: The file; its folder must exist.
        scene: A scene of rigid bodies.
        timestep: Time step of MuJoCo for MJCF [s].

    Raises:
        ImportError: MuJoCo is not installed (``pip install "warpbots[robots]"``).
        OSError: The file cannot be written; nothing was changed.
        SceneError: The scene has parts that are no rigid bodies, or that the format cannot express.
    """
    path = Path(path)
    if path.suffix.lower() not in (".xml", ".urdf"):
        raise SceneError(
            f"{path}: robots are written as MJCF (.xml) or URDF (.urdf), got {path.suffix or 'no suffix'}"
        )
    if not 0.0 < timestep < float("inf"):
        raise SceneError(f"save_robot: timestep must be positive [s], got {timestep:g}")
    _refuse_foreign_parts(path, scene)
    if path.suffix.lower() == ".xml":
        (root, meshes), left_out = mjcf(scene, path.stem, timestep, rounding if contact == "points" else None), []
    else:
        root, meshes, left_out = urdf(scene, path.stem)
    _warn(path, scene, left_out, path.suffix.lower() == ".xml")
    ElementTree.indent(root)
    contents = [*meshes.values(), ElementTree.tostring(root, encoding="utf-8") + b"\n"]
    with replacing(*(path.with_name(name) for name in meshes), path) as files:
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)


def _refuse_foreign_parts(path: Path, scene: Scene) -> None:
    """Raise if a scene has parts that robot files have no words for, or floors that move."""
    parts = {
        "SoftBody": scene.soft, "Constraint": scene.constraints, "Load": scene.loads, "Attachment": scene.attachments,
        "Field": [field for field in scene.fields if not _is_rounding(field)],
    }  # fmt: skip
    found = [f"{kind} {part.name!r}" for kind, some in parts.items() for part in some]
    found += [
        f"{type(a).__name__} {a.name!r}" for a in scene.actuators if not isinstance(a, Torque | Servo)
    ]  # fmt: skip
    found += ["Fluid"] if scene.fluid is not None else []
    if found or not scene.rigid:
        raise SceneError(
            f"{path}: URDF and MJCF hold rigid bodies, joints and their motors; the scene has {', '.join(found)}; "
            f"leave them out, or write USD with wb.usd.write"
        )
    for body in (b for b in scene.rigid if b.shape is not None):
        if any(part.kind == "plane" for part in parts_of(body.shape, f"RigidBody {body.name!r}")):
            raise SceneError(
                f"RigidBody {body.name!r}: a {HalfSpace.__name__} that moves is not written; make it an Obstacle, or a "
                f"Box"
            )


def _is_rounding(field: Field) -> bool:
    """Whether a field differs from the records of its scene in the last digits only, as where they were baked."""
    return field.recorded is not None and np.allclose(field.values, field.recorded, rtol=1e-9, atol=1e-12)


def _warn(path: Path, scene: Scene, left_out: list[str], hulls: bool) -> None:
    """List what is left out, and the meshes that are not convex where their hulls are felt."""
    if left_out:
        _logger.warning(
            "%s: left out, because URDF has no words for it:%s", path, "".join(f"\n  {line}" for line in left_out)
        )
    if hulls:
        named = {n for law in scene.contacts for n in (law.points, law.solid)}
        solids = [*((b.name, b.shape) for b in scene.rigid if b.shape is not None and {b.name, b.surface} & named)]
        solids += [(o.name, o.shape) for o in scene.obstacles if o.name in named]
        warn_of_hollows(path, [(name, part) for name, shape in solids for part in parts_of(shape, name)])
