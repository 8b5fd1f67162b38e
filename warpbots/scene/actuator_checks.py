"""Checks of the fields of actuators."""

from typing import Any

from warpbots.scene.record import SceneError, direction

__all__ = ["SIGN", "STIFFNESS", "normalize_direction", "require_positive", "require_strain"]

SIGN = "the sign of the control gives the direction"
STIFFNESS = "without stiffness it does nothing: leave it out"
"""Reasons in messages why numbers have to be positive."""


def normalize_direction(actuator: Any) -> None:
    """Replace the direction of an actuator by a unit vector.

    Raises:
        SceneError: The direction is zero or not finite.
    """
    n = direction(actuator.direction, f"{type(actuator).__name__} {actuator.name!r}: direction")
    object.__setattr__(actuator, "direction", n)


def require_strain(actuator: Any, field: str, what: str = "length", below: str = SIGN) -> None:
    """Check a strain.

    Args:
        actuator: The actuator.
        field: Name of the field with the strain.
        what: The quantity at rest that the strain changes.
        below: Reason, in the message, why the strain must be positive.

    Raises:
        SceneError: The strain is not in (0, 1).
    """
    value = getattr(actuator, field)
    if not 0.0 < value < 1.0:
        why = below if value <= 0.0 else f"a rest {what} must stay positive"
        raise SceneError(
            f"{type(actuator).__name__} {actuator.name!r}: {field} must be in (0, 1), got {value:g}; {why}"
        )


def require_positive(actuator: Any, field: str, unit: str, why: str) -> None:
    """Check a number.

    Args:
        actuator: The actuator.
        field: Name of the field with the number.
        unit: Unit of the number, as text.
        why: Reason, in the message, why the number must be positive.

    Raises:
        SceneError: The number is not positive.
    """
    value = getattr(actuator, field)
    if value <= 0.0:
        raise SceneError(
            f"{type(actuator).__name__} {actuator.name!r}: {field} must be positive [{unit}], got {value:g}; {why}"
        )
