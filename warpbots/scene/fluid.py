"""The fluid around soft bodies."""

import math
from collections.abc import Sequence

import numpy as np

from warpbots.scene.field_types import Pair
from warpbots.scene.record import SceneError, point, record

__all__ = ["Fluid", "Table"]

Table = Sequence[Pair[float]]
"""Pairs of an angle of attack [rad] and a coefficient [1], from -pi/2 to pi/2."""

_DEGREE = math.pi / 180.0
_PLATE = ((-90.0 * _DEGREE, 0.0), (0.0, 0.0), (90.0 * _DEGREE, 1.17))
_LIFT = ((-90.0 * _DEGREE, -0.5), (-10.0 * _DEGREE, -1.26), (-5.0 * _DEGREE, 0.0), (15.0 * _DEGREE, 1.8),
         (90.0 * _DEGREE, 0.5))  # fmt: skip


@record
class Fluid:
    """A fluid around all soft bodies: drag and thrust on every face of their surfaces (Min et al. 2019, "SoftCon").

    The fluid exerts on a face with the area A, the outward normal n, the velocity v relative to the fluid and the angle
    of attack phi (sin phi = n . v / |v|) the force

        f = -1/2 density A |v|^2 (drag(phi) v / |v| + thrust(phi) n).

    Coefficients are tables over phi, interpolated linearly in sin phi, so that they are smooth if a face meets the
    fluid head-on. Both sides of cloth are faces; bars of trusses have no faces. The bodies do not move the fluid. The
    fluid exerts no buoyancy; reduce gravity to represent buoyancy.

    Attributes:
        density: Density of the fluid [kg/m^3], positive.
        velocity: Velocity of the fluid [m/s], shape (dim,); None for a fluid at rest.
        drag: Drag coefficients C_d(phi), a table or one number for all angles. By default leading faces have the
            coefficient of a flat plate, 1.17 sin phi (Hoerner 1965), and trailing faces have the coefficient 0.
        thrust: Thrust coefficients C_t(phi), a table or one number for all angles. The default is the table in the
            published code of the soft multi-body paper: -0.5, -1.26, 0, 1.8 and 0.5 at -90, -10, -5, 15 and 90 degrees.

    Raises:
        SceneError: A density that is not positive, or an invalid table.
    """

    density: float
    velocity: Sequence[float] | None = None
    drag: float | Table = _PLATE
    thrust: float | Table = _LIFT

    def __post_init__(self):
        if self.density <= 0.0:
            raise SceneError(
                f"Fluid: density must be positive [kg/m^3], got {self.density:g}; for no fluid use fluid=None"
            )
        if self.velocity is not None:
            object.__setattr__(self, "velocity", point(self.velocity, "Fluid: velocity"))
        for field in ("drag", "thrust"):
            object.__setattr__(self, field, _table(getattr(self, field), field))


def _table(value: float | Table, field: str) -> Table:
    """Convert a value given by the user to a table; a number becomes a constant table.

    Raises:
        SceneError: The angles do not increase from -pi/2 to pi/2.
    """
    if isinstance(value, float):
        value = ((-math.pi / 2.0, value), (math.pi / 2.0, value))
    table = np.array(value).reshape(-1, 2)
    angle = table[:, 0]
    if (
        len(angle) < 2
        or (np.diff(np.sin(angle)) <= 0.0).any()
        or np.abs(angle[[0, -1]] / math.pi).tolist() != [0.5] * 2
    ):
        degrees = len(angle) and np.abs(angle).max() > 2.0
        raise SceneError(
            f"Fluid: angles of attack of {field} must increase from -pi/2 to pi/2 [rad], got "
            f"{angle.round(6).tolist()}; "
            + ("turn degrees into radians" if degrees else "begin with -math.pi / 2 and end with math.pi / 2")
        )
    return tuple((float(a), float(c)) for a, c in table)
