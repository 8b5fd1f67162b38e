"""Free normals: displacements of sheets along their normals, preconditioned by the stiffness in this direction.

The matrix A of the global step couples nodes but not coordinates. It resists a displacement out of the plane of a thin
sheet as strongly as a strain in the plane; in truth only inertia, bending and tension resist it. A third of all
eigenvalues of A^-1 H, those of folds and ripples, are then between 1e-4 and 1e-2, and the iteration needs thousands of
steps. With the unit normals N of the nodes and a bound D on the second derivative H along the normals, the
preconditioner is

    B^-1 = A^-1 + N D^-1 N^T,   D_i = m_i / h^2 + sum of bounds of its corners.

For the energy 1/2 k (sum_c a_c w_c)^2 of displacements w of the normals, the bound of a corner is k |a_c| sum_d |a_d|:
no eigenvalue of D^-1 N^T H N is above 1 (Gershgorin). D is evaluated at every point of the iteration, as tension
changes it a thousandfold within a step; if D is too low, the iteration diverges. B^-1 couples contacts, too: the force
of a contact displaces its nodes, and with them all contacts at these nodes.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import NodeArrays, packed

__all__ = [
    "NormalArrays",
    "around",
    "follow_kernel",
    "gain_kernel",
    "lift",
    "lifted",
    "normal_of",
    "number_of",
    "place_kernel",
]

_vec = vector(3)


@wp.struct
class NormalArrays:
    """Nodes of sheets that move freely; arrays that differ between worlds hold all worlds in one row.

    count: Number of these nodes in one world.
    nodes: Nodes of one world.
    stride: Entries of an iterate of one world.
    number: Index of a point in `member`, -1 for none, shape (n_points,).
    member: The nodes, shape (count,).
    first: First entry in `face` of each member, and the end of the last one, shape (count + 1,).
    face: For each face around a member, its other two corners in the order of the face, shape (faces,).
    normal: Unit normals n [1], shape (worlds * count,).
    gain: D^-1 [m/N], shape (worlds * count,).
    lift: Displacements along n by contact forces in an iteration [m], shape (worlds * count,).
    """

    count: int
    nodes: int
    stride: int
    number: wp.array[int]
    member: wp.array[int]
    first: wp.array[int]
    face: wp.array[wp.vec2i]
    normal: wp.array[_vec]
    gain: wp.array[real]
    lift: wp.array[real]


def around(triangles: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Free nodes of triangles, and the triangles around each of them.

    Args:
        triangles: Nodes of the corners, shape (n, 3).
        free: Whether a node may move along its normal, shape (n_nodes,), bool.

    Returns:
        The free nodes, shape (count,); the first triangle of each node in the last array, and the end, shape (count +
        1,); and the other two corners of the triangles around the nodes, shape (m, 2).
    """
    node = np.concatenate([triangles[:, k] for k in range(3)])
    others = np.concatenate([np.roll(triangles, -k, axis=1)[:, 1:] for k in range(3)])
    order = np.argsort(node, kind="stable")
    order = order[free[node[order]]]
    members = np.unique(node[order])
    return members, np.searchsorted(node[order], np.append(members, len(free))), others[order]


@wp.func
def number_of(normals: NormalArrays, node: int):
    """Index in `member` of a node of a contact, -1 for a node that is not a member."""
    number = int(-1)
    if normals.count > 0 and node >= 0:
        number = normals.number[node]
    return number


@wp.func
def normal_of(normals: NormalArrays, w: int, node: int):
    """Unit normal of a node that moves freely."""
    return normals.normal[w * normals.count + normals.number[node]]


@wp.func
def lift(normals: NormalArrays, w: int, node: int, force: _vec):
    """Add the displacement of a node along its normal by a force on the node."""
    i = number_of(normals, node)
    if i >= 0:
        k = w * normals.count + i
        normals.lift[k] = normals.lift[k] + normals.gain[k] * wp.dot(normals.normal[k], force)


@wp.func
def lifted(normals: NormalArrays, w: int, node: int):
    """Displacement of a node by all calls of `lift`; zero for a node that is not a member."""
    i = number_of(normals, node)
    total = _vec()
    if i >= 0:
        k = w * normals.count + i
        total = normals.lift[k] * normals.normal[k]
    return total


@wp.kernel(enable_backward=False)
def place_kernel(
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    z: wp.array[NODE],
    # out
    normals_out: NormalArrays,
):
    """Write the normals at the point `z`: means over the faces around each node, weighted by area."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    n = w * normals_out.nodes
    m = w * normals_out.stride
    node = normals_out.member[i]
    total = _vec()
    for p in range(normals_out.first[i], normals_out.first[i + 1]):
        k = normals_out.face[p]
        a = (x[n + k[0]] - x[n + node]) + (at(z, m + k[0]) - at(z, m + node))
        b = (x[n + k[1]] - x[n + node]) + (at(z, m + k[1]) - at(z, m + node))
        total += wp.cross(a, b)
    normals_out.normal[w * normals_out.count + i] = wp.normalize(total)


@wp.kernel(enable_backward=False)
def gain_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    active: wp.array[int],
    # work
    bound: wp.array[real],
    # out
    normals_out: NormalArrays,
):
    """Write D^-1 from the mass of each node and the bounds of its corners."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    node = normals_out.member[i]
    d = nodes.mass[w * nodes.count + node] / (h * h)
    for c in range(nodes.start[node], nodes.start[node + 1]):
        d += bound[w * nodes.corners + nodes.corner[c]]
    normals_out.gain[w * normals_out.count + i] = real(1.0) / d


@wp.kernel(enable_backward=False)
def follow_kernel(
    # state
    normals: NormalArrays,
    active: wp.array[int],
    r: wp.array[NODE],
    # out
    f_out: wp.array[NODE],
):
    """Add N D^-1 N^T r to a correction."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    k = w * normals.count + i
    j = w * normals.stride + normals.member[i]
    n = normals.normal[k]
    f_out[j] = f_out[j] + packed(normals.gain[k] * wp.dot(n, at(r, j)) * n)
