"""Gas in cavities in a global step and in an adjoint: a change of volume at one wall acts on all walls.

A given amount of gas adds c_k V_k' V_k'^T to the second derivative of the energy, with c_k = -dp_k/dV_k > 0. This term
couples all nodes of the walls, not only nodes that share an element. Without this term, the matrix A of the global step
is a poor approximation for soft walls around a stiff gas. The gas is therefore part of the global step, by Woodbury's
formula for the columns V_k' of V' and the diagonal matrix C of all c_k:

    (A + V' C V'^T)^-1 = A^-1 - W Q W^T,   W = A^-1 V',   Q = (C^-1 + V'^T W)^-1,

evaluated at the start of a step, or, for the adjoint, at its end. Rotations of a body do not change volumes.
"""

from collections.abc import Callable

import warp as wp

from warpbots.numerics import launch, launch_lanes
from warpbots.solvers.projective.elements import gas_stiffness
from warpbots.solvers.projective.elements.cavities import CAVITIES, pressure_launches
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.iterate.anderson_arrays import LANES
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["Gas"]


class Gas:
    """The gas of all worlds in a step or its adjoint; without gas nothing runs."""

    def __init__(self, model: ProjectiveModel, solve: Callable[[wp.array, wp.array, wp.array], None]):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            solve: Function of (active, b, x) that writes x = A^-1 b, with A^-1 symmetric.
        """
        self._model, self._solve, self._device = model, solve, model.device
        self._count = int((model.mesh.cavity_gas_ratio > 0.0).sum())

    def measure(self, point: Point) -> None:
        """Evaluate V', C, W and Q at a point."""
        if not self._count:
            return
        model, gas, count = self._model, self._model.workspace.gas, self._count
        cavities = next(elements for kind, elements in model.elements if kind is CAVITIES)
        for kernel, dim, inputs in pressure_launches(cavities, model.worlds, point):
            launch(kernel, dim, inputs, [], self._device)
        square = model.worlds, count, count
        launch(gas_stiffness.slope_kernel, square, [cavities, point.control], [gas], self._device)
        inputs = [model.nodes, cavities, point.x, point.u]
        each = model.worlds, count, model.topology.sizes.nodes
        launch(gas_stiffness.gradient_kernel, each, inputs, [gas], self._device)
        size = model.worlds * model.topology.sizes.stride  # guides expect the layout of an iterate
        for first in range(0, count * size, size):
            b, x = gas.gradient[first : first + size], gas.moved[first : first + size]
            self._solve(model.workspace.everywhere, b, x)
        launch_lanes(gas_stiffness.gram_kernel, square, LANES, [model.nodes], [gas], self._device)
        launch(gas_stiffness.invert_kernel, model.worlds, [], [gas], self._device)

    def correct(self, active: wp.array, r: wp.array, f: wp.array) -> None:
        """Turn f = A^-1 r into the solution for the matrix with gas: subtract W Q W^T r."""
        if self._count:
            gas = self._model.workspace.gas
            self._subtract(active, gas.moved, gas.inverse, r, f)

    def pull(self, active: wp.array, a: wp.array, residual: wp.array) -> None:
        """Subtract V' C V'^T a, the product of the second derivative of the gas with `a`, from an adjoint residual."""
        if self._count:
            gas = self._model.workspace.gas
            self._subtract(active, gas.gradient, gas.slope, a, residual)

    def _subtract(self, active: wp.array, vectors: wp.array, middle: wp.array, b: wp.array, out: wp.array) -> None:
        """Subtract V M V^T b from `out`, for the nodal vectors V (`vectors`) and a small matrix M (`middle`)."""
        model, gas, each = self._model, self._model.workspace.gas, (self._model.worlds, self._count)
        inputs = [model.nodes, gas, active, vectors, b]
        launch_lanes(gas_stiffness.project_kernel, each, LANES, inputs, [gas], self._device)
        launch(gas_stiffness.weigh_kernel, each, [gas, active, middle], [gas], self._device)
        inputs = [model.nodes, gas, active, vectors]
        launch(gas_stiffness.subtract_kernel, (model.worlds, model.topology.sizes.nodes), inputs, [out], self._device)
