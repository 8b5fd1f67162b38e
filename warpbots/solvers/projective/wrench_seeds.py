"""Gradients of wrenches at the end of a step, which begin the adjoint of the step."""

import warp as wp

from warpbots.numerics import copy, launch
from warpbots.solvers.projective import wrenches
from warpbots.solvers.projective.end_of_step import EndOfStep
from warpbots.solvers.projective.forces import evaluate_residual
from warpbots.solvers.projective.guides import GuideArrays
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState

__all__ = ["Readers", "WrenchSeeds"]

Readers = list[tuple[int, wp.array, wp.array]]
"""First receiver of a kind, and the readings of forces [N] and torques [N m] on the receivers of this kind."""


class WrenchSeeds:
    """Gradients of wrenches at the end of a step, which add to the right-hand side of the adjoint of the step.

    Attributes:
        given: Adjoint displacements Q p of held nodes, shape (worlds * stride,).
        velocity: p of held nodes, shape (worlds * stride,).
    """

    def __init__(self, model: ProjectiveModel, state_out: ProjectiveState, readers: Readers, dt: float):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            state_out: The state at the end of the step.
            readers: The readings of wrenches.
            dt: Length of the step [s].
        """
        self._model, self._lost, self._readers, guides = model, state_out.lost, readers, model.matrices.of(dt).guides
        self._receivers, self._guides = model.receivers, GuideArrays() if guides is None else guides.arrays
        self.given, self.velocity, self._kept = model.workspace.held

    def _held(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        if self._receivers.held.size:
            launch(kernel, (self._model.worlds, self._receivers.held.size), inputs, outputs, self._model.device)

    def measure(self, end: EndOfStep, lost: wp.array) -> None:
        """Write the readings of wrenches; `lost` is 1 for worlds that were lost before the step."""
        self._measure_held(end)
        end.contact.measure(self._receivers, self._guides, end.point.u)
        for first, force, torque in self._readers:
            inputs = [self._receivers, first, lost, self._lost]
            launch(wrenches.split_kernel, force.shape, inputs, [force, torque], self._model.device)

    def _measure_held(self, end: EndOfStep) -> None:
        evaluate_residual(self._model, end.point, end.velocity, self._model.unheld)
        inputs = [self._guides, self._model.workspace.residual]
        self._held(wrenches.held_force_kernel, inputs, [self._receivers])

    def seed(self, end: EndOfStep) -> None:
        """Write the right-hand side of the adjoint, and adjoint displacements of held nodes, which are `given`."""
        workspace, u = self._model.workspace, end.point.u
        for first, force, torque in self._readers:
            inputs = [self._lost, force.grad, torque.grad, first]
            launch(wrenches.join_kernel, force.shape, inputs, [self._receivers], self._model.device)
        self._measure_held(end)
        for array in (self.given, self.velocity):
            array.zero_()
        inputs, outputs = [self._receivers, self._guides, end.points.position, u], [self.velocity, self.given]
        self._held(wrenches.adj_held_wrench_kernel, inputs, [*outputs, workspace.seed])
        end.contact.seed_wrenches(self._receivers, self._guides, u)
        copy(self._kept, workspace.seed)

    def keep_seed(self) -> None:
        """Restore the seed after the solve, in which `given` displacements have changed it."""
        copy(self._model.workspace.seed, self._kept)

    def add_given(self, a: wp.array) -> None:
        """Add the adjoint displacements of held nodes to `a`."""
        launch(wrenches.add_kernel, a.size, [self.given], [a], self._model.device)

    def adjoint(self, end: EndOfStep) -> None:
        """Add the gradients with respect to points at the start of the step, and clear the seed of contact forces."""
        self._held(wrenches.gather_starts_kernel, [self._receivers], [end.points.position.grad])
        end.contact.adj_wrenches(self._receivers, self._guides, end.point.u)

    def clear(self) -> None:
        """Clear the seed: adjoints of steps write the entries of nodes only."""
        self._model.workspace.seed.zero_()
