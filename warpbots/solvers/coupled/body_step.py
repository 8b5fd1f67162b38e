"""The step of rigid bodies that points of matter touch, and its adjoint; the same for every kind of matter."""

import dataclasses
import math

import warp as wp

from warpbots.numerics import Launch, clear_gradients, launch, launch_all, launch_lanes, parallel
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.exchange_step import LANES, ExchangeStep
from warpbots.solvers.articulated.implicit_integrators import LAST_STAGE
from warpbots.solvers.articulated.model import ArticulatedState
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.coupled.bound_points import correction_of
from warpbots.solvers.coupled.impossible_motions import DEEPEST, find_fast
from warpbots.solvers.coupled.model import CoupledModel
from warpbots.solvers.coupled.touching_gradients import (
    add_friction_gradients_kernel,
    adj_wrench_kernel,
    pose_gradients_kernel,
)
from warpbots.solvers.coupled.touching_points import (
    add_counts_kernel,
    list_points_kernel,
    place_solids_kernel,
    touching_points,
    wrench_kernel,
)

__all__ = ["BodyStep"]


@dataclasses.dataclass(frozen=True, eq=False)
class BodyStep:
    """The step of the rigid bodies with the points of matter that touch them.

    Between `find` and `advance`, the exchange of a solver of soft bodies writes place, mass and velocity of the points;
    after `advance` it applies the impulses to the matter.

    Attributes:
        model: The model.
        solver: Solver of the rigid bodies.
        state: State of the rigid bodies at the start of the step.
        control: Control signals of the rigid bodies, double precision, shape (worlds, rigid channels).
        state_out: State of the rigid bodies at the end of the step.
        dt: Length of the step [s].
        exchange: Arrays for the points of this step.
        force: Array for the mean force of matter on each rigid body over the step [N], double precision, shape (worlds,
            n_bodies), vector; None if forces are not measured.
        torque: Array for the torque of these forces about the origin [N m], of the same shape, or None.
    """

    model: CoupledModel
    solver: Articulated
    state: ArticulatedState
    control: wp.array
    state_out: ArticulatedState
    dt: float
    exchange: ExchangeStep
    force: wp.array | None = None
    torque: wp.array | None = None

    def find(self, x: wp.array, radius: wp.array, v: wp.array | None = None) -> None:
        """List the points of matter that touch bodies, and find the surface at each of them.

        Args:
            x: Positions of the points of matter at the start of the step [m], shape (worlds * n_points,), vector.
            radius: Radii of the points [m], double precision, shape (worlds * n_points,); negative for points that
                cannot touch.
            v: Velocities of the points at the start [m/s], shape (worlds * n_points,), vector, to measure forces on
                bound points.
        """
        model, work, exchange = self.model, self.model.workspace, self.exchange
        launch_all(self._start_poses(), model.device)
        self._place_solids(self._counts)
        inputs = [
            self._count, model.solids, len(model.matter), self.lanes, self._parts, model.bound.body, x, radius,
            work.axes, work.origin, work.lower, work.upper,
        ]  # fmt: skip
        launch(touching_points(model.dim).find_touching, self.threads, inputs, [work.body, self._counts], model.device)
        self._list_points()
        stopped, deepest = (work.stopped, DEEPEST * model.points.size) if self.force is None else (None, math.inf)
        if stopped is not None:
            find_fast(model, self.dt)
        inputs = [
            *self._tree, model.solids, work.soft_body, model.body_friction, len(model.matter),
            self.lanes, *self._bound, x, v, scalar(self.dt), self._correction, scalar(deepest),
            model.rigid.workspace.links.twist, work.axes, work.origin, work.body, exchange.row,
        ]  # fmt: skip
        outputs = [exchange.points, exchange.distance, stopped]
        launch(touching_points(model.dim).surface, self.threads, inputs, outputs, model.device)

    def _list_points(self) -> None:
        model, work, points = self.model, self.model.workspace, self.exchange.points
        if self._parts > 1:
            inputs, outputs = [self._parts, work.counts], [work.next, points.count]
            launch(add_counts_kernel, points.count.size, inputs, outputs, model.device)
        inputs = [self._count, len(model.matter), self._parts, work.body, points.count]
        outputs = [work.next, points.first, self.exchange.row]
        launch(list_points_kernel, (model.worlds, self._parts), inputs, outputs, model.device)

    @property
    def _parts(self) -> int:
        """Number of parts of the matter of a world that are listed at the same time."""
        return self.model.workspace.next.size // self.model.workspace.origin.size

    @property
    def _counts(self) -> wp.array:
        """Number of points that touch each body in each part; those of the only part are those of the body."""
        return self.model.workspace.counts if self._parts > 1 else self.exchange.points.count

    def advance(self) -> None:
        """Move the bodies, and find the impulses of the points."""
        model, exchange = self.model, self.exchange
        self.solver.advance(model.rigid, self.state, self.control, self.state_out, self.dt, exchange)
        if self.force is not None:
            inputs, outputs = [*self._sizes, exchange.points, exchange.impulse], [self.force, self.torque]
            launch_lanes(wrench_kernel, self._bodies, LANES, inputs, outputs, model.device)

    @property
    def lanes(self) -> int:
        """Number of threads for the points of a world: one for each point on a GPU, one on a CPU."""
        return len(self.model.matter) if parallel(self.model.device) else 1

    @property
    def threads(self) -> tuple[int, int]:
        """Number of worlds, and `lanes`."""
        return self.model.worlds, self.lanes

    def adj_advance(self) -> None:
        """Adjoint of `advance`, from the gradients by the impulses and by the state at the end.

        Writes the gradients by the points to the arrays of the exchange.
        """
        exchange = self.exchange
        self._adj_wrenches([exchange.impulse_adj, None])
        self.solver.advance_adjoint(self.model.rigid, self.state, self.control, self.state_out, self.dt, exchange)
        self._adj_wrenches([None, exchange.gradients.place])

    def adj_find(
        self, x: wp.array, distance_adj: wp.array | None, x_adj: wp.array, v_adj: wp.array | None = None
    ) -> None:
        """Adjoint of `find`, from the gradients by normals, friction and velocities in the arrays of the exchange.

        Args:
            x: As for `find`.
            distance_adj: Gradients with respect to the distances of the points from the surfaces, shape (worlds *
                n_points,), in the order of the points of the exchange, or None.
            x_adj: Receives the gradients with respect to the positions of the points, of the same shape, vector; they
                are added.
            v_adj: Receives the gradients with respect to `v` of `find`, in the order of the matter; they are added.
        """
        self._adj_poses(x, distance_adj, x_adj, v_adj)
        self._add_friction_gradients()

    def _adj_wrenches(self, outputs: list) -> None:
        """Add to the gradients by impulses, or by places, from those by `force` and `torque`, if there are any."""
        if self.force is not None:
            inputs = [*self._sizes, self.exchange.points, self.exchange.impulse, self.force.grad, self.torque.grad]
            launch_lanes(adj_wrench_kernel, self._bodies, LANES, inputs, outputs, self.model.device)

    def _adj_poses(self, x: wp.array, distance_adj: wp.array | None, x_adj: wp.array, v_adj: wp.array | None) -> None:
        """Add the gradients by the poses of the bodies at the start, from the gradients by normals and distances."""
        model, rigid, exchange, start = self.model, self.model.rigid, self.exchange, self._start_poses()
        links, work = rigid.workspace.links, model.workspace
        clear_gradients(rigid.workspace.gradients())
        launch_all(start, model.device)
        self._place_solids(None)
        inputs = [
            *self._tree, model.solids, len(model.matter), *self._bound, x, scalar(self.dt),
            self._correction, links.twist, work.axes, work.origin, exchange.row, exchange.points, distance_adj,
            exchange.gradients,
        ]  # fmt: skip
        outputs = [
            x_adj, v_adj, links.twist.grad, links.body_position.grad, links.body_rotation.grad, work.no_samples,
        ]  # fmt: skip
        launch_lanes(pose_gradients_kernel(model.dim), self._bodies, LANES, inputs, outputs, model.device)
        adjoints(start, model.device)

    def _add_friction_gradients(self) -> None:
        model, exchange = self.model, self.exchange
        if model.body_friction.grad is not None:
            inputs = [
                self._count, len(model.matter), model.workspace.soft_body, exchange.row, exchange.points,
                exchange.gradients,
            ]  # fmt: skip
            outputs, size = [model.body_friction.grad], model.body_friction.shape
            launch_lanes(add_friction_gradients_kernel, size, LANES, inputs, outputs, model.device)

    def _start_poses(self) -> list[Launch]:
        return poses(self.model.rigid, self.model.rigid.workspace.at_rest(self.state))

    def _place_solids(self, counts: wp.array | None) -> None:
        """Place the solids of the bodies, and clear `counts`."""
        model, work = self.model, self.model.workspace
        lanes = lanes_of(model.device)
        inputs = [self._count, model.solids, model.boxes, lanes, model.rigid.workspace.links]
        outputs = [work.axes, work.origin, work.lower, work.upper, counts]
        launch(place_solids_kernel, (model.worlds, lanes), inputs, outputs, model.device, lanes)

    @property
    def last_stage(self) -> float:
        """Length of the last stage of the bodies, in which impulses act on them [steps]."""
        return LAST_STAGE[self.solver.used_integrator]

    @property
    def _bound(self) -> list[wp.array]:
        return [self.model.bound.body, self.model.bound.place]

    @property
    def _correction(self) -> scalar:
        return scalar(correction_of(self.last_stage))

    @property
    def _count(self) -> int:
        return self.model.rigid.tree.bodies

    @property
    def _tree(self) -> list:
        """Numbers of bodies and of elements, and the element of each body; not the whole struct, which costs time."""
        tree = self.model.rigid.tree
        return [tree.bodies, tree.elements, tree.element]

    @property
    def _sizes(self) -> list:
        return [self._count, scalar(self.dt)]

    @property
    def _bodies(self) -> tuple[int, int]:
        return self.model.worlds, self._count
