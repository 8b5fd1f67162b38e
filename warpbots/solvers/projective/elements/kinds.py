"""The kinds of elements of projective dynamics, in the order of their corners."""

from warpbots.solvers.projective.elements.attachments import ATTACHMENTS
from warpbots.solvers.projective.elements.bars import BARS, DAMPED_BARS
from warpbots.solvers.projective.elements.cables import CABLES
from warpbots.solvers.projective.elements.cavities import CAVITIES
from warpbots.solvers.projective.elements.element import Kind
from warpbots.solvers.projective.elements.fibres import fibre_kind
from warpbots.solvers.projective.elements.fluid_drag import FACES
from warpbots.solvers.projective.elements.hinges import HINGES
from warpbots.solvers.projective.elements.motors import MOTORS
from warpbots.solvers.projective.elements.pneumatic_cells import cell_kind
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.solids import solid_kinds
from warpbots.solvers.projective.elements.triangles import DAMPED_TRIANGLES, TRIANGLES

__all__ = ["kinds_of"]


def kinds_of(solid: ReferenceElement) -> tuple[Kind, ...]:
    """All kinds of elements of a scene whose solids are of the kind `solid`."""
    solids, dampers = solid_kinds(solid)
    return (
        solids, TRIANGLES, HINGES, BARS, fibre_kind(solid), cell_kind(solid), CABLES, ATTACHMENTS, FACES,
        CAVITIES, dampers, DAMPED_TRIANGLES, DAMPED_BARS, MOTORS,
    )  # fmt: skip
