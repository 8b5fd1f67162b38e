"""What does not move: floors, walls, terrain and other solids that bodies touch."""

import numpy as np

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes import HalfSpace, Shape

__all__ = ["CONDITIONS", "Obstacle", "floor", "walls"]

CONDITIONS = ("sticky", "slip", "separate", "friction")
"""Contact conditions of ChainQueen §3.2: no velocity, no normal velocity, no inward velocity, Coulomb friction."""


@record
class Obstacle:
    """A static solid and what happens where matter meets it.

    Attributes:
        shape: The solid.
        condition: One of `CONDITIONS`.
        friction: Coulomb coefficient mu >= 0 of what slides, used by the condition ``"friction"`` alone.
        name: Name of the obstacle, unique in the scene.
        static_friction: Coefficient of what sticks, at least `friction`; None for the same.

    Raises:
        SceneError: An unknown condition, a negative coefficient, or one of rest below that of sliding.
    """

    shape: Shape
    condition: str = "friction"
    friction: float = 0.5
    name: str = "floor"
    static_friction: float | None = None

    def __post_init__(self):
        if self.condition not in CONDITIONS:
            raise SceneError(
                f"Obstacle {self.name!r}: condition must be one of {', '.join(CONDITIONS)}, got {self.condition!r}"
            )
        mu, rest = self.friction, self.static_friction
        if mu < 0.0:
            raise SceneError(
                f"Obstacle {self.name!r}: friction must be a coefficient >= 0, got {mu:g}; for no friction use 0 or "
                f"condition='separate'"
            )
        if rest is not None and rest < mu:
            raise SceneError(
                f"Obstacle {self.name!r}: static_friction must be at least friction = {mu:g}, got {rest:g}; what rests "
                f"does not slide more easily than what slides"
            )


def floor(height: float = 0.0, dim: int = 3, condition: str = "friction", friction: float = 0.5) -> Obstacle:
    """A horizontal floor with its surface at `height` [m]: y up for `dim` 2, z up for `dim` 3."""
    up = np.eye(dim)[-1]
    return Obstacle(HalfSpace(point=tuple(height * up), normal=tuple(up)), condition, friction, name="floor")


def walls(
    lower: tuple[float, ...], upper: tuple[float, ...], condition: str = "slip", friction: float = 0.0
) -> tuple[Obstacle, ...]:
    """The inside of a box: one half-space for each of its 2 dim faces.

    Args:
        lower: Lower corner of the free space [m], shape (dim,).
        upper: Upper corner of the free space [m], shape (dim,).
        condition: One of `CONDITIONS`.
        friction: Coulomb coefficient for the condition ``"friction"``.
    """
    normals = np.eye(len(lower))
    return tuple(
        Obstacle(HalfSpace(corner, tuple(sign * n)), condition, friction, name=f"wall_{'xyz'[a]}_{side}")
        for a, n in enumerate(normals)
        for corner, sign, side in ((lower, 1.0, "low"), (upper, -1.0, "high"))
    )
