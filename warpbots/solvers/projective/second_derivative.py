"""The second derivative H of Phi, which a step minimises, at a point: its products and its inverse."""

import warp as wp

from warpbots.numerics import NODE, launch
from warpbots.numerics.simd import fetch
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.iterate.minres import minres
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["SecondDerivative"]


class SecondDerivative:
    """H = -db/du of the residual b(u) at nodes, without contact; symmetric without a fluid and bones."""

    def __init__(self, model: ProjectiveModel, global_step: GlobalStep, point: Point):
        """Nothing runs yet.

        Args:
            model: The model.
            global_step: Of the same step.
            point: Where it is taken.
        """
        self._model, self._global_step, self._point = model, global_step, point

    def evaluate(self) -> None:
        """Evaluate its blocks, which `residual` reads."""
        model, topology, block = self._model, self._model.topology, self._model.workspace.block
        launch(clear_kernel, block.size, [], [block], model.device)
        for kind, elements in model.elements:
            for kernel, dim, inputs in kind.stiffness(elements, model, self._point):
                launch(kernel, dim, inputs, [], model.device)
        dim, sums = (model.worlds, topology.pairs), model.workspace.column
        launch(sum_kernel, dim, [*topology.corner_pairs, block], [sums], model.device)

    def residual(self, active: wp.array, g: wp.array, a: wp.array, out: wp.array) -> None:
        """Write g - H a."""
        model, topology, point = self._model, self._model.topology, self._point
        inputs = [model.nodes, topology.row, topology.neighbor, point.h, active, g, a, model.workspace.column]
        launch(nodes.product_kernel, (model.worlds, topology.sizes.nodes), inputs, [out], model.device)
        self._global_step.gas.pull(active, a, out)
        for kind, elements in model.elements:
            if kind.product is not None:
                for kernel, dim, inputs in kind.product(elements, model, point, active, a, out):
                    launch(kernel, dim, inputs, [], model.device)
        self._global_step.guide(out)

    def precondition(self, active: wp.array, r: wp.array, out: wp.array) -> None:
        """Write A^-1 r, with the matrix A of the global step."""
        self._global_step.solve(active, r, out, linear=True)

    @property
    def symmetric(self) -> bool:
        """Whether `solve` may be used."""
        return self._model.skeleton is None and self._model.scene.fluid is None

    def solve(
        self, where: wp.array, g: wp.array, a: wp.array, tolerance: float, limit: int, evaluated: bool = False
    ) -> None:
        """Solve H a = g in those worlds in which `where` is 1 and no contact is active; see `minres`.

        Args:
            where: 1 for a world to solve in, shape (worlds,).
            g: Right-hand side, shape (worlds * stride,).
            a: The solution at nodes, shape (worlds * stride,).
            tolerance: Norm of the residual in A^-1, relative to that of g, at which a world has converged.
            limit: Number of iterations after which a world has failed.
            evaluated: Whether `evaluate` has been called; otherwise it is, if there is such a world.
        """
        krylov, listed = self._model.workspace.krylov, self._model.workspace.contact.contacts.listed
        prepare = (lambda: None) if evaluated else self.evaluate
        minres(krylov, where, listed, g, a, prepare, self.residual, self.precondition, tolerance, limit)


@wp.kernel(enable_backward=False)
def clear_kernel(
    # out
    block_out: wp.array[NODE],
):
    """Zero, by a kernel: a capture does not record fills in branches."""
    block_out[wp.tid()] = NODE()


@wp.kernel(enable_backward=False)
def sum_kernel(
    # model
    first: wp.array[int],
    corner_pair: wp.array[int],
    # work
    block: wp.array[NODE],
    # out
    column_out: wp.array[NODE],
):
    """Blocks of pairs of nodes from those of elements, added in one order whatever that of the threads is."""
    w, p = wp.tid()
    a = NODE()
    b = NODE()
    c = NODE()
    for k in range(first[p], first[p + 1]):
        n = 3 * (w * corner_pair.shape[0] + corner_pair[k])
        a += fetch(block, n)
        b += fetch(block, n + 1)
        c += fetch(block, n + 2)
    n = 3 * (w * (first.shape[0] - 1) + p)
    column_out[n] = a
    column_out[n + 1] = b
    column_out[n + 2] = c
