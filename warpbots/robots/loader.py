"""Loading robots from URDF and MJCF files."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.file_warnings import warn_of_file
from warpbots.robots.actuated_joints import motors_of
from warpbots.robots.collision_geoms import CollisionSolid, solids_of
from warpbots.robots.contact_filter import Filter
from warpbots.robots.contact_laws import with_contact
from warpbots.robots.kinematic_tree import TreeLink, floating, start_of, tree_of
from warpbots.robots.loops import left_out_equalities
from warpbots.robots.masses import LEAST
from warpbots.robots.model_reader import records_of
from warpbots.robots.mujoco_source import read
from warpbots.robots.names import unique
from warpbots.robots.records import RobotRecord
from warpbots.robots.start_overlaps import overlaps_at
from warpbots.scene import Inertia, Joint, Obstacle, RigidBody, Scene
from warpbots.scene.color import in_range, within_range
from warpbots.scene.field_types import checked

__all__ = ["load"]

_OUTSIDE = 1e-2
"""Distance beyond the limit of a joint from which its start coordinate is reported [rad or m]."""


@checked
def load(
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
    packages: Mapping[str, str | Path] | None = None,
) -> Scene:
    """Load a URDF or MJCF file as a scene; MuJoCo's own parser and compiler read the file.

    The format is recognised by the content of the file, not by the ending of its name.

    Joint coordinates q and velocities qd are the same as in MuJoCo, except that quaternions are (x, y, z, w). The
    coordinates of a floating base are its pose in the world, so that they are zero for a base at the origin;
    `Joint.start` has the initial coordinates. A body with several joints has massless parents named
    ``"<body>/<joint>"``.

    For contact, meshes are replaced by their convex hulls, with MuJoCo's choice of vertices if the file limits their
    number by ``maxhullvert``; geoms without contype and conaffinity have no contact. Contact has the stiffness, damping
    and viscosity of `warpbots.scene.contacts_between`, not solref and solimp; neither format has a coefficient of
    restitution. Joint limits are springs and dampers with the static stiffness and the time constant of MuJoCo's limits
    under a load.

    MuJoCo's bits, exclusions, pairs and priorities decide which geoms touch. Bodies that a joint connects do not touch,
    unless one of them is fixed to the world or a body without geometry lies between them. Such neighbours do not touch
    if they overlap at the start, although MuJoCo would push them apart; the warning names them. If the geoms of a body
    differ in the geoms that they touch, or in their friction, they become separate bodies without mass, called
    ``"<body>/<geom>"`` and fixed to the body; they share the contact points of the body.

    A link of URDF without ``<inertial>`` has no mass, as URDF defines it, unless a joint moves only links without mass:
    these links get the mass of their collision geometry at 1000 kg/m^3, with a warning. Impossible moments of inertia
    are replaced by the nearest possible ones, with a warning, or refused if they are far off. MJCF follows MuJoCo's
    rules. COLLADA meshes are read as in ROS: their unit is used, their ``up_axis`` is ignored. glTF meshes are read
    with y up.

    Torque motors become `Torque`, with the largest control or force at u = 1. Position actuators become `Servo`: u in
    [-1, 1] covers the control range, or without a control range the range of the joint. With a keyframe, the controls
    of the keyframe are the targets of servos at u = 0, and u = 1 or u = -1 reaches the farther end of the range: with
    ``keyframe="home"`` a rollout without controls holds the home pose. Use `hold_pose` for robots with other motors or
    without motors. In a URDF file without actuators, every joint with an effort limit gets a `Torque` with the name of
    the joint. Velocity limits, sensors, sites, cameras, lights and visuals are left out silently. Everything else that
    is not simulated is listed in one `FileWarning`.

    Args:
        path: The file. Its meshes are found by their paths. The package of ``package://NAME/...`` and
            ``model://NAME/...`` is searched for among the folders above the file, and beside these folders as in a ROS
            workspace; it is recognised by the name in its package.xml, or else by the name of its folder.
        fixed_base: Whether the base is fixed at its initial pose, or floats; None to follow the file: the root of
            URDF is fixed. In MJCF, bodies attached to the world without joints below them are not bases and stay fixed.
        contact_points: Number of contact points of every moving body, spread over its surface; 0 for no contact
            (``contacts=()``).
        self_contact: Whether bodies of one robot touch each other.
        obstacles: More obstacles, such as ``wb.floor()`` for a file without a ground. All bodies touch them. A body
            touches them with the geoms that match MuJoCo's default bits, or with all its geoms if none matches.
        surroundings: Whether planes and geoms of the world, such as its floor, become obstacles.
        keyframe: Name of the keyframe of MJCF at which the robot starts, with its controls; None for the default pose,
            which often violates limits if the file has keyframes.
        ignore_loops: Whether to leave out equality constraints, including joints of URDF that mimic others.
        compiler: Attributes of MJCF's ``<compiler>`` that override attributes in the file, in MJCF and in URDF:
            ``balanceinertia``, ``boundmass``, ``boundinertia``, ``discardvisual``, ``fitaabb``, ``inertiafromgeom``,
            ``inertiagrouprange``, ``meshdir`` and ``settotalmass``, as in ``{"balanceinertia": True}``.
        asset_root: The folder outside which no referenced file is read. None for the parent of the file's folder, or
            for the file's folder itself if that parent contains the home folder.
        packages: Folders of packages by name, for URDF; packages that are not given are searched for.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ImportError: MuJoCo is not installed (``pip install "warpbots[robots]"``).
        SceneError: MuJoCo cannot read the file; it has no bodies, no such keyframe, or loops; it refers to files that
            do not exist or lie outside `asset_root`; a joint moves bodies without mass.
    """
    source = read(path, compiler, asset_root, floats=fixed_base is False, packages=packages)
    robot = records_of(source)
    unknown = [*robot.mended, *left_out_equalities(robot, ignore_loops), *robot.unsupported]
    start = start_of(robot, keyframe)
    links, joints = tree_of(robot, start, floating(robot, fixed_base))
    contact = Filter(robot, joints, self_contact)
    solids = [s for s in solids_of(robot, links, contact, obstacles, unknown) if surroundings or not s.obstacle]
    bodies, joints = _bodies(robot, links, joints, [s for s in solids if not s.obstacle])
    points, overlaps = contact_points * robot.has_contact, functools.partial(overlaps_at, source, start)
    bodies, contacts = with_contact(contact, solids, bodies, joints, obstacles, points, overlaps, unknown)
    motors = motors_of(robot, joints, start, unknown)
    said = [f"MuJoCo says: {' '.join(note.split())}" for note in robot.said]
    doubtful = *_bright_colors(robot, solids), *_outside_limits(robot, joints)
    warn_of_file(robot.path, [("", line) for line in (*unknown, *said, *doubtful)])
    return Scene(
        bodies=bodies, actuators=motors, obstacles=(*_ground(robot, solids), *obstacles),
        gravity=tuple(robot.gravity), name=robot.name, joints=joints, contacts=contacts,
    )  # fmt: skip


def _bodies(
    robot: RobotRecord, links: list[TreeLink], joints: list[Joint], solids: list[CollisionSolid]
) -> tuple[list[RigidBody], list[Joint]]:
    """Bodies and joints of a scene.

    Solids that are only parts of a body become massless bodies at the end of the list.
    """
    names, taken = {link.name for link in links}, {joint.name for joint in joints}
    at = {link.body: link for link in links if link.body is not None}
    bodies = [_body(robot, link, {s.body: s for s in solids if s.name in names}) for link in links]
    parts = [solid for solid in solids if solid.name not in names]
    ties = []
    for part in parts:
        link = at[part.body]
        place = {"position": tuple(link.position), "rotation": link.rotation}
        massless = Inertia(LEAST, (0.0, 0.0, 0.0), np.full(3, LEAST))
        bodies.append(RigidBody(part.name, part.shape, inertia=massless, **_looks(robot, part), **place))
        ties.append(Joint(unique(part.name, taken), "fixed", link.name, part.name, **place))
    return bodies, [*joints, *ties]


def _body(robot: RobotRecord, link: TreeLink, solids: dict[int, CollisionSolid]) -> RigidBody:
    """The rigid body for a link, with mass and shape, still without surface and contact points."""
    solid = solids.get(link.body)
    return RigidBody(
        link.name, solid and solid.shape, inertia=_inertia(robot, link.body, solid), position=tuple(link.position),
        rotation=link.rotation, **(_looks(robot, solid) if solid else {}),
    )  # fmt: skip


def _looks(robot: RobotRecord, solid: CollisionSolid) -> dict:
    """Colour, if the file gives one, and friction of the first geom of a solid."""
    geom = robot.geoms[solid.geoms[0]]
    color = None if geom.color is None else within_range(geom.color)
    return {"color": color, "friction": 0.0 if geom.frictionless else geom.friction}


def _inertia(robot: RobotRecord, body: int | None, solid: CollisionSolid | None) -> Inertia | None:
    """Inertia of a body of the file; None for a massless body without a solid.

    A massless body with a solid gets MuJoCo's smallest mass, so that the default density of the solid is not used.
    """
    if body is None or (solid is None and not robot.bodies[body].weighs):
        return None
    said = robot.bodies[body]
    return Inertia(said.mass, tuple(said.center), said.moments)


def _ground(robot: RobotRecord, solids: list[CollisionSolid]) -> list[Obstacle]:
    return [Obstacle(s.shape, friction=robot.geoms[s.geoms[0]].friction, name=s.name) for s in solids if s.obstacle]


def _bright_colors(robot: RobotRecord, solids: list[CollisionSolid]) -> list[str]:
    """A line for each solid that is no obstacle and whose colour in the file is not in [0, 1]."""
    colors = {solid.name: robot.geoms[solid.geoms[0]].color for solid in solids if not solid.obstacle}
    return [
        f"the colour {color} of {name!r} is not in [0, 1] and is read as one of the same hue"
        for name, color in colors.items()
        if color is not None and not in_range(color)
    ]


def _outside_limits(robot: RobotRecord, joints: list[Joint]) -> list[str]:
    """A line that names all joints that start outside their limits, or no line if there are none."""
    outside = {
        j.name: depth
        for j in joints
        if j.lower is not None and (depth := max(j.lower[0] - j.start[0], j.start[0] - j.upper[0])) > _OUTSIDE
    }
    if not outside:
        return []
    keys = [key.name for key in robot.keyframes if key.name]
    return [
        f"starts outside the limits of {', '.join(map(repr, outside))}, by up to {max(outside.values()):.2g} rad or m, "
        f"which push it back; start at a pose within them with "
        f"{f'keyframe={keys[0]!r}, or ' if keys else ''}hold_pose(scene, {{...}})"
    ]
