"""Fibres of muscles in solids: springs along a direction m in the undeformed body (`warpbots.actuation_laws.fibre`).

Their gradients are G . m for the gradients G of the solid, so that F = sum_a (G_a . m) x_a is the y of that law.
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.projective.elements.element import Kind, row
from warpbots.solvers.projective.elements.generator.family import Family, rows
from warpbots.solvers.projective.elements.generator.kinds import all_of, element_kind
from warpbots.solvers.projective.elements.generator.rest import rest_of
from warpbots.solvers.projective.elements.reference_elements import ReferenceElement
from warpbots.solvers.projective.elements.springs import SPRING

__all__ = ["fibre_kind"]

_CONSTANT = {"fibre_direction": vector(3), "fibre_contraction": real, "fibre_channel": int}
_PARAMETERS = {"fibre_stiffness": real, "rest_position": vector(3)} | _CONSTANT


def _numbers_of(FibreArrays: type) -> wp.Function:
    @wp.func
    def numbers(fibres: FibreArrays, control: wp.array2d[real], w: int, e: int):
        """Stiffness k, and the stretch at rest, 1 - u max_contraction."""
        L = real(1.0) - control[w, fibres.fibre_channel[e]] * fibres.fibre_contraction[e]
        return fibres.fibre_stiffness[row(fibres.place, w, e)], L

    return numbers


@functools.cache
def fibre_kind(reference: ReferenceElement) -> Kind:
    """The kind of fibres in solids of a reference element."""
    points, nodes = reference.gradients.shape[:2]
    family = Family("fibres", nodes, points, _PARAMETERS, _numbers_of, columns=1)
    solid = rows(nodes, 3)

    def gradient_of(FibreArrays: type) -> wp.Function:
        @wp.func
        def gradient(fibres: FibreArrays, e: int, G: solid):
            """G . m."""
            return G @ wp.matrix_from_cols(fibres.fibre_direction[e])

        return gradient

    def blocks(mesh: object) -> np.ndarray:
        """k sum V (G . m) (G . m)^T."""
        m = mesh.fibre_direction[:, None, :, None]
        g = (reference.gradients @ np.linalg.solve(reference.jacobians(mesh.position, mesh.fibres), m))[..., 0]
        V = reference.volumes(mesh.position, mesh.fibres)
        return np.einsum("e,eq,eqa,eqb->eab", mesh.fibre_stiffness, V, g, g)

    rest = rest_of(family, reference, gradient_of=gradient_of)
    return element_kind(family, SPRING.modulus, rest, all_of(SPRING), blocks=blocks, constant=_CONSTANT)
