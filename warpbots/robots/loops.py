"""Equality constraints (loops, and joints that mimic others), which a robot of independent joints cannot represent."""

from warpbots.robots.records import EqualityRecord, RobotRecord
from warpbots.scene import SceneError

__all__ = ["left_out_equalities"]


def left_out_equalities(robot: RobotRecord, ignore: bool) -> list[str]:
    """A line for each equality constraint that is left out: loops, joints that mimic others, ties to mocap bodies.

    Raises:
        SceneError: There are loops, and `ignore` is not set; without the loops the robot moves differently.
    """
    said = {equality.number: _line(robot, equality) for equality in robot.equalities}
    closed = [said[e.number] for e in robot.equalities if e.active and not e.guided]
    following = {robot.joints[e.joint].name for e in robot.equalities if e.joint is not None}
    mimics = [f"mimic {name!r}" for name in robot.mimics if name not in following]
    if (closed or mimics) and not ignore:
        raise SceneError(
            f"{robot.path}: a robot must be a tree of independent joints, and without these constraints it would "
            f"move differently: {', '.join(closed + mimics)}; remove them from the file, or pass ignore_loops=True"
        )
    return [f"equality: {line}" for line in [*said.values(), *mimics]]


def _line(robot: RobotRecord, equality: EqualityRecord) -> str:
    off = "" if equality.active else ", which is inactive"
    if equality.name:
        return f"{equality.kind} {equality.name!r}{off}"
    if equality.joint is not None:
        return f"joint {robot.joints[equality.joint].name!r} that mimics another{off}"
    if equality.bodies:
        return f"{equality.kind} of {' and '.join(repr(robot.bodies[body].name) for body in equality.bodies)}{off}"
    return f"{equality.kind} {f'equality {equality.number}'!r}{off}"
