"""Nodes: their masses, the residual at the end of a step, and the derivative of the residual.

A step of implicit Euler ends at x + u where the gradient of

    Phi(u) = 1/(2 h^2) |u - h v|_M^2 - g . M u - load . u + E(x + u)

is zero (eq. 2 of the soft multi-body paper, for displacements).
"""

import warp as wp

from warpbots.numerics import NODE, largest_of_lanes, real, vector
from warpbots.numerics.simd import add, fetch, index, multiply_add, subtract
from warpbots.solvers.projective.elements.element import at, raise_to
from warpbots.solvers.projective.islands import Islands, component_of

__all__ = [
    "NodeArrays",
    "packed",
    "drop_kernel",
    "end_kernel",
    "residual_kernel",
    "largest_kernel",
    "mass_kernel",
    "product_kernel",
    "scaling_kernel",
    "seed_kernel",
    "settle_kernel",
    "invalidate_kernel",
    "start_kernel",
    "take_kernel",
    "weigh_kernel",
]

_vec = vector(3)
_largest = largest_of_lanes(real)
_NO_PAIR = wp.constant(0)  # `NONE` of `pair_arrays`


@wp.struct
class NodeArrays:
    """Nodes; arrays that may differ between worlds hold all worlds in one row.

    count: Nodes of one world.
    stride: Entries of an iterate of one world, of which displacements of nodes are the first.
    corners: Corners of all elements of one world.
    start: First entry of a node in `corner`, and the end of the last node, shape (count + 1,).
    corner: Indices of the corners, grouped by nodes, shape (corners,).
    held: For a fixed node with an anchor, its index among such nodes; `anchors` for a node that stays where it is; -1
        for a node that moves; shape (count,).
    anchor: Positions of fixed nodes with an anchor [m], shape (worlds * anchors,).
    anchors: Number of fixed nodes with an anchor in one world.
    load: Steady forces [N], shape (worlds * count,).
    gravity: Gravitational acceleration [m/s^2], shape (worlds,).
    mass: Masses [kg], shape (worlds * count,).
    """

    count: int
    stride: int
    corners: int
    start: wp.array[int]
    corner: wp.array[int]
    held: wp.array[int]
    anchor: wp.array[_vec]
    anchors: int
    load: wp.array[_vec]
    gravity: wp.array[_vec]
    mass: wp.array[real]


@wp.func
def packed(a: _vec):
    """Convert three coordinates to an entry of an iterate."""
    return NODE(a[0], a[1], a[2], real(0.0))


@wp.kernel
def mass_kernel(
    # model
    nodes: NodeArrays,
    # work
    corner_mass: wp.array[real],
    # out
    nodes_out: NodeArrays,
):
    """Write the mass M_i of a node: the sum of the masses of its corners."""
    w, i = wp.tid()
    m = real(0.0)
    for k in range(nodes.start[i], nodes.start[i + 1]):
        m += corner_mass[w * nodes.corners + nodes.corner[k]]
    nodes_out.mass[w * nodes.count + i] = m


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    nodes: NodeArrays,
    nominal: wp.array[real],
    # out
    scaling_out: wp.array2d[real],
):
    """Raise the maxima to the largest ratio of a mass to its value in the matrix of the global step."""
    w, i = wp.tid()
    raise_to(scaling_out, w, i, nodes.mass[w * nodes.count + i] / nominal[i])


@wp.kernel(enable_backward=False)
def largest_kernel(
    # work
    ratios: wp.array2d[real],
    # out
    scaling_out: wp.array[real],
):
    """Write the largest of the partial maxima of each world."""
    w, lane = wp.tid()
    most = real(0.0)
    for c in range(lane, ratios.shape[1], wp.block_dim()):
        most = wp.max(most, ratios[w, c])
    most = _largest(most)
    if lane == 0:
        scaling_out[w] = most


@wp.kernel(enable_backward=False)
def start_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    u_out: wp.array[NODE],
):
    """Write the initial guess: free flight, the displacement to the anchor, or zero for nodes that stay."""
    w, i = wp.tid()
    k = w * nodes.count + i
    j = w * nodes.stride + i
    u = h * v[k] + h * h * nodes.gravity[w]
    if nodes.held[i] >= 0:
        u = _vec()
        if nodes.held[i] < nodes.anchors:
            u = nodes.anchor[w * nodes.anchors + nodes.held[i]] - x[k]
    u_out[j] = packed(u)


@wp.kernel
def residual_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    active: wp.array[int],
    v: wp.array[_vec],
    u: wp.array[NODE],
    # work
    force: wp.array[_vec],
    # out
    residual_out: wp.array[NODE],
):
    """Write -grad Phi: f + load + M (g - (u - h v) / h^2), and 0 for fixed nodes."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    k = w * nodes.count + i
    j = w * nodes.stride + i
    f = nodes.load[k] + nodes.mass[k] * (nodes.gravity[w] - (at(u, j) - h * v[k]) / (h * h))
    for c in range(nodes.start[i], nodes.start[i + 1]):
        f += force[w * nodes.corners + nodes.corner[c]]
    if nodes.held[i] >= 0:
        f = _vec()
    residual_out[j] = packed(f)


@wp.kernel(enable_backward=False)
def product_kernel(
    # model
    nodes: NodeArrays,
    row: wp.array[int],
    neighbor: wp.array[int],
    # state
    h: real,
    active: wp.array[int],
    seed: wp.array[NODE],
    a: wp.array[NODE],
    # work
    column: wp.array[NODE],
    # out
    residual_out: wp.array[NODE],
):
    """Write seed - H a for the second derivative H of Phi, and 0 for fixed nodes.

    The stiffness K in H multiplies differences, (K a)_i = sum_j K_ij (a_j - a_i) + (sum_j K_ij) a_i: a displacement of
    a body as a whole then leaves no rounding of its stiffness, which may be thousands of times its inertia m / h^2. The
    sums of blocks are the same in every product, and not zero in a fluid.
    """
    w, i = wp.tid()
    if active[w] == 0:
        return
    j = w * nodes.stride + i
    own = fetch(a, j)
    y = multiply_add(fetch(seed, j), -nodes.mass[w * nodes.count + i] / (h * h), own)
    pairs = w * neighbor.shape[0]
    k0 = NODE()
    k1 = NODE()
    k2 = NODE()
    for p in range(row[i], row[i + 1]):
        b = subtract(fetch(a, w * nodes.stride + index(neighbor, p)), own)
        c = 3 * (pairs + p)
        a0 = fetch(column, c)
        a1 = fetch(column, c + 1)
        a2 = fetch(column, c + 2)
        y = multiply_add(y, -b[0], a0)
        y = multiply_add(y, -b[1], a1)
        y = multiply_add(y, -b[2], a2)
        k0 = add(k0, a0)
        k1 = add(k1, a1)
        k2 = add(k2, a2)
    y = multiply_add(y, -own[0], k0)
    y = multiply_add(y, -own[1], k1)
    y = multiply_add(y, -own[2], k2)
    if nodes.held[i] >= 0:
        y = NODE()
    residual_out[j] = y


@wp.kernel(enable_backward=False)
def end_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    islands: Islands,
    x: wp.array[_vec],
    v: wp.array[_vec],
    u: wp.array[NODE],
    # out
    x_out: wp.array[_vec],
    v_out: wp.array[_vec],
):
    """x' = x + u, v' = u / h; but x' = x, v' = v if the step of the component failed or was not taken."""
    w, i = wp.tid()
    k = w * nodes.count + i
    d = at(u, w * nodes.stride + i)
    if islands.sound[w * islands.count + islands.component[i]] == 1:
        x_out[k] = x[k] + d
        v_out[k] = d / h
    else:
        x_out[k] = x[k]
        v_out[k] = v[k]


@wp.kernel(enable_backward=False)
def drop_kernel(
    # model
    stride: int,
    capacity: int,
    # state
    islands: Islands,
    # out
    z_out: wp.array[NODE],
    kind_out: wp.array[int],
):
    """Clear displacements, forces and pairs of components whose step failed."""
    w, i = wp.tid()
    if islands.sound[w * islands.count + component_of(islands, w, i)] == 0:
        z_out[w * stride + i] = NODE()
        pair = i - (stride - capacity)
        if pair >= 0:
            kind_out[w * capacity + pair] = _NO_PAIR


@wp.kernel(enable_backward=False)
def seed_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    v: wp.array[_vec],
    x_adj: wp.array[_vec],
    v_adj: wp.array[_vec],
    # out
    u_out: wp.array[NODE],
    seed_out: wp.array[NODE],
):
    """Write the displacement u = h v' of a step from the velocity v' at its end; write its gradient x'* + v'* / h."""
    w, i = wp.tid()
    k = w * nodes.count + i
    j = w * nodes.stride + i
    u_out[j] = packed(h * v[k])
    seed_out[j] = packed(x_adj[k] + v_adj[k] / h)


@wp.kernel(enable_backward=False)
def take_kernel(
    # model
    stride: int,
    # state
    values: wp.array[NODE],
    # out
    values_out: wp.array[NODE],
):
    """Copy the entries of nodes."""
    w, i = wp.tid()
    values_out[w * stride + i] = values[w * stride + i]


@wp.kernel(enable_backward=False)
def invalidate_kernel(
    # model
    stride: int,
    # state
    found: wp.array[int],
    # out
    a_out: wp.array[NODE],
):
    """Write NaN for nodes, joints and contacts of worlds in which the adjoint did not converge."""
    w, i = wp.tid()
    if found[w] == 0:
        a_out[w * stride + i] = NODE(real(wp.nan))


@wp.kernel(enable_backward=False)
def weigh_kernel(
    # model
    nodes: NodeArrays,
    # state
    a: wp.array[NODE],
    # out
    residual_adj_out: wp.array[NODE],
):
    """Write b* = H^-1 u*, and 0 for fixed nodes."""
    w, i = wp.tid()
    k = w * nodes.stride + i
    g = a[k]
    if nodes.held[i] >= 0:
        g = NODE()
    residual_adj_out[k] = g


@wp.kernel(enable_backward=False)
def settle_kernel(
    # model
    nodes: NodeArrays,
    # state
    seed: wp.array[NODE],
    u_adj: wp.array[NODE],
    ended_adj: wp.array[_vec],
    # out
    x_adj_out: wp.array[_vec],
    anchor_adj_out: wp.array[_vec],
):
    """x* += x'*; and for the displacement of nodes with an anchor, anchor - x, anchor* += u*, x* -= u*."""
    w, i = wp.tid()
    k = w * nodes.count + i
    g = ended_adj[k]
    held = nodes.held[i]
    if held >= 0 and held < nodes.anchors:
        j = w * nodes.stride + i
        t = at(seed, j) + at(u_adj, j)
        g = g - t
        if anchor_adj_out:
            anchor_adj_out[w * nodes.anchors + held] = anchor_adj_out[w * nodes.anchors + held] + t
    x_adj_out[k] = x_adj_out[k] + g
