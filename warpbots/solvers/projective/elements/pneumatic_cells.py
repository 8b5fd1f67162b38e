"""Pneumatic cells: solids with an energy that is lowest at a target volume (`warpbots.actuation_laws.pneumatic_law`).

Each point of quadrature is a separate cell, which draws the matter around it towards its target volume; a linear
tetrahedron is thus one cell.
"""

import functools

import warp as wp

from warpbots.actuation_laws import cell_functions
from warpbots.numerics import matrix, real, vector
from warpbots.solvers.projective.elements.element import Kind, row
from warpbots.solvers.projective.elements.generator.energy import Energy, one
from warpbots.solvers.projective.elements.generator.family import Family
from warpbots.solvers.projective.elements.generator.kinds import all_of, blocks_of, element_kind
from warpbots.solvers.projective.elements.generator.rest import rest_of
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement

__all__ = ["cell_kind"]

_vec, _mat = vector(3), matrix(3)
_stress, _frame, _change = cell_functions()


@wp.func
def density(F: _mat, k: real, a: real):
    """k/2 |F - R|^2."""
    D = _stress(F, real(1.0), a)
    return real(0.5) * k * wp.ddot(D, D)


@wp.struct
class CellPoint:
    """Singular value decompositions F = U s V^T and R = U r V^T.

    U: U of F and R.
    s: Singular values of F.
    r: Singular values of R.
    V: V of F and R.
    k: Stiffness k [Pa].
    a: Target volume over rest volume.
    """

    U: _mat
    s: _vec
    r: _vec
    V: _mat
    k: real
    a: real


@wp.func
def cell_point(F: _mat, k: real, a: real):
    """The decompositions of F and R."""
    p = CellPoint()
    U, s, r, V = _frame(F, a)
    p.U = U
    p.s = s
    p.r = r
    p.V = V
    p.k = k
    p.a = a
    return p


@wp.func
def cell_differential(p: CellPoint, dF: _mat):
    """k times the change of F - R."""
    M = wp.transpose(p.U) @ dF @ p.V
    return p.k * p.U @ _change(p.s, p.r, p.a, M, real(0.0)) @ wp.transpose(p.V)


CELL = Energy("cell", density, _stress, one, (CellPoint, cell_point, cell_differential))
_CONSTANT = {"cell_expansion": real, "cell_channel": int}
_PARAMETERS = {"cell_stiffness": real, "rest_position": _vec} | _CONSTANT


def _numbers_of(CellArrays: type) -> wp.Function:
    @wp.func
    def numbers(cells: CellArrays, control: wp.array2d[real], w: int, e: int):
        """Stiffness k, and the target volume of a cell divided by its rest volume, 1 + u max_expansion."""
        a = real(1.0) + control[w, cells.cell_channel[e]] * cells.cell_expansion[e]
        return cells.cell_stiffness[row(cells.place, w, e)], a

    return numbers


@functools.cache
def cell_kind(reference: ReferenceElement) -> Kind:
    """The kind of pneumatic cells in solids of a reference element."""
    points, nodes = reference.gradients.shape[:2]
    family = Family("pneumatic", nodes, points, _PARAMETERS, _numbers_of)
    blocks = blocks_of(family, reference, one, "cell_stiffness")
    return element_kind(family, one, rest_of(family, reference), all_of(CELL), constant=_CONSTANT, blocks=blocks)
