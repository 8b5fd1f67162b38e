"""Notes on friction coefficients of soft bodies that the coefficients of obstacles overrule."""

from collections.abc import Iterable

from warpbots.scene import Obstacle
from warpbots.usd.soft.soft_bodies import SoftPrim
from warpbots.usd.stage.inventory import Note

__all__ = ["note_friction"]

_LISTED = 3
"""Number of obstacles that a note lists by name."""


def note_friction(soft: Iterable[SoftPrim | None], obstacles: list[Obstacle], note: Note) -> None:
    """Note the friction coefficients of soft bodies that differ from the coefficients of obstacles.

    Contact with an obstacle uses the coefficient of the obstacle.
    """
    for body, material in filter(None, soft):
        others = [o for o in obstacles if o.condition == "friction" and o.friction != body.friction]
        if material is not None and others:
            note(
                material,
                f"physics:dynamicFriction = {body.friction:g} of soft bodies counts between them; on obstacles their "
                f"own counts, not the mean: {', '.join(f'{o.name} {o.friction:g}' for o in others[:_LISTED])}"
                + (f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""),
            )
