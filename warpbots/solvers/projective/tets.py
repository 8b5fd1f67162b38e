"""Tetrahedra with a constant deformation gradient (Sifakis & Barbic 2012, "FEM simulation of 3D deformable solids").

With D = (x_1 - x_0, x_2 - x_0, x_3 - x_0), and D_0 the same at rest,

    F = D D_0^-1,   (f_1, f_2, f_3) = -V P(F) D_0^-T,   f_0 = -f_1 - f_2 - f_3.

P is that of the material plus F S for the stress S of actuators in the undeformed body.
"""

import functools

import warp as wp

from warpbots.actuators import activation_arrays, active_stress
from warpbots.materials import elasticity, lame_lambda, lame_mu
from warpbots.math import NODE, matrix, real, vector

__all__ = ["TetArrays", "at", "rest_kernel", "scaling_kernel", "stiffness_kernel", "stress_kernel"]

_vec, _mat = vector(3), matrix(3)
_ActivationArrays = activation_arrays(3)
_active = active_stress(3)


@wp.struct
class TetArrays:
    """Tetrahedra; what may differ from world to world has all worlds in one row.

    count: Tetrahedra of one world.
    elements: Elements of one world, of which tetrahedra are the first.
    nodes: Nodes of one world.
    stride: Entries of a point of the iteration of one world, of which displacements of nodes are the first.
    corners: Corners of all elements of one world, of which those of tetrahedra are the first.
    node: Nodes of the corners, shape (count,).
    youngs_modulus: Young's modulus E [Pa], shape (worlds * elements,).
    poissons_ratio: Poisson's ratio nu [1], likewise.
    density: Density rho [kg/m^3], likewise.
    rest: Positions at rest [m], shape (worlds * nodes,).
    inverse: D_0^-1 [1/m], shape (worlds * count,).
    volume: V [m^3], likewise.
    nominal: Stiffness w V |D_0^-1|^2 of a tetrahedron in the matrix of the global step [N/m], shape (count,).
    """

    count: int
    elements: int
    nodes: int
    stride: int
    corners: int
    node: wp.array[wp.vec4i]
    youngs_modulus: wp.array[real]
    poissons_ratio: wp.array[real]
    density: wp.array[real]
    rest: wp.array[_vec]
    inverse: wp.array[_mat]
    volume: wp.array[real]
    nominal: wp.array[real]


@wp.kernel
def rest_kernel(tets: TetArrays, tets_out: TetArrays, mass_out: wp.array[real]):
    """D_0^-1 and V of every tetrahedron, and the mass rho V / 4 of each of its corners."""
    w, e = wp.tid()
    n = w * tets.nodes
    k = tets.node[e]
    X = tets.rest[n + k[0]]
    D = wp.matrix_from_cols(tets.rest[n + k[1]] - X, tets.rest[n + k[2]] - X, tets.rest[n + k[3]] - X)
    V = wp.determinant(D) / real(6.0)
    tets_out.inverse[w * tets.count + e] = wp.inverse(D)
    tets_out.volume[w * tets.count + e] = V
    m = real(0.25) * tets.density[w * tets.elements + e] * V
    for c in range(4):
        mass_out[w * tets.corners + 4 * e + c] = m


@wp.kernel(enable_backward=False)
def scaling_kernel(tets: TetArrays, scaling_out: wp.array[real]):
    """The largest ratio of a stiffness to that in the matrix of the global step, see `build.weights`."""
    w, e = wp.tid()
    r = w * tets.count + e
    k = w * tets.elements + e
    mu = lame_mu(tets.youngs_modulus[k], tets.poissons_ratio[k])
    lam = lame_lambda(tets.youngs_modulus[k], tets.poissons_ratio[k])
    weight = wp.max(real(2.0) * mu + lam, mu + real(1.5) * lam)
    size = wp.ddot(tets.inverse[r], tets.inverse[r])
    wp.atomic_max(scaling_out, w, weight * tets.volume[r] * size / tets.nominal[e])


@wp.func
def at(u: wp.array[NODE], i: int):
    """The three coordinates of a node."""
    a = u[i]
    return _vec(a[0], a[1], a[2])


@wp.func
def deformation(tets: TetArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """F at x + u; differences of displacements are taken before they are added, which loses no digits."""
    n = w * tets.nodes
    m = w * tets.stride
    k = tets.node[e]
    x0 = x[n + k[0]]
    u0 = at(u, m + k[0])
    D = wp.matrix_from_cols(
        (x[n + k[1]] - x0) + (at(u, m + k[1]) - u0),
        (x[n + k[2]] - x0) + (at(u, m + k[2]) - u0),
        (x[n + k[3]] - x0) + (at(u, m + k[3]) - u0),
    )
    return D @ tets.inverse[w * tets.count + e]


@functools.cache
def stress_kernel(law: str, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): forces at their corners."""
    _, _, piola = elasticity(law, incompressibility, 3)

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law}_{incompressibility}"))
    def stress(
        # model
        tets: TetArrays,
        activation: _ActivationArrays,
        first: int,
        # state
        active: wp.array[int],
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        force_out: wp.array[_vec],
    ):
        """(f_1, f_2, f_3) = -V (P + F S) D_0^-T, f_0 = -f_1 - f_2 - f_3."""
        w, i = wp.tid()
        if active[w] == 0:
            return
        e = first + i
        F = deformation(tets, x, u, w, e)
        P = piola(F, tets.youngs_modulus[w * tets.elements + e], tets.poissons_ratio[w * tets.elements + e])
        if activation.start[e] < activation.start[e + 1]:
            P += F @ _active(activation, e, w, control)
        f = -tets.volume[w * tets.count + e] * P @ wp.transpose(tets.inverse[w * tets.count + e])
        f1 = _vec(f[0, 0], f[1, 0], f[2, 0])
        f2 = _vec(f[0, 1], f[1, 1], f[2, 1])
        f3 = _vec(f[0, 2], f[1, 2], f[2, 2])
        c = w * tets.corners + 4 * e
        force_out[c] = -(f1 + f2 + f3)
        force_out[c + 1] = f1
        force_out[c + 2] = f2
        force_out[c + 3] = f3

    return stress


@functools.cache
def stiffness_kernel(law: str, incompressibility: int) -> wp.Kernel:
    """Kernel over (worlds, tetrahedra of one law): add their second derivatives to a matrix of blocks.

    Column b of the block of corners k and l is V sum_d (dP/dF_bd) G_k G_l[d], with the gradient G of a corner's shape
    function. As dP/dF is symmetric, dP/dF : dF is the gradient of dF : P, which Warp derives.
    """
    _, _, piola = elasticity(law, incompressibility, 3)

    @wp.func
    def pull(F: _mat, E: real, nu: real, dF: _mat):
        """dF : P."""
        return wp.ddot(dF, piola(F, E, nu))

    @wp.kernel(module=wp.get_module(f"warpbots.projective.{law}_{incompressibility}_stiffness"), enable_backward=False)
    def stiffness(
        # model
        tets: TetArrays,
        activation: _ActivationArrays,
        first: int,
        pair: wp.array[int],
        pairs: int,
        # state
        control: wp.array2d[real],
        x: wp.array[_vec],
        u: wp.array[NODE],
        # out
        column_out: wp.array[_vec],
    ):
        """K += V G_k . dP/dF . G_l."""
        w, i = wp.tid()
        e = first + i
        F = deformation(tets, x, u, w, e)
        E = tets.youngs_modulus[w * tets.elements + e]
        nu = tets.poissons_ratio[w * tets.elements + e]
        V = tets.volume[w * tets.count + e]
        inverse = tets.inverse[w * tets.count + e]
        A = _mat()
        if activation.start[e] < activation.start[e + 1]:
            A = _active(activation, e, w, control)
        for b in range(3):
            for d in range(3):
                dF = _mat()
                dF[b, d] = real(1.0)
                dP, _E, _nu, _dF = wp.grad(pull)(F, E, nu, dF)
                dP += dF @ A
                t = V * dP @ wp.transpose(inverse)
                t1 = _vec(t[0, 0], t[1, 0], t[2, 0])
                t2 = _vec(t[0, 1], t[1, 1], t[2, 1])
                t3 = _vec(t[0, 2], t[1, 2], t[2, 2])
                t0 = -(t1 + t2 + t3)
                g1 = inverse[0, d]
                g2 = inverse[1, d]
                g3 = inverse[2, d]
                for l in range(4):
                    gl = -(g1 + g2 + g3)
                    if l == 1:
                        gl = g1
                    elif l == 2:
                        gl = g2
                    elif l == 3:
                        gl = g3
                    p = 16 * e + l
                    row = w * pairs
                    wp.atomic_add(column_out, 3 * (row + pair[p]) + b, gl * t0)
                    wp.atomic_add(column_out, 3 * (row + pair[p + 4]) + b, gl * t1)
                    wp.atomic_add(column_out, 3 * (row + pair[p + 8]) + b, gl * t2)
                    wp.atomic_add(column_out, 3 * (row + pair[p + 12]) + b, gl * t3)

    return stiffness
