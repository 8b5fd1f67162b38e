"""Bars of a truss: springs between two nodes, with the stretch 1 at rest and the volume V of the bar.

With d = x_1 - x_0, the length L_0 at rest and the cross-section A, F = d / L_0 and V = A L_0, so that

    E = E A / L_0 / 2 (|d| - L_0)^2.
"""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.elements.element import element, row
from warpbots.solvers.projective.elements.generator.family import Family
from warpbots.solvers.projective.elements.generator.kinds import all_of, blocks_of, damper_kind, element_kind
from warpbots.solvers.projective.elements.generator.rest import rest_of
from warpbots.solvers.projective.elements.reference_elements import LINE
from warpbots.solvers.projective.elements.springs import SPRING

__all__ = ["BARS", "DAMPED_BARS", "FAMILY"]


def _numbers_of(BarArrays: type) -> wp.Function:
    @wp.func
    def numbers(bars: BarArrays, control: wp.array2d[real], w: int, e: int):
        """Young's modulus E and the stretch at rest, 1."""
        return bars.youngs_modulus[element(bars.place, w, e)], real(1.0)

    return numbers


def _section(BarArrays: type) -> wp.Function:
    @wp.func
    def size(bars: BarArrays, w: int, e: int):
        """A [m^2]."""
        return bars.section[row(bars.place, w, e)]

    return size


_PARAMETERS = {
    "youngs_modulus": real, "density": real, "section": real, "rest_position": vector(3),
}  # fmt: skip
FAMILY = Family("bars", 2, 1, _PARAMETERS, _numbers_of, columns=1)
"""Bars with any energy; its numbers are E and 1."""

_blocks = blocks_of(FAMILY, LINE, SPRING.modulus, "youngs_modulus", size="section")

BARS = element_kind(FAMILY, SPRING.modulus, rest_of(FAMILY, LINE, _section), all_of(SPRING), blocks=_blocks)
"""Bars of trusses."""

DAMPED_BARS = damper_kind(FAMILY, _blocks, all_of(SPRING))
"""Dampers of bars."""
