"""Triangles of cloth with a constant deformation gradient: a membrane in plane stress.

With D = (x_1 - x_0, x_2 - x_0), and D_0 the same at rest in a frame of the plane of the triangle, F = D D_0^-1 has two
columns, f_1 and f_2. With J = |f_1 x f_2| and the normal n = f_1 x f_2 / J,

    C   = dJ/dF = (f_2 x n, n x f_1)
    s   = sqrt(F : F + 2 J)                       sum of the singular values of F
    R   = ds/dF = (F + C) / s                     nearest isometry of F, F (F^T F)^(-1/2)
    Psi = mu |F - R|^2 + lambda/2 (s - 2)^2
    P   = 2 mu (F - R) + lambda (s - 2) R
    (f_1, f_2) = -V P D_0^-T,   f_0 = -f_1 - f_2

with the volume V = t A at rest of the thickness t and the area A, mu = E / (2 (1 + nu)) and lambda = E nu / (1 - nu^2)
of plane stress. A triangle has no inverted side: one that is flipped is at rest. A triangle that is crushed to a
line has no normal, n = 0 stands for the mean over all; one that is crushed to a point has no stress.

The largest second derivative of Psi at rest is 2 mu + 2 lambda, and the weight of projective dynamics, 2 mu + lambda =
E / (1 - nu^2), is never below half of that.
"""

import numpy as np
import warp as wp

from warpbots.materials import lame_mu
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.elements import element
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    normal_bounds_by,
    raise_to,
    rest_by,
    row,
    simplices,
    span,
    stiffness_by,
)
from warpbots.solvers.projective.elements.free_normals import NormalArrays, normal_of

__all__ = [
    "TRIANGLES",
    "TriangleArrays",
    "energy_kernel",
    "force_kernel",
    "normal_bound_kernel",
    "rest_kernel",
    "scaling_kernel",
    "stiffness_kernel",
]

_vec, _mat = vector(3), matrix(2)
_mat32 = wp.types.matrix(shape=(3, 2), dtype=real)


@wp.struct
class TriangleArrays:
    """Triangles; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the corners, shape (count,).
    youngs_modulus: Young's modulus E [Pa], shape (worlds * elements,).
    poissons_ratio: Poisson's ratio nu [1], shape (worlds * elements,).
    density: Density rho [kg/m^3], shape (worlds * elements,).
    thickness: Thickness t [m], shape (worlds * count,).
    rest_position: Positions at rest [m], shape (worlds * nodes,).
    inverse: D_0^-1 [1/m], shape (worlds * count,).
    volume: V [m^3], shape (worlds * count,).
    nominal: Stiffness w V |D_0^-1|^2 of a triangle in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[wp.vec3i]
    youngs_modulus: wp.array[real]
    poissons_ratio: wp.array[real]
    density: wp.array[real]
    thickness: wp.array[real]
    rest_position: wp.array[_vec]
    inverse: wp.array[_mat]
    volume: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(
    # model
    triangles: TriangleArrays,
    # out
    triangles_out: TriangleArrays,
    mass_out: wp.array[real],
):
    """D_0^-1 in the frame whose first axis is the first edge, V, and the mass rho V / 3 of each corner."""
    w, e = wp.tid()
    n = w * triangles.place.nodes
    r = row(triangles.place, w, e)
    k = triangles.node[e]
    X = triangles.rest_position[n + k[0]]
    a = triangles.rest_position[n + k[1]] - X
    b = triangles.rest_position[n + k[2]] - X
    area = wp.length(wp.cross(a, b))
    base = wp.length(a)
    triangles_out.inverse[r] = wp.inverse(_mat(base, wp.dot(a, b) / base, real(0.0), area / base))
    V = real(0.5) * area * triangles.thickness[r]
    triangles_out.volume[r] = V
    m = triangles.density[element(triangles.place, w, e)] * V / real(3.0)
    for c in range(3):
        mass_out[corner(triangles.place, w, 3 * e + c)] = m


@wp.func
def modulus(E: real, nu: real):
    """E / (1 - nu^2): the weight w, and the stiffness of a sheet that cannot become narrower."""
    return E / (real(1.0) - nu * nu)


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    triangles: TriangleArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step."""
    w, e = wp.tid()
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    weight = modulus(triangles.youngs_modulus[k], triangles.poissons_ratio[k])
    size = wp.ddot(triangles.inverse[r], triangles.inverse[r])
    raise_to(scaling_out, w, e, weight * triangles.volume[r] * size / triangles.nominal[e])


@wp.func
def deformation(triangles: TriangleArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """F at x + u."""
    k = triangles.node[e]
    D = wp.matrix_from_cols(
        span(triangles.place, x, u, w, k[0], k[1]),
        span(triangles.place, x, u, w, k[0], k[2]),
    )
    return D @ triangles.inverse[row(triangles.place, w, e)]


@wp.func
def energy_density(F: _mat32, E: real, nu: real):
    """Psi = mu |F - R|^2 + lambda/2 (s - 2)^2, with |F - R|^2 = F : F - 2 s + 2."""
    f1 = _vec(F[0, 0], F[1, 0], F[2, 0])
    f2 = _vec(F[0, 1], F[1, 1], F[2, 1])
    square = wp.ddot(F, F)
    s = wp.sqrt(square + real(2.0) * wp.length(wp.cross(f1, f2)))
    change = s - real(2.0)
    distance = square - real(2.0) * s + real(2.0)
    return lame_mu(E, nu) * distance + real(0.5) * nu * modulus(E, nu) * change * change


@wp.func
def piola(F: _mat32, E: real, nu: real):
    """P = 2 mu (F - R) + lambda (s - 2) R."""
    mu = lame_mu(E, nu)
    lam = nu * modulus(E, nu)
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
    return P - wp.outer(n, n @ P)  # rounding of F - R alone, by which a sheet would be pushed out of its plane


@wp.kernel(module=wp.get_module("warpbots.projective.triangles_energy"))
def energy_kernel(
    # model
    triangles: TriangleArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """V Psi."""
    w, e = wp.tid()
    k = element(triangles.place, w, e)
    F = deformation(triangles, x, u, w, e)
    psi = energy_density(F, triangles.youngs_modulus[k], triangles.poissons_ratio[k])
    energy_out[corner(triangles.place, w, 3 * e)] = triangles.volume[row(triangles.place, w, e)] * psi


@wp.kernel
def force_kernel(
    # model
    triangles: TriangleArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """(f_1, f_2) = -V P D_0^-T, f_0 = -f_1 - f_2."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    F = deformation(triangles, x, u, w, e)
    P = piola(F, triangles.youngs_modulus[k], triangles.poissons_ratio[k])
    f = -triangles.volume[r] * P @ wp.transpose(triangles.inverse[r])
    f1 = _vec(f[0, 0], f[1, 0], f[2, 0])
    f2 = _vec(f[0, 1], f[1, 1], f[2, 1])
    c = corner(triangles.place, w, 3 * e)
    force_out[c] = -(f1 + f2)
    force_out[c + 1] = f1
    force_out[c + 2] = f2


@wp.func
def pull(F: _mat32, E: real, nu: real, dF: _mat32):
    """dF : P, whose gradient with respect to F is dP/dF : dF."""
    return wp.ddot(dF, piola(F, E, nu))


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    triangles: TriangleArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += V G_k . dP/dF . G_l, as that of tetrahedra."""
    w, e = wp.tid()
    r = row(triangles.place, w, e)
    i = element(triangles.place, w, e)
    F = deformation(triangles, x, u, w, e)
    inverse = triangles.inverse[r]
    for b in range(3):
        for d in range(2):
            dF = _mat32()
            dF[b, d] = real(1.0)
            dP, _E, _nu, _dF = wp.grad(pull)(F, triangles.youngs_modulus[i], triangles.poissons_ratio[i], dF)
            t = triangles.volume[r] * dP @ wp.transpose(inverse)
            t1 = _vec(t[0, 0], t[1, 0], t[2, 0])
            t2 = _vec(t[0, 1], t[1, 1], t[2, 1])
            for l in range(3):
                g = -(inverse[0, d] + inverse[1, d])
                if l == 1:
                    g = inverse[0, d]
                elif l == 2:
                    g = inverse[1, d]
                p = 9 * e + l
                add_block(triangles.place, w, p, b, -g * (t1 + t2), block_out)
                add_block(triangles.place, w, p + 3, b, g * t1, block_out)
                add_block(triangles.place, w, p + 6, b, g * t2, block_out)


@wp.func
def largest_tension(F: _mat32, E: real, nu: real):
    """The largest principal stress per stretch, T / u with T = 2 mu (u - 1) + lambda (s - 2), and 0 in compression.

    It is the stiffness of a displacement w out of the plane: the energy of the stress grows by 1/2 V T/u |grad w|^2.
    """
    f1 = _vec(F[0, 0], F[1, 0], F[2, 0])
    f2 = _vec(F[0, 1], F[1, 1], F[2, 1])
    J = wp.length(wp.cross(f1, f2))
    square = wp.ddot(F, F) + real(2.0) * J
    s = wp.sqrt(square)
    apart = wp.sqrt(wp.max(square - real(4.0) * J, real(0.0)))
    slope = nu * modulus(E, nu) * (s - real(2.0)) - real(2.0) * lame_mu(E, nu)
    u = real(0.5) * (s + wp.where(slope > real(0.0), -apart, apart))
    return wp.max(real(2.0) * lame_mu(E, nu) + slope / u, real(0.0))


@wp.kernel(enable_backward=False)
def normal_bound_kernel(
    # model
    triangles: TriangleArrays,
    normals: NormalArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    bound_out: wp.array[real],
):
    """V |G_c| (T sum |G_d| + (2 mu + 2 lambda) |m_c| sum |m_d| |G_d|) with the parts m of normals in the plane."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    r = row(triangles.place, w, e)
    k = element(triangles.place, w, e)
    node = triangles.node[e]
    E = triangles.youngs_modulus[k]
    nu = triangles.poissons_ratio[k]
    F = deformation(triangles, x, u, w, e)
    out = wp.normalize(wp.cross(_vec(F[0, 0], F[1, 0], F[2, 0]), _vec(F[0, 1], F[1, 1], F[2, 1])))
    inverse = triangles.inverse[r]
    length = _vec()
    inclined = _vec()
    for c in range(3):
        if normals.number[node[c]] >= 0:
            n = normal_of(normals, w, node[c])
            g = inverse[wp.max(c - 1, 0)]
            if c == 0:
                g = inverse[0] + inverse[1]
            length[c] = wp.length(g)
            inclined[c] = length[c] * wp.length(n - wp.dot(n, out) * out)
    a = largest_tension(F, E, nu) * (length[0] + length[1] + length[2])
    b = E / (real(1.0) - nu) * (inclined[0] + inclined[1] + inclined[2])
    first = corner(triangles.place, w, 3 * e)
    for c in range(3):
        bound_out[first + c] = triangles.volume[r] * (a * length[c] + b * inclined[c])


def _blocks(mesh: object) -> np.ndarray:
    """w V G G^T with w = E / (1 - nu^2)."""
    k = mesh.of("triangles")
    weight = mesh.youngs_modulus[k] / (1.0 - mesh.poissons_ratio[k] ** 2) * mesh.element_volume[k]
    return weight[:, None, None] * simplices(mesh.position, mesh.triangles)


TRIANGLES = Kind(
    name="triangles",
    arrays=TriangleArrays,
    node=wp.vec3i,
    rested={"inverse": _mat, "volume": real},
    blocks=_blocks,
    rest=rest_by(rest_kernel),
    scaling=scaling_kernel,
    forces=forces_by(force_kernel),
    energy=energy_by(energy_kernel),
    stiffness=stiffness_by(stiffness_kernel),
    normal_bounds=normal_bounds_by(normal_bound_kernel),
)
"""Triangles of sheets."""
