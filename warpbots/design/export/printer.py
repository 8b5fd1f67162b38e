"""Limits of a printer."""

from collections.abc import Sequence

from warpbots.scene import SceneError
from warpbots.scene.record import record
from warpbots.scene.shapes.field_checks import positive

__all__ = ["Printer"]


@record
class Printer:
    """Limits of a filament printer; the defaults suit a common printer with a nozzle of 0.4 mm.

    Attributes:
        bed: Largest width, depth and height of a part [m], shape (3,).
        wall: Thickness of the thinnest wall that can be printed [m]; by default the width of two lines of the nozzle.
        overhang_angle: Largest angle from the vertical of a surface that prints without supports [degrees].
        overhang_share: Fraction of the surface of a part that may overhang before the report mentions it [1].

    Raises:
        SceneError: A value is out of range.
    """

    bed: Sequence[float] = (0.22, 0.22, 0.25)
    wall: float = 8e-4
    overhang_angle: float = 45.0
    overhang_share: float = 0.05

    def __post_init__(self):
        if len(self.bed) != 3 or min(self.bed) <= 0.0:
            raise SceneError(f"Printer: bed must be three positive numbers [m], got {self.bed}")
        positive(self.wall, "Printer: wall")
        if not 0.0 < self.overhang_angle < 90.0:
            raise SceneError(f"Printer: overhang_angle must be in (0, 90) degrees, got {self.overhang_angle:g}")
        if not 0.0 <= self.overhang_share <= 1.0:
            raise SceneError(f"Printer: overhang_share must be in [0, 1], got {self.overhang_share:g}")
