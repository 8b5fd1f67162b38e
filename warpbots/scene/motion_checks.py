"""Checks of drives that move obstacles and constraints, and a list of everything that moves."""

from collections.abc import Collection, Sequence
from typing import Any

from warpbots.scene.boundary_conditions import Constraint
from warpbots.scene.obstacle import Obstacle
from warpbots.scene.prescribed_motion import VelocityDrive

__all__ = ["MOST_DRIVES", "changes_place", "drives_of", "motion_faults", "moves"]

MOST_DRIVES = 6
"""Largest number of drives of one obstacle or constraint: as many as a rigid body has degrees of freedom."""


def drives_of(name: str, actuators: Sequence[Any]) -> list[tuple[int, VelocityDrive]]:
    """The drives of the obstacle or constraint `name`, each with its control channel, in the order of the channels."""
    return [(c, a) for c, a in enumerate(actuators) if isinstance(a, VelocityDrive) and a.moves == name]


def moves(part: Obstacle | Constraint, actuators: Sequence[Any]) -> bool:
    """Whether an obstacle, its surface, or a constraint moves."""
    belt = isinstance(part, Obstacle) and part.surface_velocity is not None
    return part.motion is not None or belt or bool(drives_of(part.name, actuators))


def changes_place(part: Obstacle | Constraint, actuators: Sequence[Any]) -> bool:
    """Whether an obstacle or a constraint moves, and not only its surface."""
    return part.motion is not None or any(d.kind != "surface" for _, d in drives_of(part.name, actuators))


def motion_faults(
    obstacles: Sequence[Obstacle],
    constraints: Sequence[Constraint],
    actuators: Sequence[Any],
    bodies: Collection[str] = (),
) -> list[str]:
    """Faults of drives, one sentence for each.

    A drive moves nothing that is in the scene, a body, or both an obstacle and a constraint; it moves the surface of a
    constraint; an obstacle that moves has the name of a body; or an obstacle or a constraint has too many drives.

    Args:
        obstacles: Obstacles of a scene.
        constraints: Constraints of the scene.
        actuators: Actuators of the scene.
        bodies: Names of the bodies of the scene.
    """
    solid, held = {o.name for o in obstacles}, {c.name for c in constraints}
    faults = []
    for drive in (a for a in actuators if isinstance(a, VelocityDrive)):
        what = f"VelocityDrive {drive.name!r}"
        if drive.moves in solid & held:
            faults.append(f"{what}: both an obstacle and a constraint are named {drive.moves!r}; rename one of them")
        elif drive.moves not in solid | held and drive.moves in bodies:
            faults.append(
                f"{what}: body {drive.moves!r} moves freely, and only an obstacle or a constraint moves as prescribed; "
                f"make it an Obstacle, or drive its joint with a Servo"
            )
        elif drive.moves not in solid | held:
            known = ", ".join(sorted(solid | held)) or "none"
            faults.append(f"{what}: there is no obstacle or constraint {drive.moves!r}; the scene has {known}")
        elif drive.kind == "surface" and drive.moves in held:
            faults.append(f"{what}: constraint {drive.moves!r} has no surface; use kind='translation' or an obstacle")
    faults += [
        f"Obstacle {o.name!r}: it moves as prescribed, and a body of the same name moves freely; a tool is one of "
        f"both: leave out the other, or rename it"
        for o in obstacles
        if o.name in bodies and moves(o, actuators)
    ]
    for name in sorted(solid | held):
        count = len(drives_of(name, actuators))
        if count > MOST_DRIVES:
            faults.append(f"{name!r} has {count} drives; the largest number is {MOST_DRIVES}")
    return faults
