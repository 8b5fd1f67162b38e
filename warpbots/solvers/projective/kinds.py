"""The kinds of elements that projective dynamics knows, in the order of their corners."""

from warpbots.solvers.projective.attachments import ATTACHMENTS
from warpbots.solvers.projective.bars import BARS
from warpbots.solvers.projective.cables import CABLES
from warpbots.solvers.projective.cells import CELLS
from warpbots.solvers.projective.fibres import FIBRES
from warpbots.solvers.projective.fluid import FACES
from warpbots.solvers.projective.hinges import HINGES
from warpbots.solvers.projective.tets import TETS
from warpbots.solvers.projective.triangles import TRIANGLES

__all__ = ["KINDS"]

KINDS = (TETS, TRIANGLES, HINGES, BARS, FIBRES, CELLS, CABLES, ATTACHMENTS, FACES)
