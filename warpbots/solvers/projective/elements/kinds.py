"""The kinds of elements of projective dynamics, in the order of their corners."""

from warpbots.solvers.projective.elements.attachments import ATTACHMENTS
from warpbots.solvers.projective.elements.bars import BARS
from warpbots.solvers.projective.elements.cables import CABLES
from warpbots.solvers.projective.elements.cavities import CAVITIES
from warpbots.solvers.projective.elements.dampers import DAMPED_TETS
from warpbots.solvers.projective.elements.element import Kind
from warpbots.solvers.projective.elements.fibres import fibre_kind
from warpbots.solvers.projective.elements.fluid_drag import FACES
from warpbots.solvers.projective.elements.hexahedra import DAMPED_HEXAHEDRA, HEXAHEDRA
from warpbots.solvers.projective.elements.hinges import HINGES
from warpbots.solvers.projective.elements.motors import MOTORS
from warpbots.solvers.projective.elements.pneumatic_cells import cell_kind
from warpbots.solvers.projective.elements.quadratic_tetrahedra import DAMPED_QUADRATIC_TETS, QUADRATIC_TETS
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.tetrahedra import TETS
from warpbots.solvers.projective.elements.thin_dampers import DAMPED_BARS, DAMPED_TRIANGLES
from warpbots.solvers.projective.elements.triangles import TRIANGLES

__all__ = ["kinds_of"]

_SOLIDS = {kind.name: kind for kind in (TETS, QUADRATIC_TETS, HEXAHEDRA)}
_DAMPED = {kind.name: kind for kind in (DAMPED_TETS, DAMPED_QUADRATIC_TETS, DAMPED_HEXAHEDRA)}


def kinds_of(solid: ReferenceElement) -> tuple[Kind, ...]:
    """Elements of all kinds of scenes whose solids are elements of one kind."""
    return (
        _SOLIDS[solid.name], TRIANGLES, HINGES, BARS, fibre_kind(solid), cell_kind(solid), CABLES, ATTACHMENTS, FACES,
        CAVITIES, _DAMPED[f"damped_{solid.name}"], DAMPED_TRIANGLES, DAMPED_BARS, MOTORS,
    )  # fmt: skip
