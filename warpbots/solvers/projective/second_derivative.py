"""The second derivative H of Phi, which a step minimises, at a point: products with H and with its inverse."""

from collections.abc import Callable

import warp as wp

from warpbots.actuation_laws import without_energy
from warpbots.numerics import NODE, if_then, launch
from warpbots.numerics.simd import fetch
from warpbots.scene import Scene
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.iterate import coupled_cholesky, unsymmetric
from warpbots.solvers.projective.iterate.anderson import begin
from warpbots.solvers.projective.iterate.minres import minres
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["SecondDerivative", "is_symmetric"]

_MOST_WITH_FACTOR = 100
"""Iterations after which the factor of the symmetric part has failed; where it helps, half as many are enough."""


def is_symmetric(scene: Scene) -> bool:
    """Whether the second derivative of a scene is symmetric.

    It is if the scene has neither bones nor a fluid, and the stresses of all actuators derive from energies.
    """
    return not scene.rigid and scene.fluid is None and not without_energy(scene)


class SecondDerivative:
    """The second derivative H = -db/du, with the residual b(u) at nodes without contact forces."""

    def __init__(self, model: ProjectiveModel, global_step: GlobalStep, point: Point):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            global_step: The global step of the same step.
            point: The point at which the derivative is taken.
        """
        self._model, self._global_step, self._point = model, global_step, point
        self._factor = None if self.iterative else model.workspace.coupled
        self._islands, self._iteration = model.matrices.islands, global_step.iteration

    def evaluate(self) -> None:
        """Evaluate the blocks of H, which `residual` reads."""
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
        """Whether there are islands for which `solve` may be used."""
        return bool(self._model.topology.components.symmetric.any())

    @property
    def iterative(self) -> bool:
        """Whether `solve` never factors H."""
        return self._model.matrices.linear_solver == "iterative"

    def solve(
        self, where: wp.array, g: wp.array, a: wp.array, tolerance: wp.array, limit: int, evaluated: bool = False
    ) -> None:
        """Solve H a = g in those islands in which `where` is 1 and no contact is active; see `minres`.

        Args:
            where: 1 for an island to solve in, shape (worlds * components,).
            g: Right-hand side, shape (worlds * stride,).
            a: The solution at nodes, shape (worlds * stride,).
            tolerance: Norm of the residual relative to the norm of g at which an island has converged, in the norm of
                A^-1, or of H^-1 if H is factored, shape (worlds * components,).
            limit: Number of iterations after which an island has failed.
            evaluated: Whether `evaluate` has been called; if not, it is called when there is such an island.
        """
        how = self._model.matrices.linear_solver
        krylov, listed = self._model.workspace.krylov, self._model.workspace.contact.contacts.listed
        prepare = (lambda: None) if evaluated else self.evaluate

        def iterate(limit: int) -> None:
            minres(
                krylov, self._islands, where, listed, g, a, prepare, self.residual, self.precondition, tolerance, limit
            )

        def factor(where: wp.array, prepare: Callable[[], None]) -> None:
            def prepare_factor() -> None:
                prepare()
                self._factorise()

            solve = self._precondition_coupled
            minres(krylov, self._islands, where, listed, g, a, prepare_factor, self.residual, solve, tolerance, limit)

        if how == "iterative":
            iterate(limit)
        elif how == "direct":
            factor(where, prepare)
        else:
            iterate(min(self._factor.patience, limit))
            self._rest(where, lambda rest: factor(rest, lambda: None))

    def solve_unsymmetric(self, iterate: Callable[[Callable, int], None], limit: int) -> None:
        """Solve H a = g with an unsymmetric H by an iteration with A, which a factor may interrupt.

        Args:
            iterate: Function of a preconditioner and a limit that iterates where `begin` has begun.
            limit: Number of iterations after which an island has failed.
        """
        model, factor, it = self._model, self._factor, self._iteration
        listed, islands, device = model.workspace.contact.contacts.listed, self._islands, model.device
        launch(unsymmetric.untouched_kernel, model.worlds, [listed], [factor], device)

        def begin_again(where: wp.array) -> None:
            begin(it, where)
            launch(unsymmetric.begin_again_kernel, model.worlds, [islands], [factor, it.progress], device)
            launch(unsymmetric.clear_kernel, (model.worlds, it.count), [islands, factor], [it.history.z], device)

        def iterate_with_factor() -> None:
            begin_again(factor.factored)
            column, part = model.workspace.column, model.workspace.symmetric_part
            dim, inputs = (model.worlds, model.topology.pairs), [model.topology.mirror, column]
            launch(unsymmetric.symmetrise_kernel, dim, inputs, [part], device)
            mass, h = model.nodes.mass, self._point.h
            coupled_cholesky.factorise(factor, mass, h, part, factor.factored, device, definite=False)
            iterate(self._precondition_coupled, min(_MOST_WITH_FACTOR, limit))

        def iterate_without_factor() -> None:
            begin_again(model.workspace.everywhere)
            iterate(self.precondition, limit)

        begin(it, factor.factored)
        iterate(self.precondition, min(factor.patience, limit))
        for go_on in (iterate_with_factor, iterate_without_factor):
            launch(unsymmetric.set_aside_kernel, it.units, [islands, it.progress], [factor], device)
            if_then(factor.any, go_on)

    def _rest(self, where: wp.array, solve: Callable[[wp.array], None]) -> None:
        """Call `solve` with the islands of `where` that MINRES has left unsolved, if there are any."""
        factor, krylov, each, device = (
            self._factor,
            self._model.workspace.krylov,
            where.size,
            self._model.device,
        )
        launch(coupled_cholesky.leave_kernel, each, [krylov.arrays, where], [factor], device)

        def solve_rest() -> None:
            solve(factor.unsolved)
            launch(coupled_cholesky.join_kernel, each, [], [krylov.arrays, factor], device)

        if_then(factor.any, solve_rest)

    def _factorise(self) -> None:
        """Factor H in the worlds that solve with it."""
        model = self._model
        active, column = model.workspace.krylov.arrays.running, model.workspace.column
        coupled_cholesky.factorise(self._factor, model.nodes.mass, self._point.h, column, active, model.device)

    def _precondition_coupled(self, active: wp.array, r: wp.array, out: wp.array) -> None:
        """Write H^-1 r, or A^-1 r in worlds in which H is not positive definite."""
        factor, device = self._factor, self._model.device
        launch(coupled_cholesky.part_kernel, self._model.worlds, [active], [factor], device)
        self.precondition(factor.others, r, out)
        coupled_cholesky.solve(factor, active, r, out, device)


@wp.kernel(enable_backward=False)
def clear_kernel(
    # out
    block_out: wp.array[NODE],
):
    """Set all blocks to zero; done by a kernel, as a graph capture does not record fills in branches."""
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
    """Sum the blocks of elements to blocks of pairs of nodes, in an order that does not depend on threads."""
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
