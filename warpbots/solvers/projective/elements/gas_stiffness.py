"""Kernels for the stiffness of the gas in cavities (`warpbots.solvers.projective.gas_step`)."""

import warp as wp

from warpbots.numerics import NODE, real, sum_of_lanes, vector
from warpbots.numerics.simd import dot, fetch, multiply_add
from warpbots.solvers.projective.elements.cavities import CavityArrays, edge, energy_of_gas
from warpbots.solvers.projective.elements.nodes import NodeArrays, packed

__all__ = [
    "GasArrays",
    "gradient_kernel",
    "gram_kernel",
    "invert_kernel",
    "project_kernel",
    "slope_kernel",
    "subtract_kernel",
    "weigh_kernel",
]

_vec = vector(3)
_ZERO, _ONE = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0))
_sum = sum_of_lanes(wp.float64)


@wp.struct
class GasArrays:
    """Gas in cavities; symbols as in `gas_step`.

    `gradient` and `moved` hold a nodal vector for each cavity with gas, shape (cavities * worlds * stride,).

    cavity: The cavities with gas, shape (cavities,).
    gradient: V', 0 for fixed nodes [m^2].
    moved: W = A^-1 V', 0 for nodes that are not free [m^3/N].
    slope: The diagonal matrix C [Pa/m^3], shape (worlds * cavities * cavities,).
    inverse: Q [Pa/m^3], shape (worlds * cavities * cavities,).
    share: Products of `gradient` or `moved` with a nodal vector, shape (worlds * cavities,).
    weight: Products of the matrix C or Q with `share`, shape (worlds * cavities,).
    """

    cavity: wp.array[int]
    gradient: wp.array[NODE]
    moved: wp.array[NODE]
    slope: wp.array[wp.float64]
    inverse: wp.array[wp.float64]
    share: wp.array[wp.float64]
    weight: wp.array[wp.float64]


@wp.func
def entry(gas: GasArrays, w: int, j: int, k: int):
    """Index of entry (j, k) of a matrix of world w."""
    count = gas.cavity.shape[0]
    return (w * count + j) * count + k


@wp.func
def first_of(gas: GasArrays, nodes: NodeArrays, w: int, k: int):
    """Index of the first node of world w in the vector of cavity k."""
    worlds = gas.share.shape[0] / gas.cavity.shape[0]
    return (k * worlds + w) * nodes.stride


@wp.kernel(enable_backward=False)
def slope_kernel(
    # model
    cavities: CavityArrays,
    # state
    control: wp.array2d[real],
    # out
    gas_out: GasArrays,
):
    """Write C, with c = G r^u / V^2 on its diagonal."""
    w, j, k = wp.tid()
    c = _ZERO
    if j == k:
        i = gas_out.cavity[k]
        V = cavities.volume[w * cavities.cavity_runs.shape[0] + i]
        c = energy_of_gas(cavities, control, w, i) / (V * V)
    gas_out.slope[entry(gas_out, w, j, k)] = c


@wp.kernel(enable_backward=False)
def gradient_kernel(
    # model
    nodes: NodeArrays,
    cavities: CavityArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    gas_out: GasArrays,
):
    """Write V'_i, the sum of 1/6 d_1 x d_2 over the faces of a cavity at node i."""
    w, k, i = wp.tid()
    g = _vec()
    if nodes.held[i] < 0:
        for n in range(nodes.start[i], nodes.start[i + 1]):
            c = nodes.corner[n] - cavities.place.corner
            e = c / 3
            if c >= 0 and e < cavities.place.count:  # noqa: SIM102 (a kernel evaluates both sides of `and`)
                if cavities.cavity[e] == gas_out.cavity[k]:
                    g += wp.cross(edge(cavities, x, u, w, e, 1), edge(cavities, x, u, w, e, 2)) / real(6.0)
    gas_out.gradient[first_of(gas_out, nodes, w, k) + i] = packed(g)


@wp.kernel(enable_backward=False)
def gram_kernel(
    # model
    nodes: NodeArrays,
    # out
    gas_out: GasArrays,
):
    """Write C^-1 + V'^T W, the inverse of Q."""
    w, j, k, lane = wp.tid()
    a = first_of(gas_out, nodes, w, wp.max(j, k))
    b = first_of(gas_out, nodes, w, wp.min(j, k))
    total = _ZERO
    for i in range(lane, nodes.count, wp.block_dim()):
        total += wp.float64(dot(fetch(gas_out.gradient, a + i), fetch(gas_out.moved, b + i)))
    total = _sum(total)
    if lane == 0:
        if j == k:
            total += _ONE / gas_out.slope[entry(gas_out, w, k, k)]
        gas_out.inverse[entry(gas_out, w, j, k)] = total


@wp.kernel(enable_backward=False)
def invert_kernel(
    # out
    gas_out: GasArrays,
):
    """Replace the inverse of Q by Q, by Gauss-Jordan elimination; the matrix is positive definite."""
    w = wp.tid()
    n = gas_out.cavity.shape[0]
    for k in range(n):
        pivot = _ONE / gas_out.inverse[entry(gas_out, w, k, k)]
        gas_out.inverse[entry(gas_out, w, k, k)] = _ONE
        for j in range(n):
            gas_out.inverse[entry(gas_out, w, k, j)] = pivot * gas_out.inverse[entry(gas_out, w, k, j)]
        for i in range(n):
            if i != k:
                factor = gas_out.inverse[entry(gas_out, w, i, k)]
                gas_out.inverse[entry(gas_out, w, i, k)] = _ZERO
                for j in range(n):
                    a = gas_out.inverse[entry(gas_out, w, k, j)]
                    gas_out.inverse[entry(gas_out, w, i, j)] = gas_out.inverse[entry(gas_out, w, i, j)] - factor * a


@wp.kernel(enable_backward=False)
def project_kernel(
    # model
    nodes: NodeArrays,
    gas: GasArrays,
    # state
    active: wp.array[int],
    vectors: wp.array[NODE],
    b: wp.array[NODE],
    # out
    gas_out: GasArrays,
):
    """V^T b."""
    w, k, lane = wp.tid()
    if active[w] == 0:
        return
    first = first_of(gas, nodes, w, k)
    total = _ZERO
    for i in range(lane, nodes.count, wp.block_dim()):
        total += wp.float64(dot(fetch(vectors, first + i), fetch(b, w * nodes.stride + i)))
    total = _sum(total)
    if lane == 0:
        gas_out.share[w * gas.cavity.shape[0] + k] = total


@wp.kernel(enable_backward=False)
def weigh_kernel(
    # model
    gas: GasArrays,
    # state
    active: wp.array[int],
    middle: wp.array[wp.float64],
    # out
    gas_out: GasArrays,
):
    """M V^T b."""
    w, j = wp.tid()
    if active[w] == 0:
        return
    n = gas.cavity.shape[0]
    total = _ZERO
    for k in range(n):
        total += middle[entry(gas, w, j, k)] * gas.share[w * n + k]
    gas_out.weight[w * n + j] = total


@wp.kernel(enable_backward=False)
def subtract_kernel(
    # model
    nodes: NodeArrays,
    gas: GasArrays,
    # state
    active: wp.array[int],
    vectors: wp.array[NODE],
    # out
    b_out: wp.array[NODE],
):
    """Subtract V M V^T b."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    n = gas.cavity.shape[0]
    y = fetch(b_out, w * nodes.stride + i)
    for k in range(n):
        y = multiply_add(y, -real(gas.weight[w * n + k]), fetch(vectors, first_of(gas, nodes, w, k) + i))
    b_out[w * nodes.stride + i] = y
