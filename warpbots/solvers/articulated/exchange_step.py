"""Launches for the impulses between bodies and points of matter in a step, and their adjoints."""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import clear_gradients, launch_all, launch_lanes
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.articulated.exchange import (
    impulse_kernel,
    point_gradients_kernel,
)
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, StepArrays
from warpbots.solvers.articulated.tree_passes import adjoints, poses

__all__ = ["LANES", "ExchangeStep", "ExchangeWorkspace"]

LANES = 128
"""Number of threads for the points of a body; a CPU has one."""

_KEPT = {
    "place": vec3, "mass": scalar, "velocity": vec3, "normal": vec3, "condition": int, "friction": scalar
}  # fmt: skip
"""Fields of `Exchange` with an entry for each point, which a state keeps for the adjoint of the step before it."""


@dataclasses.dataclass(frozen=True, eq=False)
class ExchangeStep:
    """The points of matter that touch bodies in one step.

    Attributes:
        points: The points, as a Warp struct.
        row: Index of each point in the arrays of the matter, -1 for no point, shape (n,), int.
        share: Share of matter that touches, interpolated at each point [1], shape (n,).
        distance: Signed distance of each point of matter from the surface of its body, or minus the distance of a bound
            point from its place in the body [m], shape (n,).
        impulse: Impulse of each point on its body [N s], shape (n,).
        impulse_adj: Gradient with respect to the impulses, shape (n,).
        gradients: Gradients with respect to the points.
    """

    points: Exchange
    row: wp.array
    share: wp.array
    distance: wp.array
    impulse: wp.array
    impulse_adj: wp.array
    gradients: ExchangeGradients

    def work(self, model: ArticulatedModel) -> StepArrays:
        """Intermediate results of a stage with these points; all other arrays are those of the workspace."""
        work = StepArrays()
        for name in StepArrays.vars:
            setattr(work, name, getattr(model.workspace.work, name))
        work.exchange = self.points
        return work

    def find_impulses(self, model: ArticulatedModel, stage: ImplicitStage) -> None:
        """Write the impulses for the motion of the bodies at the end of the last stage of a step."""
        launch_all(poses(model, stage), model.device)
        launch_lanes(impulse_kernel, _size(model), LANES, self._moved(model, stage), [self.impulse], model.device)

    def adj_find_impulses(self, model: ArticulatedModel, stage: ImplicitStage) -> None:
        """Adjoint of `find_impulses` by the stage, and the gradients of the points by the impulses alone."""
        steps = poses(model, stage)
        clear_gradients(model.workspace.gradients())
        launch_all(steps, model.device)
        self._add_gradients(model, stage, self.impulse_adj, None)
        adjoints(steps, model.device)

    def adj_power(self, model: ArticulatedModel, stage: ImplicitStage) -> None:
        """Add the gradients of the virtual power of the impulses, after `adj_find_impulses`.

        The poses, twists and virtual twists of the bodies are in the workspace.
        """
        self._add_gradients(model, stage, None, model.workspace.sweep)

    def _add_gradients(
        self, model: ArticulatedModel, stage: ImplicitStage, impulse_adj: wp.array | None, sweep: wp.array | None
    ) -> None:
        links, center = model.workspace.links, model.design.center
        inputs = [*self._moved(model, stage), impulse_adj, sweep]
        outputs = [
            self.gradients, links.twist.grad, sweep.grad if sweep is not None else None, links.body_position.grad,
            links.body_rotation.grad, center.grad,
        ]  # fmt: skip
        launch_lanes(point_gradients_kernel, _size(model), LANES, inputs, outputs, model.device)

    def _moved(self, model: ArticulatedModel, stage: ImplicitStage) -> list:
        """The points, and what their bodies are and how they move; whole structs as arguments would cost time."""
        tree, links = model.tree, model.workspace.links
        return [
            tree.bodies, tree.elements, tree.element, model.design.center, self.points, links.twist,
            links.body_position, links.body_rotation, stage.c,
        ]  # fmt: skip


def _size(model: ArticulatedModel) -> tuple[int, int]:
    return model.worlds, model.tree.bodies


class ExchangeWorkspace:
    """Arrays for the points of matter that touch the bodies of a model."""

    def __init__(self, model: ArticulatedModel, capacity: int):
        """Allocate the arrays.

        Args:
            model: The model of the bodies.
            capacity: Room for points, of all worlds.
        """
        self._bodies, self._device, self._capacity = model.worlds * model.tree.bodies, model.device, capacity
        self._steps: AdjointCache = AdjointCache()
        self._sums = self._zeros(self._bodies, Twist), self._zeros(4 * self._bodies, mat33)
        self._impulse_adj, self._gradients = self._zeros(capacity, vec3), ExchangeGradients()
        for name in ExchangeGradients.vars:
            setattr(self._gradients, name, self._zeros(capacity, _KEPT[name]))

    def step(self, state_out: object, keep: bool) -> ExchangeStep:
        """Arrays for the points of the step that ends in `state_out`; all steps share them unless `keep` is true."""
        return self._steps.of(state_out, self._step) if keep else self._shared

    @functools.cached_property
    def measured(self) -> ExchangeStep:
        """Arrays for the points at which the forces of a state are measured."""
        return self._step()

    @functools.cached_property
    def _shared(self) -> ExchangeStep:
        return self._step()

    def _step(self) -> ExchangeStep:
        points = Exchange()
        points.capacity, (points.wrench, points.blocks) = self._capacity, self._sums
        points.first, points.count = self._zeros(self._bodies, int), self._zeros(self._bodies, int)
        for name, dtype in _KEPT.items():
            setattr(points, name, self._zeros(self._capacity, dtype))
        own = (self._zeros(self._capacity, dtype) for dtype in (int, scalar, scalar, vec3))
        return ExchangeStep(points, *own, self._impulse_adj, self._gradients)

    def _zeros(self, size: int, dtype: type) -> wp.array:
        return wp.zeros(size, dtype=dtype, device=self._device)
