"""Turning of bodies that move freely, which the matrix of the global step resists and their energy does not.

A couples nodes and not coordinates. It holds a body that turns as firmly as one that is sheared, where in truth its
inertia alone does, a thousandth of that for stiff matter in long steps, and the iteration takes as many corrections.
With the rotations Z about the centre of mass of a body as it is now, B is A where displacements have no part in Z and
the inertia E_H in Z:

    B^-1 = A^-1 + Z G Z^T,   G = E_H^-1 - E_A^-1,   E_H = Z^T M Z / h^2,   E_A = Z^T A Z

(two-level preconditioning by deflation: Tang et al. 2009, "Comparison of two-level preconditioners derived from
deflation, domain decomposition and multigrid methods"). Elastic forces have no torque about any point, so that they
cannot turn a body, whatever it looks like on the way. Bodies are whatever elements, cables and attachments hold
together; those that are fixed somewhere or have bones do not turn freely.
"""

import numpy as np
import warp as wp
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import NodeArrays, packed

__all__ = [
    "TurningArrays",
    "body_of",
    "follow_kernel",
    "free_bodies",
    "gain_kernel",
    "place_kernel",
    "spin_kernel",
    "torque_kernel",
]

_vec = vector(3)
_FARTHEST = wp.constant(wp.float64(0.5))  # that a body turns in one correction [rad]: beyond, forces are too different


@wp.struct
class TurningArrays:
    """Bodies that turn freely; what differs from world to world has all worlds in one row.

    count: Bodies of one world.
    nodes: Nodes of one world.
    stride: Entries of a point of the iteration of one world.
    body: Body of a node, -1 for none and for vertices of shells, which come last, shape (n_points,).
    first: First member of a body, one more for the end, shape (count + 1,).
    member: Nodes of the bodies, one after the other.
    row: First entry of a row of A, one more for the end, shape (nodes + 1,).
    column: Column of an entry.
    value: Its value [N/m].
    centre: Centres of mass [m], shape (worlds * count,).
    arm: Where nodes are from there [m], shape (worlds * nodes,).
    gain: G [1/(N m)], shape (worlds * count,).
    turn: Rotation in a correction [rad], shape (worlds * count,).
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
    centre: wp.array[wp.vec3d]
    arm: wp.array[_vec]
    gain: wp.array[wp.mat33d]
    turn: wp.array[wp.vec3d]


def free_bodies(pattern: csr_matrix, solid: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, int]:
    """Number of the freely turning body of each node, -1 for none, shape (n_nodes,), and how many there are.

    Args:
        pattern: Which nodes share an element, shape (n_nodes, n_nodes).
        solid: Which nodes have a tetrahedron or a triangle, without which a body may have no inertia about its axis,
            shape (n_nodes,), bool.
        held: Which nodes are fixed or bound to bones, likewise.
    """
    count, label = connected_components(pattern, directed=False)
    free = (np.bincount(label[solid], minlength=count) > 0) & (np.bincount(label[held], minlength=count) == 0)
    number = np.where(free, np.cumsum(free) - 1, -1)
    return number[label], int(free.sum())


@wp.func
def body_of(turning: TurningArrays, node: int):
    """Body of a node of a contact that turns freely, -1 for none."""
    body = int(-1)
    if node >= 0:
        body = turning.body[node]
    return body


@wp.func
def about(S: wp.mat33d):
    """tr(S) I - S, the inertia of second moments."""
    return wp.trace(S) * wp.identity(n=3, dtype=wp.float64) - S


@wp.kernel(enable_backward=False)
def place_kernel(
    mass: wp.array[real], active: wp.array[int], x: wp.array[_vec], z: wp.array[NODE], turning_out: TurningArrays
):  # fmt: skip
    """Centres of mass at the point `z`, and arms of nodes."""
    w, b, lane = wp.tid()
    if active[w] == 0:
        return
    n = w * turning_out.nodes
    total = wp.float64(0.0)
    moment = wp.vec3d()
    for k in range(turning_out.first[b] + lane, turning_out.first[b + 1], wp.block_dim()):
        i = turning_out.member[k]
        m = wp.float64(mass[n + i])
        total += m
        moment += m * (wp.vec3d(x[n + i]) + wp.vec3d(at(z, w * turning_out.stride + i)))
    total = wp.tile_sum(wp.tile(total))[0]
    centre = wp.tile_sum(wp.tile(moment, preserve_type=True))[0] / total
    turning_out.centre[w * turning_out.count + b] = centre
    for k in range(turning_out.first[b] + lane, turning_out.first[b + 1], wp.block_dim()):
        i = turning_out.member[k]
        y = wp.vec3d(x[n + i]) + wp.vec3d(at(z, w * turning_out.stride + i))
        turning_out.arm[n + i] = _vec(y - centre)


@wp.kernel(enable_backward=False)
def gain_kernel(
    h: real, nodes: NodeArrays, scaling: wp.array[real], v: wp.array[_vec], turning_out: TurningArrays
):  # fmt: skip
    """G of bodies where they are, and the rotation that is in their velocities, I^-1 h sum m r x v.

    Steady forces f resist turning, too, by sum |f| |r| at the most; that is added to E_H and E_A.
    """
    w, b, lane = wp.tid()
    inertia = wp.mat33d()
    resisted = wp.mat33d()
    spin = wp.vec3d()
    held = wp.float64(0.0)
    n = w * turning_out.nodes
    for k in range(turning_out.first[b] + lane, turning_out.first[b + 1], wp.block_dim()):
        i = turning_out.member[k]
        r = wp.vec3d(turning_out.arm[n + i])
        m = wp.float64(nodes.mass[n + i])
        held += wp.length(wp.vec3d(nodes.load[n + i])) * wp.length(r)
        inertia += m * wp.outer(r, r)
        spin += m * wp.cross(r, wp.vec3d(v[n + i]))
        for p in range(turning_out.row[i], turning_out.row[i + 1]):
            j = turning_out.column[p]
            resisted += wp.float64(turning_out.value[p]) * wp.outer(r, wp.vec3d(turning_out.arm[n + j]))
    inertia = wp.tile_sum(wp.tile(inertia, preserve_type=True))[0]
    resisted = wp.tile_sum(wp.tile(resisted, preserve_type=True))[0]
    spin = wp.tile_sum(wp.tile(spin, preserve_type=True))[0]
    held = wp.tile_sum(wp.tile(held))[0]
    if lane > 0:
        return
    I = about(inertia)
    K = held * wp.identity(n=3, dtype=wp.float64)
    E_H = K + I / wp.float64(h * h)
    E_A = K + wp.float64(scaling[w]) * about(wp.float64(0.5) * (resisted + wp.transpose(resisted)))
    turning_out.gain[w * turning_out.count + b] = wp.inverse(E_H) - wp.inverse(E_A)
    turning_out.turn[w * turning_out.count + b] = wp.float64(h) * (wp.inverse(I) * spin)


@wp.kernel(enable_backward=False)
def torque_kernel(active: wp.array[int], r: wp.array[NODE], turning_out: TurningArrays):
    """Rotations G Z^T r of a correction."""
    w, b, lane = wp.tid()
    if active[w] == 0:
        return
    torque = wp.vec3d()
    for k in range(turning_out.first[b] + lane, turning_out.first[b + 1], wp.block_dim()):
        i = turning_out.member[k]
        force = wp.vec3d(at(r, w * turning_out.stride + i))
        torque += wp.cross(wp.vec3d(turning_out.arm[w * turning_out.nodes + i]), force)
    torque = wp.tile_sum(wp.tile(torque, preserve_type=True))[0]
    if lane == 0:
        turning_out.turn[w * turning_out.count + b] = turning_out.gain[w * turning_out.count + b] * torque


@wp.func
def turned_by(t: wp.vec3d, r: _vec, farthest: wp.float64):
    """Where a rotation takes an arm, less the arm; it ends at the angle `farthest`."""
    angle = wp.length(t)
    y = wp.vec3d()
    if angle > wp.float64(0.0):
        n = t / angle
        a = wp.min(angle, farthest)
        across = wp.cross(n, wp.vec3d(r))
        y = wp.sin(a) * across + (wp.float64(1.0) - wp.cos(a)) * wp.cross(n, across)
    return y


@wp.kernel(enable_backward=False)
def spin_kernel(turning: TurningArrays, flight: wp.array[real], u_out: wp.array[NODE]):
    """Let bodies turn in part of a free flight as if they were rigid: straight ways would make them swell."""
    w, i = wp.tid()
    if turning.body[i] >= 0:
        t = wp.float64(flight[w]) * turning.turn[w * turning.count + turning.body[i]]
        r = turning.arm[w * turning.nodes + i]
        k = w * turning.stride + i
        u_out[k] = u_out[k] + packed(_vec(turned_by(t, r, wp.float64(1e9)) - wp.cross(t, wp.vec3d(r))))


@wp.kernel(enable_backward=False)
def follow_kernel(turning: TurningArrays, linear: int, active: wp.array[int], f_out: wp.array[NODE]):
    """Add the rotations of bodies to a correction, to first order for a `linear` problem."""
    w, i = wp.tid()
    if active[w] == 0 or turning.body[i] < 0:
        return
    t = turning.turn[w * turning.count + turning.body[i]]
    r = turning.arm[w * turning.nodes + i]
    y = wp.cross(t, wp.vec3d(r))
    if linear == 0:
        y = turned_by(t, r, _FARTHEST)
    f_out[w * turning.stride + i] = f_out[w * turning.stride + i] + packed(_vec(y))
