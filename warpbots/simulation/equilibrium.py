"""Static equilibrium under torch: the state at rest and its derivatives by the implicit function theorem."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpbots.gradients import Bridge, Segment, Tensors, at_turn, tensor_of
from warpbots.simulation.input_validation import Inputs
from warpbots.solvers import Model, Statics

__all__ = ["StaticEquilibrium"]

_MOTION = ("velocity", "qd")
"""Fields of a state that are zero at rest."""
_PLACE = ("position", "q")
"""Fields of a state that the equilibrium determines."""
_CONVERGED = 1e-3
"""Tolerance of the series of an adjoint: its last term, relative to the sum, in multiples of √(unit roundoff)."""
_MOST = 1000
"""Largest number of terms of the series."""


class StaticEquilibrium:
    """The fixed point x = step(x, p) of steps of the solver that start without motion; p: control and parameters.

    The derivative of x follows from the Jacobians step_x and step_p of one step: dx = (1 - step_x)^-1 step_p dp. For a
    gradient g with respect to x, the adjoint y solves y = g + step_x^T y. The series y = g + step_x^T g + ... converges
    as fast as the forward steps approach the equilibrium.
    """

    def __init__(self, solver: Statics, model: Model, inputs: Inputs, bridge: Callable[[float], Bridge]):
        """Store the arguments; `of` computes an equilibrium.

        Args:
            solver: The solver.
            model: The model of the scene.
            inputs: Checks controls and parameters.
            bridge: Makes a `Bridge` for one step of a given length [s].
        """
        self._solver, self._model, self._inputs, self._bridge = solver, model, inputs, bridge

    def of(
        self, control: Any, start: Any, dt: float, steps: int, tolerance: float | None, parameters: dict[str, Any]
    ) -> Any:
        """The state in equilibrium; see `Simulation.equilibrium`."""
        given = self._inputs.no_control if control is None else self._inputs.control(control)
        fitted = self._inputs.parameters(parameters)
        found = self._found(given, start, (dt, steps, tolerance), fitted)
        inputs = {"control": given} | fitted
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in inputs.values())):
            return type(start)(**found)
        bridge, names = self._bridge(dt), [name for name in _PLACE if name in found]
        place = {name: found[name].requires_grad_() for name in names}
        outputs, _ = bridge.run(
            found | place | {n: t.detach() for n, t in inputs.items()}, Segment(bridge, keep=True), 0
        )
        adjoint = _EquilibriumAdjoint([outputs[name] for name in names], list(place.values()))
        fixed = {name: value.detach() for name, value in found.items()}
        again, _ = bridge.run(fixed | inputs, Segment(bridge, keep=True), 0)
        moved = _Implicit.apply(adjoint, *(again[name] for name in names))
        return type(start)(**(fixed | dict(zip(names, moved, strict=True))))

    def _found(self, control: torch.Tensor, start: Any, options: tuple, parameters: Tensors) -> Tensors:
        """Fields of the state in equilibrium, without gradient; `options`: (dt, steps, tolerance)."""
        model = self._inputs.model_with(parameters) if parameters else self._model
        with at_turn(self._model.device), torch.no_grad():
            state = self._solver.state(model)
            names = [field.name for field in dataclasses.fields(state)]
            for name in names:
                tensor_of(getattr(state, name)).copy_(getattr(start, name))
            rest = self._solver.equilibrium(model, state, control.detach().cpu().numpy(), *options)
            return {name: tensor_of(getattr(rest, name)).clone() for name in names}


class _EquilibriumAdjoint:
    """Solves y = g + step_x^T y at the fixed point of a step."""

    def __init__(self, after: Sequence[torch.Tensor], before: Sequence[torch.Tensor]):
        self._after, self._before = after, before

    def __call__(self, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        found, term = list(gradients), list(gradients)
        enough = _CONVERGED * torch.finfo(found[0].dtype).eps ** 0.5
        for _ in range(_MOST):
            term = torch.autograd.grad(self._after, self._before, term, retain_graph=True)
            found = [a + b for a, b in zip(found, term, strict=True)]
            if all(b.norm() <= enough * a.norm() for a, b in zip(found, term, strict=True)):
                return found
        raise RuntimeError(
            f"equilibrium: the adjoint has not converged in {_MOST} steps, because the slowest motion takes much "
            f"longer than one step; use a longer dt, or constrain bodies that float"
        )


class _Implicit(torch.autograd.Function):
    """The identity; its backward pass replaces gradients by the adjoints y of the fixed point."""

    @staticmethod
    def forward(ctx: Any, adjoint: _EquilibriumAdjoint, *place: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.adjoint = adjoint
        return tuple(p.clone() for p in place)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple:
        return None, *ctx.adjoint(gradients)
