"""Triangles of cloth: a membrane in plane stress.

F has two columns, f_1 and f_2. With J = |f_1 x f_2| and the normal n = f_1 x f_2 / J,

    C   = dJ/dF = (f_2 x n, n x f_1)
    s   = sqrt(F : F + 2 J)                       sum of the singular values of F
    R   = ds/dF = (F + C) / s                     nearest isometry of F, F (F^T F)^(-1/2)
    Psi = mu |F - R|^2 + lambda/2 (s - 2)^2
    P   = 2 mu (F - R) + lambda (s - 2) R

with mu = E / (2 (1 + nu)) and lambda = E nu / (1 - nu^2) of plane stress. A triangle has no inverted state: a flipped
triangle is at rest. A triangle that is crushed to a line has no normal; n = 0 is the mean over all possible normals. A
triangle that is crushed to a point has no stress.

The largest second derivative of Psi at rest is 2 mu + 2 lambda, and the weight of projective dynamics, 2 mu + lambda =
E / (1 - nu^2), is never below half of that.
"""

import warp as wp

from warpbots.materials import lame_mu
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import corner, element, normal_bounds_by, row
from warpbots.solvers.projective.elements.free_normals import NormalArrays, normal_of
from warpbots.solvers.projective.elements.generator.energy import Energy
from warpbots.solvers.projective.elements.generator.family import Family
from warpbots.solvers.projective.elements.generator.kinds import all_of, blocks_of, damper_kind, element_kind
from warpbots.solvers.projective.elements.generator.rest import rest_of
from warpbots.solvers.projective.elements.reference_elements import TRIANGLE
from warpbots.solvers.projective.elements.solids import MATTER, matter_numbers

__all__ = ["DAMPED_TRIANGLES", "TRIANGLES", "normal_bound_kernel"]

_vec, _mat32 = vector(3), wp.types.matrix(shape=(3, 2), dtype=real)


@wp.func
def modulus(nu: real):
    """1 / (1 - nu^2): the stiffness in tension of a sheet of constant width, for E = 1."""
    return real(1.0) / (real(1.0) - nu * nu)


@wp.func
def energy_density(F: _mat32, E: real, nu: real):
    """Psi = mu |F - R|^2 + lambda/2 (s - 2)^2, with |F - R|^2 = F : F - 2 s + 2, at small strains |F - R|^2 itself."""
    f1 = _vec(F[0, 0], F[1, 0], F[2, 0])
    f2 = _vec(F[0, 1], F[1, 1], F[2, 1])
    normal = wp.cross(f1, f2)
    square = wp.ddot(F, F)
    s = wp.sqrt(square + real(2.0) * wp.length(normal))
    change = s - real(2.0)
    distance = square - real(2.0) * s + real(2.0)
    if distance < real(0.01):
        n = wp.normalize(normal)
        D = F - (F + wp.matrix_from_cols(wp.cross(f2, n), wp.cross(n, f1))) / s
        distance = wp.ddot(D, D)
    return lame_mu(E, nu) * distance + real(0.5) * nu * E * modulus(nu) * change * change


@wp.func
def piola(F: _mat32, E: real, nu: real):
    """P = 2 mu (F - R) + lambda (s - 2) R."""
    mu = lame_mu(E, nu)
    lam = nu * E * modulus(nu)
    f1 = _vec(F[0, 0], F[1, 0], F[2, 0])
    f2 = _vec(F[0, 1], F[1, 1], F[2, 1])
    normal = wp.cross(f1, f2)
    square = wp.ddot(F, F) + real(2.0) * wp.length(normal)
    if square == real(0.0):
        return _mat32()
    n = wp.normalize(normal)
    s = wp.sqrt(square)
    R = (F + wp.matrix_from_cols(wp.cross(f2, n), wp.cross(n, f1))) / s
    P = real(2.0) * mu * (F - R) + lam * (s - real(2.0)) * R
    return P - wp.outer(n, n @ P)  # removes rounding of F - R, which would push a sheet out of its plane


MEMBRANE = Energy("membrane", energy_density, piola, modulus)


def _thickness(TriangleArrays: type) -> wp.Function:
    @wp.func
    def size(triangles: TriangleArrays, w: int, e: int):
        """t [m]."""
        return triangles.thickness[row(triangles.place, w, e)]

    return size


_FAMILY = Family("triangles", 3, 1, MATTER | {"thickness": real}, matter_numbers, columns=2)
_TriangleArrays, deformed = _FAMILY.arrays, _FAMILY.deformed


@wp.func
def largest_tension(F: _mat32, E: real, nu: real):
    """The largest principal stress per stretch, T / u with T = 2 mu (u - 1) + lambda (s - 2), and 0 in compression.

    It is the stiffness against a displacement w out of the plane: the energy grows by 1/2 V T/u |grad w|^2.
    """
    f1 = _vec(F[0, 0], F[1, 0], F[2, 0])
    f2 = _vec(F[0, 1], F[1, 1], F[2, 1])
    J = wp.length(wp.cross(f1, f2))
    square = wp.ddot(F, F) + real(2.0) * J
    s = wp.sqrt(square)
    apart = wp.sqrt(wp.max(square - real(4.0) * J, real(0.0)))
    slope = nu * E * modulus(nu) * (s - real(2.0)) - real(2.0) * lame_mu(E, nu)
    u = real(0.5) * (s + wp.where(slope > real(0.0), -apart, apart))
    return wp.max(real(2.0) * lame_mu(E, nu) + slope / u, real(0.0))


@wp.kernel(enable_backward=False)
def normal_bound_kernel(
    # model
    triangles: _TriangleArrays,
    normals: NormalArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    bound_out: wp.array[real],
):
    """V |G_c| (T sum |G_d| + (2 mu + 2 lambda) |m_c| sum |m_d| |G_d|), with the in-plane parts m of normals."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    node = triangles.node[e]
    E = triangles.youngs_modulus[k]
    nu = triangles.poissons_ratio[k]
    G = triangles.gradient[r]
    F = deformed(triangles.place, node, G, x, u, w)
    out = wp.normalize(wp.cross(_vec(F[0, 0], F[1, 0], F[2, 0]), _vec(F[0, 1], F[1, 1], F[2, 1])))
    length = _vec()
    inclined = _vec()
    for c in range(3):
        if normals.number[node[c]] >= 0:
            n = normal_of(normals, w, node[c])
            length[c] = wp.length(G[c])
            inclined[c] = length[c] * wp.length(n - wp.dot(n, out) * out)
    a = largest_tension(F, E, nu) * (length[0] + length[1] + length[2])
    b = E / (real(1.0) - nu) * (inclined[0] + inclined[1] + inclined[2])
    first = corner(triangles.place, w, 3 * e)
    for c in range(3):
        bound_out[first + c] = triangles.volume[r] * (a * length[c] + b * inclined[c])


_blocks = blocks_of(_FAMILY, TRIANGLE, modulus, "youngs_modulus", "poissons_ratio", "thickness")

TRIANGLES = element_kind(
    _FAMILY, modulus, rest_of(_FAMILY, TRIANGLE, _thickness), all_of(MEMBRANE), blocks=_blocks,
    normal_bounds=normal_bounds_by(normal_bound_kernel),
)  # fmt: skip
"""Triangles of sheets."""

DAMPED_TRIANGLES = damper_kind(_FAMILY, _blocks, all_of(MEMBRANE))
"""Dampers of sheets: they damp stretching, but not folding."""
