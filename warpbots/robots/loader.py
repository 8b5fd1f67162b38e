"""Robots from files: URDF and MJCF."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.robots.actuated_joints import motors_of
from warpbots.robots.collision_geoms import Solid, solids_of
from warpbots.robots.contact_laws import dressed
from warpbots.robots.kinematic_tree import Link, floating, start_of, tree_of
from warpbots.robots.mujoco_source import Source, matrix, read
from warpbots.robots.unsupported import loops, survey
from warpbots.scene import Inertia, Joint, Obstacle, RigidBody, Scene
from warpbots.scene.field_types import checked

__all__ = ["load_robot"]

_logger = logging.getLogger(__name__)

_OUTSIDE = 1e-2
"""How far behind a limit a joint may start without a word [rad or m]."""


@checked
def load_robot(
    path: str | Path,
    *,
    fixed_base: bool | None = None,
    contact_points: int = 64,
    self_contact: bool = True,
    obstacles: Sequence[Obstacle] = (),
    surroundings: bool = True,
    keyframe: str | None = None,
    ignore_loops: bool = False,
    compiler: Mapping[str, Any] | None = None,
    asset_root: str | Path | None = None,
) -> Scene:
    """A scene from a robot file: URDF (.urdf) or MJCF (.xml), read by MuJoCo's own parser and compiler.

    Coordinates and velocities are those of MuJoCo, in its units, but for the order of quaternions, which are
    (x, y, z, w) here: angles and lengths are 0 where MuJoCo's are, and the coordinates of a floating base are its place
    in the world. So all coordinates are zero where a floating base lies at the origin, and `Joint.start` is where the
    robot starts. A body with several joints hangs on bodies without mass named ``"<body>/<joint>"``.

    Meshes touch as their convex hulls, geoms without contype and conaffinity not at all, and contact has the stiffness,
    damping and viscosity of `warpbots.scene.contacts_between`, not solref and solimp; neither format has a coefficient
    of restitution. Limits of joints are springs and dampers, as stiff and as slow as MuJoCo's under a load. What hangs
    together at a joint does not touch one another.

    A link of URDF without ``<inertial>`` weighs nothing, as URDF defines it, unless a joint moves links that have no
    mass among them: these weigh as their collision geometry at 1000 kg/m^3, which is said. Moments of inertia that no
    body has become the nearest that one can have, which is said, too, or are refused where they are far from it. MJCF
    has MuJoCo's rules. COLLADA meshes are read as by ROS: their unit counts, their ``up_axis`` does not; those of glTF
    are y up.

    Motors on joints become `Torque`, whose u = 1 is the greatest control or force, and position actuators `Servo`,
    whose u in [-1, 1] is the range of control, or else that of the joint. From a keyframe they are at its controls for
    u = 0, and at the further end of the range for u = 1 or -1: with ``keyframe="home"`` a rollout without controls
    holds the home pose. Robots with other motors, or none, hold theirs by `hold_pose`. A URDF file without actuators
    has a `Torque` with the name of the joint for every limit of effort; its limits of velocity are left out without a
    word, as are sensors, sites, cameras, lights and looks. All else that is not simulated is named in one warning.

    Args:
        path: The file; its meshes lie where it says, ``package://`` in or above its folder.
        fixed_base: Whether the base is fixed where it starts, or floats; None for what the file says: the root of URDF
            is fixed. In MJCF bodies on the world that carry no joints are no bases and stay as they are.
        contact_points: Points with which every moving body touches, spread over its surface; 0 for no contact.
        self_contact: Whether bodies of one robot touch one another.
        obstacles: More obstacles, which everything touches, as ``wb.floor()`` for a file without a ground.
        surroundings: Whether geoms of the world, as its floor, and planes become obstacles.
        keyframe: Name of the keyframe of MJCF at which the robot starts, with its controls; None for the file's own
            pose, which is often outside of limits where there is a keyframe.
        ignore_loops: Whether to leave out equality constraints, among them joints of URDF that mimic others.
        compiler: Attributes of MJCF's ``<compiler>`` in the place of the file's, for URDF, too: ``balanceinertia``,
            ``boundmass``, ``boundinertia``, ``discardvisual``, ``fitaabb``, ``inertiafromgeom``, ``inertiagrouprange``,
            ``meshdir`` and ``settotalmass``, as in ``{"balanceinertia": True}``.
        asset_root: The folder outside of which nothing is read that the file refers to; None for the one above its own.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: MuJoCo is not installed (``pip install "warpbots[robots]"``).
        SceneError: MuJoCo cannot read the file, it has no bodies, no such keyframe, or loops; it refers to files that
            are not there or lie outside of `asset_root`; a joint moves what has no mass.
    """
    source = read(path, compiler, asset_root, floats=fixed_base is False)
    unknown = [*source.lines, *loops(source, ignore_loops), *survey(source)]
    start = start_of(source, keyframe)
    links, joints = tree_of(source, start, floating(source, fixed_base))
    taken = {link.name for link in links} | {o.name for o in obstacles}
    solids = [s for s in solids_of(source, links, taken, unknown) if surroundings or not s.obstacle]
    bodies = [_body(source, link, {s.body: s for s in solids if not s.obstacle}) for link in links]
    bodies, contacts = dressed(source, solids, bodies, joints, obstacles, contact_points * source.touches, self_contact)
    motors = motors_of(source, joints, start, unknown)
    _warn(source, unknown)
    _warn_of_limits(source, joints)
    return Scene(
        bodies=bodies, actuators=motors, obstacles=(*_ground(source, solids), *obstacles),
        gravity=tuple(source.model.opt.gravity), name=source.name, joints=joints, contacts=contacts,
    )  # fmt: skip


def _body(source: Source, link: Link, solids: dict[int, Solid]) -> RigidBody:
    """A link with its mass and shape, without surface and points."""
    solid = solids.get(link.body)
    values = {"color": _color(source, solid.geoms[0])} if solid else {}
    return RigidBody(
        link.name, solid and solid.shape, inertia=_inertia(source, link.body, solid), position=tuple(link.position),
        rotation=link.rotation, **values,
    )  # fmt: skip


def _inertia(source: Source, body: int | None, solid: Solid | None) -> Inertia | None:
    """That of the file; where it has none, a solid has the least that there is, as its density would give it more."""
    if body is None or (solid is None and not source.weighs(body)):
        return None
    model = source.model
    axes = matrix(model.body_iquat[body])
    moments = axes @ np.diag(model.body_inertia[body]) @ axes.T
    return Inertia(float(model.body_mass[body]), tuple(model.body_ipos[body]), (moments + moments.T) / 2.0)


def _color(source: Source, geom: int) -> tuple[float, ...]:
    model, material = source.model, source.model.geom_matid[geom]
    return tuple(float(c) for c in (model.geom_rgba[geom] if material < 0 else model.mat_rgba[material])[:3])


def _ground(source: Source, solids: list[Solid]) -> list[Obstacle]:
    return [
        Obstacle(s.shape, friction=float(source.model.geom_friction[s.geoms[0], 0]), name=s.name)
        for s in solids
        if s.obstacle
    ]


def _warn(source: Source, unknown: list[str]) -> None:
    """Say in one warning what was left out, and what MuJoCo found strange."""
    lines = [*unknown, *(f"MuJoCo says: {' '.join(note.split())}" for note in source.notes)]
    if lines:
        _logger.warning(
            "%s: left out what warpbots does not simulate, or not in that way:%s",
            source.path, "".join(f"\n  {line}" for line in lines),
        )  # fmt: skip


def _warn_of_limits(source: Source, joints: list[Joint]) -> None:
    """Say which joints start outside of their limits, which throw them back."""
    outside = {
        j.name: depth
        for j in joints
        if j.lower is not None and (depth := max(j.lower[0] - j.start[0], j.start[0] - j.upper[0])) > _OUTSIDE
    }
    if outside:
        keys = [source.model.key(k).name for k in range(source.model.nkey) if source.model.key(k).name]
        _logger.warning(
            "%s: starts outside of the limits of %s, by up to %.2g rad or m, which throw it back; start at a pose "
            "within them with %shold_pose(scene, {...})",
            source.path, ", ".join(map(repr, outside)), max(outside.values()),
            f"keyframe={keys[0]!r}, or " if keys else "",
        )  # fmt: skip
