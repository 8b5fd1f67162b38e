"""Writing scenes of rigid bodies to MJCF and URDF files."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from warpbots.file_warnings import WRITTEN, warn_of_file
from warpbots.output_files import replacing
from warpbots.robots.mjcf_writer import mjcf
from warpbots.robots.robot_xml import NAMED
from warpbots.robots.shape_parts import hollows, parts_of
from warpbots.robots.urdf_writer import urdf
from warpbots.scene import Field, Scene, SceneError, Servo, Torque
from warpbots.scene.field_types import checked
from warpbots.scene.motion_checks import moves

__all__ = ["save"]


@checked
def save(
    path: str | Path, scene: Scene, *, contact: str = "solids", rounding: float = 0.05, timestep: float = 0.002
) -> None:
    """Write a scene of rigid bodies as MJCF (.xml or .mjcf) or URDF (.urdf), with its meshes in the same folder.

    Meshes become ``<file>_<body>.obj``. Numbers are written with all their digits. MuJoCo compiles MJCF before anything
    is written, and either all files are replaced, or none. `load` reads both formats; ``keyframe="start"`` selects the
    start.

    **MJCF** reproduces exactly: bodies with names, frames, masses, centres and moments of inertia; shapes; joints with
    axes, springs, dampers and armature; motors; gravity; the start, as a keyframe with the controls of u = 0. Free
    motion agrees with `Articulated` up to time-step errors. Names and coordinates differ where MJCF requires it:

    - Planar, translational and free_2d joints are slides and hinges: ``"<joint>/x"``, ``/y``, ``/z``, ``/angle``.
    - The coordinates of a body that floats are its pose in the world. A free joint with springs, servos, unequal
      damping or armature, or a parent is written as three slides and a ball, ``"<joint>/rotation"``.
    - Quaternions are (w, x, y, z), in the axes of the child.
    - The control of a `Torque` is u; the control of a `Servo` is its momentary target, target + u reach [rad or m].
    - Fixed joints have no names, and a limit that is infinite is 1e10.

    Limits and contacts are approximated by MuJoCo's soft constraints. They are written with the smallest impedance
    (``solimp="0.0001 0.0001 ..."``) and direct ``solref``, with which they act as springs and dampers:

    - *Limits* have the stiffness of the joint limits, to 1e-4; their damping force may exceed the spring force.
    - *Pairs of bodies that touch* follow `Scene.contacts` exactly, by contype, conaffinity, ``<exclude>`` and
      ``<pair>``.
    - *Normal forces* have the stiffness of the law. The damping of the law grows with the depth. In the file the
      damping is constant: it is the damping of the law at the depth at which the body rests on four contacts, or, for a
      law with a restitution, the damping of a linear spring with the same restitution. An instant impact of
      `Articulated` takes time in MuJoCo.
    - *Friction* has Coulomb's cone (elliptic). While a contact sticks, it has the viscosity of the law, so that it
      creeps as in `Articulated`. Sliding at speed v adds friction times viscosity times v, divided by
      ``impratio="100"``, to the normal stress.
    - *Points of action* depend on `contact`. With ``"solids"``, forces act at the contacts that MuJoCo detects between
      solids, at most a few for a pair. Each contact stands for a quarter of the area of the largest face; edges are
      sharp, and the surfaces of both solids touch. With ``"points"``, forces act at the contact points, which are
      written as balls of 1 um that touch only by a ``<pair>``. Edges of boxes and cylinders are rounded as in
      `Articulated`, but MuJoCo places the force halfway between a point and the core of the rounded solid. `load` reads
      such a file without contact.
    - *Meshes* are replaced by their convex hulls in contact; a warning names the meshes that are not convex.

    MuJoCo integrates such contacts as springs with explicit steps: `timestep` must resolve sqrt(m / k) of the lightest
    body in contact.

    **URDF** reproduces exactly: bodies, inertia, shapes, and fixed, revolute, prismatic and floating joints with
    damping and with lower and upper limits. Planar, translational and free_2d joints become chains with massless links.
    The origin of a link is the origin of its joint. A capsule becomes a cylinder and two spheres, and a `Torque` an
    effort limit. Ball joints, springs and armature are refused. One warning lists everything left out: the start,
    servos, stiffness and damping of limits, obstacles, contacts, gravity.

    Args:
        path: The file; its folder must exist.
        scene: A scene of rigid bodies.
        contact: Where contact forces act in MJCF: ``"solids"``, or ``"points"`` for a motion as in `Articulated`.
        rounding: Relative radius of edges for ``contact="points"``, defined as `rounding` of `Articulated` [1].
        timestep: Time step of MJCF [s].

    Raises:
        ImportError: MuJoCo is not installed (``pip install "warpbots[robots]"``).
        OSError: A file cannot be written; nothing was changed.
        SceneError: The scene has parts that are not rigid bodies, or that the format cannot express.
    """
    path = Path(path)
    if path.suffix.lower() not in NAMED:
        raise SceneError(
            f"{path}: robots are written as MJCF (.xml, .mjcf) or URDF (.urdf), got {path.suffix or 'no suffix'}"
        )
    if contact not in ("solids", "points"):
        raise SceneError(f"save: contact must be 'solids' or 'points', got {contact!r}")
    if timestep <= 0.0 or not 0.0 <= rounding < 1.0:
        raise SceneError(
            f"save: timestep must be positive [s] and rounding in [0, 1) [1], got {timestep:g} and {rounding:g}"
        )
    _refuse_foreign_parts(path, scene)
    if path.suffix.lower() != ".urdf":
        root, meshes = mjcf(scene, path.stem, timestep, rounding if contact == "points" else None)
        notes, heading = _hollows(scene), WRITTEN
    else:
        root, meshes, left_out = urdf(scene, path.stem)
        notes, heading = [("", line) for line in left_out], "left out, because URDF cannot express it"
    warn_of_file(path, notes, heading)
    ElementTree.indent(root)
    contents = [*meshes.values(), ElementTree.tostring(root, encoding="utf-8") + b"\n"]
    with replacing(*(path.with_name(name) for name in meshes), path) as files:
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)


def _refuse_foreign_parts(path: Path, scene: Scene) -> None:
    """Raise if a scene has parts that robot files cannot express, or half spaces that move."""
    parts = {
        "SoftBody": scene.soft, "Constraint": scene.constraints, "Load": scene.loads, "Attachment": scene.attachments,
        "Field": [field for field in scene.fields if not _is_rounding(field)],
    }  # fmt: skip
    found = [f"{kind} {part.name!r}" for kind, some in parts.items() for part in some]
    found += [f"{type(a).__name__} {a.name!r}" for a in scene.actuators if not isinstance(a, Torque | Servo)]
    found += [f"the motion of Obstacle {o.name!r}" for o in scene.obstacles if moves(o, scene.actuators)]
    found += ["Fluid"] if scene.fluid is not None else []
    if found or not scene.rigid:
        raise SceneError(
            f"{path}: URDF and MJCF hold rigid bodies, joints and their motors; the scene has {', '.join(found)}; "
            f"leave them out, or write USD with wb.usd.write"
        )
    for body in (b for b in scene.rigid if b.shape is not None):
        if any(part.kind == "plane" for part in parts_of(body.shape, f"RigidBody {body.name!r}")):
            raise SceneError(
                f"RigidBody {body.name!r}: a HalfSpace that moves is not written; make it an Obstacle, or a Box"
            )


def _is_rounding(field: Field) -> bool:
    """Whether the values of a field differ from the recorded ones only in the last digits, as they do after baking."""
    return field.recorded is not None and np.allclose(field.values, field.recorded, rtol=1e-9, atol=1e-12)


def _hollows(scene: Scene) -> list[tuple[str, str]]:
    """Notes on meshes in contact that are not convex."""
    named = {name for law in scene.laws for name in (law.points, law.solid)}
    solids = [(b.name, b.shape) for b in scene.rigid if b.shape is not None and {b.name, b.surface} & named]
    solids += [(o.name, o.shape) for o in scene.obstacles if o.name in named]
    return hollows([(name, part) for name, shape in solids for part in parts_of(shape, name)])
