"""Trilinear hexahedra: eight nodes and eight points of quadrature, for boxes and cells of topology optimisation."""

from warpbots.solvers.projective.elements.reference_elements import HEXAHEDRON
from warpbots.solvers.projective.elements.solid_dampers import damper_kind
from warpbots.solvers.projective.elements.solids import solid_kind

__all__ = ["DAMPED_HEXAHEDRA", "HEXAHEDRA"]

HEXAHEDRA = solid_kind(HEXAHEDRON)
"""Trilinear hexahedra of boxes."""

DAMPED_HEXAHEDRA = damper_kind(HEXAHEDRON)
"""Their dampers."""
