"""Guides: lines or planes to which constraints hold nodes, whose displacements are orthogonal to the guide's normals.

With a row of N for each normal of each guided node, the matrix A of the global step and a right-hand side r, the
minimum of 1/2 f.A f - r.f under N f = 0 is at

    f = A^-1 r - A^-1 N^T S^-1 N A^-1 r,   S = N A^-1 N^T.

A couples nodes but not their coordinates, so that S_ij = n_i . n_j (A^-1)_ij for any directions. S is inverted once;
the constraints cost a second solve with A in each iteration. Forces of guides have no effect on f, so that neither the
residual nor the contact law needs these forces. Corrections are projected once more, to remove rounding errors.

If constraints move, N u = N c with the displacement c of the frame; the initial guess satisfies this equation, and
corrections are projected as before. N turns with the frame, but S keeps its value at the start: it is exact if all
guides turn together, and otherwise costs iterations. With the residual r of forces, the adjoint a and the gradient t
with respect to u at a guided node, the gradients with respect to a normal n of it and to c are

    n* = -(n . r) (a - p) + (n . p) r - (n . t) (u - c),   c* = sum n (n . t),

where p is the gradient with respect to the force sum n (n . r) of the node on its guide.
"""

import numpy as np
import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_along
from warpbots.numerics import NODE, launch, launch_own_adjoint, real, vector
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.sparse_cholesky import Factor, solve

__all__ = ["GuideArrays", "Guides"]

_vec = vector(3)


@wp.struct
class GuideArrays:
    """Guided nodes; arrays that differ between worlds hold all worlds in one row.

    count: Number of normals of all guided nodes.
    stride: Entries of an iterate of one world.
    node: The guided nodes, shape (guided,).
    first: First normal of each guided node, and the end of the last node, shape (guided + 1,).
    owner: Index of the guided node of each normal, shape (count,).
    frame: Frame that moves each guided node, -1 for none, shape (guided,).
    start: Orthonormal normals of each node at the start, shape (count,).
    normal: Orthonormal normals of each node at the end of the step, shape (worlds * count,).
    way: Displacement c of the frame in the step at each node [m], shape (worlds * guided,).
    pushed: Residual of forces along each normal at the end of the step, for the adjoint [N], shape (worlds * count,).
    inverse: S^-1 [N/m], shape (count, count).
    gap: N A^-1 r [m], shape (worlds * count,).
    force: Forces of the guides on the guided nodes [N], 0 for other nodes, shape (worlds * stride,).
    moved: Displacements by the forces of the guides [m], shape (worlds * stride,).
    """

    count: int
    stride: int
    node: wp.array[int]
    first: wp.array[int]
    owner: wp.array[int]
    frame: wp.array[int]
    start: wp.array[_vec]
    normal: wp.array[_vec]
    way: wp.array[_vec]
    pushed: wp.array[real]
    inverse: wp.array2d[real]
    gap: wp.array[real]
    force: wp.array[NODE]
    moved: wp.array[NODE]


@wp.kernel(enable_backward=False)
def project_kernel(
    # model
    guides: GuideArrays,
    # out
    f_out: wp.array[NODE],
):
    """Replace f of guided nodes by f - n (n . f), for all normals n of the node."""
    w, g = wp.tid()
    k = w * guides.stride + guides.node[g]
    f = at(f_out, k)
    for i in range(guides.first[g], guides.first[g + 1]):
        n = guides.normal[w * guides.count + i]
        f -= wp.dot(n, f) * n
    f_out[k] = packed(f)


@wp.kernel(enable_backward=False)
def follow_kernel(
    # model
    guides: GuideArrays,
    # out
    u_out: wp.array[NODE],
):
    """Replace u of guided nodes by u - n (n . (u - c)), for all normals n of the node."""
    w, g = wp.tid()
    k = w * guides.stride + guides.node[g]
    u = at(u_out, k)
    for i in range(guides.first[g], guides.first[g + 1]):
        n = guides.normal[w * guides.count + i]
        u -= wp.dot(n, u - guides.way[w * guides.node.shape[0] + g]) * n
    u_out[k] = packed(u)


@wp.kernel
def carry_guides_kernel(
    # model
    nodes: int,
    # step
    h: wp.float64,
    # state
    x: wp.array[_vec],
    # work
    frames: MovingPoses,
    # out
    guides_out: GuideArrays,
):
    """Write the normals n = R n_0 at the end of the step, and the displacement c of the point that starts at x."""
    w, g = wp.tid()
    f = guides_out.frame[g]
    if f >= 0:
        here = wp.vec3d(x[w * nodes + guides_out.node[g]])
        c = carried_along(frames, w, f, h, here) - here
        guides_out.way[w * guides_out.node.shape[0] + g] = _vec(c)
        for i in range(guides_out.first[g], guides_out.first[g + 1]):
            guides_out.normal[w * guides_out.count + i] = _vec(frames.rotation[w, f] @ wp.vec3d(guides_out.start[i]))


@wp.kernel(enable_backward=False)
def pushed_kernel(
    # work
    residual: wp.array[NODE],
    # out
    guides_out: GuideArrays,
):
    """n . r."""
    w, i = wp.tid()
    j = w * guides_out.count + i
    r = at(residual, w * guides_out.stride + guides_out.node[guides_out.owner[i]])
    guides_out.pushed[j] = wp.dot(guides_out.normal[j], r)


@wp.kernel(enable_backward=False)
def adj_guides_kernel(
    # model
    guides: GuideArrays,
    # state
    u: wp.array[NODE],
    seed: wp.array[NODE],
    u_adj: wp.array[NODE],
    a: wp.array[NODE],
    force_adj: wp.array[NODE],
    # out
    normal_adj_out: wp.array[_vec],
    way_adj_out: wp.array[_vec],
):
    """Write the gradients with respect to normals and to displacements of frames."""
    w, g = wp.tid()
    m = w * guides.node.shape[0] + g
    k = w * guides.stride + guides.node[g]
    t = at(seed, k) + at(u_adj, k)
    p = at(force_adj, k)
    total = _vec()
    force = _vec()
    for i in range(guides.first[g], guides.first[g + 1]):
        force += guides.pushed[w * guides.count + i] * guides.normal[w * guides.count + i]
    for i in range(guides.first[g], guides.first[g + 1]):
        j = w * guides.count + i
        along = wp.dot(guides.normal[j], t)
        total += along * guides.normal[j]
        by_force = wp.dot(guides.normal[j], p) * force - guides.pushed[j] * (at(a, k) - p)
        normal_adj_out[j] = by_force - along * (at(u, k) - guides.way[m])
    way_adj_out[m] = total


@wp.kernel(enable_backward=False)
def gap_kernel(
    # state
    f: wp.array[NODE],
    # out
    guides_out: GuideArrays,
):
    """N f."""
    w, i = wp.tid()
    k = w * guides_out.stride + guides_out.node[guides_out.owner[i]]
    guides_out.gap[w * guides_out.count + i] = wp.dot(guides_out.normal[w * guides_out.count + i], at(f, k))


@wp.kernel(enable_backward=False)
def force_kernel(
    # work
    scaling: wp.array[real],
    # out
    guides_out: GuideArrays,
):
    """s N^T S^-1 N f, for a matrix s A."""
    w, g = wp.tid()
    total = _vec()
    for i in range(guides_out.first[g], guides_out.first[g + 1]):
        a = real(0.0)
        for j in range(guides_out.count):
            a += guides_out.inverse[i, j] * guides_out.gap[w * guides_out.count + j]
        total += a * guides_out.normal[w * guides_out.count + i]
    guides_out.force[w * guides_out.stride + guides_out.node[g]] = packed(scaling[w] * total)


@wp.kernel(enable_backward=False)
def subtract_kernel(
    # model
    guides: GuideArrays,
    # state
    active: wp.array[int],
    # out
    f_out: wp.array[NODE],
):
    """f -= A^-1 N^T S^-1 N f."""
    w, i = wp.tid()
    if active[w] == 1:
        k = w * guides.stride + i
        f_out[k] = f_out[k] - guides.moved[k]


class Guides:
    """The guides of a scene under the matrix of the global step for steps of one length.

    Attributes:
        arrays: The guided nodes, as a Warp struct.
        moves: Whether a frame moves guided nodes.
    """

    def __init__(
        self, factor: Factor, normals: dict[int, np.ndarray], frame: np.ndarray, worlds: int, stride: int,
        device: wp.Device,
    ):  # fmt: skip
        """Invert S.

        Args:
            factor: The factored matrix.
            normals: Orthonormal normals of each guided node, each of shape (1 or 2, 3).
            frame: Index of the frame that moves each guided node, -1 for none, shape (guided,).
            worlds: Number of worlds.
            stride: Entries of an iterate of one world.
            device: Device of the arrays.
        """
        self._factor, self._worlds, self._device = factor, worlds, device
        node, normal = np.array(list(normals)), np.concatenate(list(normals.values()))
        owner = np.repeat(np.arange(len(node)), [len(n) for n in normals.values()])
        rows = _rows(factor)[node]
        unit = np.zeros((len(factor.arrays.node), len(node)))
        unit[rows, np.arange(len(node))] = 1.0
        columns = factor.lu.solve(unit)[rows][owner][:, owner]
        self.arrays = arrays = GuideArrays()
        arrays.count, arrays.stride = len(owner), stride
        for name, values, dtype in (
            ("node", node, int),
            ("first", np.searchsorted(owner, np.arange(len(node) + 1)), int),
            ("owner", owner, int),
            ("frame", frame, int),
            ("start", normal, _vec),
            ("inverse", np.linalg.inv(columns * (normal @ normal.T)), real),
        ):
            setattr(arrays, name, wp.array(values, dtype=dtype, device=device))
        self.moves = bool((frame >= 0).any())
        arrays.normal = wp.array(np.tile(normal, (worlds, 1)), dtype=_vec, device=device, requires_grad=self.moves)
        arrays.way = wp.zeros(worlds * len(node), dtype=_vec, device=device, requires_grad=self.moves)
        arrays.pushed = wp.zeros(worlds * len(owner), dtype=real, device=device)
        arrays.gap = wp.zeros(worlds * len(owner), dtype=real, device=device)
        arrays.force, arrays.moved = (wp.zeros(worlds * stride, dtype=NODE, device=device) for _ in range(2))

    def project(self, f: wp.array) -> None:
        """Remove the components along the normals from displacements, or forces, of guided nodes."""
        launch(project_kernel, (self._worlds, self.arrays.node.size), [self.arrays], [f], self._device)

    def follow(self, u: wp.array) -> None:
        """Move guided nodes along the normals by the displacement of their frames."""
        launch(follow_kernel, (self._worlds, self.arrays.node.size), [self.arrays], [u], self._device)

    def _carry(self, nodes: int, h: float, x: wp.array, frames: MovingPoses) -> tuple:
        inputs = [nodes, wp.float64(h), x, frames, self.arrays]
        return carry_guides_kernel, (self._worlds, self.arrays.node.size), inputs

    def carry(self, nodes: int, h: float, x: wp.array, frames: MovingPoses) -> None:
        """Write the normals and the displacements of the frames in a step.

        Args:
            nodes: Nodes of one world.
            h: Length of the step [s].
            x: Nodes at the start of the step [m], shape (worlds * nodes,).
            frames: Poses of the frames at the end of the step.
        """
        launch(*self._carry(nodes, h, x, frames), [], self._device)

    def push(self, residual: wp.array) -> None:
        """Keep the residual of forces along the normals at the end of a step, for `adjoint`."""
        launch(pushed_kernel, (self._worlds, self.arrays.count), [residual], [self.arrays], self._device)

    def adjoint(
        self, nodes: int, h: float, x: wp.array, frames: MovingPoses, u: wp.array, seed: wp.array, a: wp.array,
        force_adj: wp.array,
    ) -> None:  # fmt: skip
        """Adjoint of `carry`: add to the gradients of `x` and `frames`.

        Args:
            nodes: Nodes of one world.
            h: Length of the step [s].
            x: Nodes at the start of the step [m], shape (worlds * nodes,).
            frames: Poses of the frames at the end of the step.
            u: Displacements, and their gradients through the residual, shape (worlds * stride,).
            seed: Gradients of the loss with respect to displacements, shape (worlds * stride,).
            a: Adjoint variables, shape (worlds * stride,).
            force_adj: Gradients of the loss with respect to forces on guides, shape (worlds * stride,).
        """
        arrays = self.arrays
        each, outputs = (self._worlds, arrays.node.size), [arrays.normal.grad, arrays.way.grad]
        launch(adj_guides_kernel, each, [arrays, u, seed, u.grad, a, force_adj], outputs, self._device)
        launch_own_adjoint(*self._carry(nodes, h, x, frames), self._device)

    def hold(self, active: wp.array, scaling: wp.array, f: wp.array, nodes: int) -> None:
        """Turn f = A^-1 r into the solution under the constraints.

        Args:
            active: Worlds with a 1 are solved, shape (worlds,).
            scaling: Factor of the matrix in every world, shape (worlds,).
            f: Displacements, shape (worlds * stride,); changed.
            nodes: Nodes of one world.
        """
        arrays, device = self.arrays, self._device
        launch(gap_kernel, (self._worlds, arrays.count), [f], [arrays], device)
        launch(force_kernel, (self._worlds, arrays.node.size), [scaling], [arrays], device)
        solve(self._factor, scaling, active, arrays.force, arrays.moved, device)
        launch(subtract_kernel, (self._worlds, nodes), [arrays, active], [f], device)
        self.project(f)


def _rows(factor: Factor) -> np.ndarray:
    """Row of each node in the matrix of free nodes, before the permutation of the factorisation."""
    return np.where(factor.free, np.cumsum(factor.free) - 1, -1)
