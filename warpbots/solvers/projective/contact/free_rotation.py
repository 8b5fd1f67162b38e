"""Free rotation: rotations of unconstrained bodies, preconditioned by their inertia.

The matrix A of the global step couples nodes but not coordinates. It resists the rotation of a body as strongly as
shear. In truth only inertia resists rotation, a thousand times more weakly for stiff matter in long steps, so that the
iteration would take a thousand times as many iterations. With the rotations Z of a body about its present centre of
mass, the preconditioner B equals A for displacements without a part in Z, and equals the inertia E_H for rotations Z:

    B^-1 = A^-1 + Z G Z^T,   G = E_H^-1 - E_A^-1,   E_H = Z^T M Z / h^2,   E_A = Z^T A Z

(two-level preconditioning by deflation: Tang et al. 2009, "Comparison of two-level preconditioners derived from
deflation, domain decomposition and multigrid methods"). Elastic forces have no torque about any point and cannot rotate
a body. Bodies are components that elements, cables and attachments connect; a body that is fixed somewhere or has bones
is not unconstrained.
"""

import numpy as np
import warp as wp
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from warpbots.numerics import NODE, real, sum_of_lanes, vector
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import NodeArrays, packed
from warpbots.solvers.projective.islands import Islands

__all__ = [
    "RotationArrays",
    "body_of",
    "follow_kernel",
    "free_bodies",
    "gain_kernel",
    "place_kernel",
    "spin_kernel",
    "torque_kernel",
]

_vec = vector(3)
_FARTHEST = wp.constant(wp.float64(0.5))  # largest rotation in one iteration [rad]: beyond, forces are too different
_sum, _sum_of_vectors, _sum_of_matrices = map(sum_of_lanes, (wp.float64, wp.vec3d, wp.mat33d))


@wp.struct
class RotationArrays:
    """Unconstrained bodies; arrays that differ between worlds hold all worlds in one row.

    count: Bodies of one world.
    nodes: Nodes of one world.
    stride: Entries of an iterate of one world.
    body: Body of a point, -1 for points without a body, such as vertices of bone surfaces, shape (n_points,).
    first: First entry in `member` of a body, and the end of the last body, shape (count + 1,).
    member: Nodes of the bodies, one after the other, shape (members,).
    row: First entry of a row of A, and the end of the last row, shape (nodes + 1,).
    column: Column of an entry, shape (entries,).
    value: Value of an entry [N/m], shape (entries,).
    center: Centres of mass [m], shape (worlds * count,).
    arm: Positions of nodes relative to the centre of mass of their body [m], shape (worlds * nodes,).
    gain: G [1/(N m)], shape (worlds * count,).
    angle: Rotation vector in an iteration [rad], shape (worlds * count,).
    """

    count: int
    nodes: int
    stride: int
    body: wp.array[int]
    first: wp.array[int]
    member: wp.array[int]
    row: wp.array[int]
    column: wp.array[int]
    value: wp.array[real]
    center: wp.array[wp.vec3d]
    arm: wp.array[_vec]
    gain: wp.array[wp.mat33d]
    angle: wp.array[wp.vec3d]


def free_bodies(pattern: csr_matrix, solid: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, int]:
    """Index of the unconstrained body of each node, -1 for none, shape (n_nodes,), and how many such bodies there are.

    Args:
        pattern: Which nodes share an element, shape (n_nodes, n_nodes).
        solid: Which nodes belong to a tetrahedron or a triangle, shape (n_nodes,), bool; a body without any may have no
            inertia about an axis.
        held: Which nodes are fixed or bound to bones, shape (n_nodes,).
    """
    count, label = connected_components(pattern, directed=False)
    free = (np.bincount(label[solid], minlength=count) > 0) & (np.bincount(label[held], minlength=count) == 0)
    number = np.where(free, np.cumsum(free) - 1, -1)
    return number[label], int(free.sum())


@wp.func
def body_of(rotation: RotationArrays, node: int):
    """Unconstrained body of a node of a contact, -1 for none."""
    body = int(-1)
    if node >= 0:
        body = rotation.body[node]
    return body


@wp.func
def about(S: wp.mat33d):
    """Inertia matrix tr(S) I - S for the second moments S."""
    return wp.trace(S) * wp.identity(n=3, dtype=wp.float64) - S


@wp.kernel(enable_backward=False)
def place_kernel(
    # state
    mass: wp.array[real],
    active: wp.array[int],
    x: wp.array[_vec],
    z: wp.array[NODE],
    # out
    rotation_out: RotationArrays,
):
    """Write centres of mass of bodies at the point `z`, and arms of nodes."""
    w, b, lane = wp.tid()
    if active[w] == 0:
        return
    n = w * rotation_out.nodes
    total = wp.float64(0.0)
    moment = wp.vec3d()
    for k in range(rotation_out.first[b] + lane, rotation_out.first[b + 1], wp.block_dim()):
        i = rotation_out.member[k]
        m = wp.float64(mass[n + i])
        total += m
        moment += m * (wp.vec3d(x[n + i]) + wp.vec3d(at(z, w * rotation_out.stride + i)))
    total = _sum(total)
    center = _sum_of_vectors(moment) / total
    rotation_out.center[w * rotation_out.count + b] = center
    for k in range(rotation_out.first[b] + lane, rotation_out.first[b + 1], wp.block_dim()):
        i = rotation_out.member[k]
        y = wp.vec3d(x[n + i]) + wp.vec3d(at(z, w * rotation_out.stride + i))
        rotation_out.arm[n + i] = _vec(y - center)


@wp.kernel(enable_backward=False)
def gain_kernel(
    # model
    nodes: NodeArrays,
    # state
    h: real,
    v: wp.array[_vec],
    # work
    scaling: wp.array[real],
    # out
    rotation_out: RotationArrays,
):
    """Write G of bodies at their positions, and the rotation in a step by their velocities, I^-1 h sum m r x v.

    Steady forces f also resist rotation, by at most sum |f| |r|, which is added to E_H and E_A.
    """
    w, b, lane = wp.tid()
    inertia = wp.mat33d()
    resisted = wp.mat33d()
    spin = wp.vec3d()
    held = wp.float64(0.0)
    n = w * rotation_out.nodes
    for k in range(rotation_out.first[b] + lane, rotation_out.first[b + 1], wp.block_dim()):
        i = rotation_out.member[k]
        r = wp.vec3d(rotation_out.arm[n + i])
        m = wp.float64(nodes.mass[n + i])
        held += wp.length(wp.vec3d(nodes.load[n + i])) * wp.length(r)
        inertia += m * wp.outer(r, r)
        spin += m * wp.cross(r, wp.vec3d(v[n + i]))
        for p in range(rotation_out.row[i], rotation_out.row[i + 1]):
            j = rotation_out.column[p]
            resisted += wp.float64(rotation_out.value[p]) * wp.outer(r, wp.vec3d(rotation_out.arm[n + j]))
    inertia = _sum_of_matrices(inertia)
    resisted = _sum_of_matrices(resisted)
    spin = _sum_of_vectors(spin)
    held = _sum(held)
    if lane > 0:
        return
    I = about(inertia)
    K = held * wp.identity(n=3, dtype=wp.float64)
    E_H = K + I / wp.float64(h * h)
    E_A = K + wp.float64(scaling[w]) * about(wp.float64(0.5) * (resisted + wp.transpose(resisted)))
    rotation_out.gain[w * rotation_out.count + b] = wp.inverse(E_H) - wp.inverse(E_A)
    rotation_out.angle[w * rotation_out.count + b] = wp.float64(h) * (wp.inverse(I) * spin)


@wp.kernel(enable_backward=False)
def torque_kernel(
    # state
    active: wp.array[int],
    r: wp.array[NODE],
    # out
    rotation_out: RotationArrays,
):
    """Write the rotations G Z^T r of bodies for the residual r of an iteration."""
    w, b, lane = wp.tid()
    if active[w] == 0:
        return
    torque = wp.vec3d()
    for k in range(rotation_out.first[b] + lane, rotation_out.first[b + 1], wp.block_dim()):
        i = rotation_out.member[k]
        force = wp.vec3d(at(r, w * rotation_out.stride + i))
        torque += wp.cross(wp.vec3d(rotation_out.arm[w * rotation_out.nodes + i]), force)
    torque = _sum_of_vectors(torque)
    if lane == 0:
        rotation_out.angle[w * rotation_out.count + b] = rotation_out.gain[w * rotation_out.count + b] * torque


@wp.func
def rotated_by(t: wp.vec3d, r: _vec, farthest: wp.float64):
    """Displacement of the arm r by the rotation vector t, whose angle is limited to `farthest`."""
    angle = wp.length(t)
    y = wp.vec3d()
    if angle > wp.float64(0.0):
        n = t / angle
        a = wp.min(angle, farthest)
        across = wp.cross(n, wp.vec3d(r))
        y = wp.sin(a) * across + (wp.float64(1.0) - wp.cos(a)) * wp.cross(n, across)
    return y


@wp.kernel(enable_backward=False)
def spin_kernel(
    # model
    islands: Islands,
    # work
    rotation: RotationArrays,
    flight: wp.array[real],
    # out
    u_out: wp.array[NODE],
):
    """Rotate bodies rigidly in a shortened free flight: along straight paths of their nodes they would swell."""
    w, i = wp.tid()
    if rotation.body[i] >= 0:
        part = flight[w * islands.count + islands.component[i]]
        t = wp.float64(part) * rotation.angle[w * rotation.count + rotation.body[i]]
        r = rotation.arm[w * rotation.nodes + i]
        k = w * rotation.stride + i
        u_out[k] = u_out[k] + packed(_vec(rotated_by(t, r, wp.float64(1e9)) - wp.cross(t, wp.vec3d(r))))


@wp.kernel(enable_backward=False)
def follow_kernel(
    # state
    rotation: RotationArrays,
    linear: int,
    active: wp.array[int],
    # out
    f_out: wp.array[NODE],
):
    """Add the rotations of bodies to a correction, to first order for a `linear` problem."""
    w, i = wp.tid()
    if active[w] == 0 or rotation.body[i] < 0:
        return
    t = rotation.angle[w * rotation.count + rotation.body[i]]
    r = rotation.arm[w * rotation.nodes + i]
    y = wp.cross(t, wp.vec3d(r))
    if linear == 0:
        y = rotated_by(t, r, _FARTHEST)
    f_out[w * rotation.stride + i] = f_out[w * rotation.stride + i] + packed(_vec(y))
