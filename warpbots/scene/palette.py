"""The colours of bodies that have no colour of their own."""

from collections.abc import Sequence

from warpbots.scene.body import SoftBody
from warpbots.scene.joint import Joint
from warpbots.scene.rigid_body import RigidBody

__all__ = ["RIGID", "SOFT", "colors_of"]

_Color = tuple[float, float, float]

SOFT: tuple[_Color, ...] = (
    (0.35, 0.60, 0.85), (0.85, 0.61, 0.36), (0.65, 0.90, 0.61), (0.64, 0.34, 0.05), (0.94, 0.83, 0.39),
    (0.25, 0.80, 0.88),
)  # fmt: skip
"""Colours of soft bodies: blue, orange, green, brown, yellow and cyan."""
RIGID: tuple[_Color, ...] = ((0.75, 0.75, 0.72), (0.38, 0.40, 0.58), (0.62, 0.50, 0.57), (0.40, 0.29, 0.35))
"""Colours of mechanisms of rigid bodies: grey, slate, mauve and dark plum."""

_ALIKE = 0.05
"""Difference of red, green and blue up to which two colours count as the same."""


def colors_of(bodies: Sequence[SoftBody | RigidBody], joints: Sequence[Joint]) -> tuple[_Color, ...]:
    """The colour of each body: its own colour, or one of the palette.

    In the order of the scene, each soft body without a colour takes the next colour of `SOFT`. Rigid bodies that joints
    connect are one mechanism, such as a hand; each mechanism that has a body without a colour takes the next colour of
    `RIGID`. Colours that bodies have of their own are passed over, and when all colours are used, they repeat.

    Args:
        bodies: The bodies.
        joints: The joints between rigid bodies.

    Returns:
        Red, green and blue in [0, 1] of each body.
    """
    taken = [body.color for body in bodies if body.color is not None]
    root = _mechanisms(bodies, joints)
    groups = [body.name if isinstance(body, SoftBody) else root[body.name] for body in bodies]
    next_color, shared = {SOFT: 0, RIGID: 0}, {}
    for body, group in zip(bodies, groups, strict=True):
        palette = SOFT if isinstance(body, SoftBody) else RIGID
        if body.color is None and (palette, group) not in shared:
            free = [c for c in palette if not any(_alike(c, other) for other in taken)] or palette
            shared[palette, group] = free[next_color[palette] % len(free)]
            next_color[palette] += 1
    return tuple(
        body.color if body.color is not None else shared[SOFT if isinstance(body, SoftBody) else RIGID, group]
        for body, group in zip(bodies, groups, strict=True)
    )


def _mechanisms(bodies: Sequence[SoftBody | RigidBody], joints: Sequence[Joint]) -> dict[str, str]:
    """For each rigid body, the name of one body of its mechanism, which is the same for all bodies of the mechanism."""
    above = {body.name: body.name for body in bodies if isinstance(body, RigidBody)}

    def root(name: str) -> str:
        while above[name] != name:
            name = above[name]
        return name

    for joint in joints:
        if joint.parent is not None:
            above[root(joint.child)] = root(joint.parent)
    return {name: root(name) for name in above}


def _alike(a: _Color, b: _Color) -> bool:
    return all(abs(x - y) <= _ALIKE for x, y in zip(a, b, strict=True))
