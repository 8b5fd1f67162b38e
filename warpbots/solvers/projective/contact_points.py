"""Points that may be in contact, at the start of a step: nodes, vertices of bone surfaces, and ends of obstacle edges.

The position of a vertex of a bone surface follows from the joint coordinates, and its gradient is passed on to them.
Only contact forces act on such a vertex. Edges of obstacles that move are placed by `PrescribedStep`.
"""

import warp as wp

from warpbots.numerics import NODE, clear_gradients, launch, launch_all, launch_own_adjoint, vector
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.spatial import angular, linear
from warpbots.solvers.articulated.step_arrays import Links
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.projective.bones.handle_arrays import HandleArrays, single
from warpbots.solvers.projective.bones.handles import carried_to
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState

__all__ = ["ContactPoints"]

_vec = vector(3)


@wp.kernel
def gather_nodes_kernel(
    # model
    soft_nodes: int,
    edge_ends: wp.array[_vec],
    # state
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    x_out: wp.array[_vec],
    v_out: wp.array[_vec],
):
    """Write positions and velocities of points in a scene in which no bone has a surface."""
    w, i = wp.tid()
    k = w * (soft_nodes + edge_ends.shape[0]) + i
    if i < soft_nodes:
        x_out[k] = x[w * soft_nodes + i]
        v_out[k] = v[w * soft_nodes + i]
    else:
        x_out[k] = edge_ends[i - soft_nodes]
        v_out[k] = _vec()


@wp.kernel
def gather_kernel(
    # model
    handles: HandleArrays,
    tree: JointTree,
    soft_nodes: int,
    edge_ends: wp.array[_vec],
    # state
    links: Links,
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    x_out: wp.array[_vec],
    v_out: wp.array[_vec],
):
    """Write positions and velocities of points; vertices of bone surfaces move with their bones."""
    w, i = wp.tid()
    k = w * handles.nodes + i
    first_end = handles.nodes - edge_ends.shape[0]
    if i < soft_nodes:
        x_out[k] = x[w * soft_nodes + i]
        v_out[k] = v[w * soft_nodes + i]
    elif i >= first_end:
        x_out[k] = edge_ends[i - first_end]
        v_out[k] = _vec()
    else:
        b = handles.bound - first_end + i  # vertices of bone surfaces are the last bound points
        X = carried_to(handles, tree, links, w, b)
        V = links.twist[w * tree.elements + tree.element[handles.bone[b]]]
        x_out[k] = single(X)
        v_out[k] = single(linear(V) + wp.cross(angular(V), X))


@wp.kernel(enable_backward=False)
def begin_kernel(
    # model
    handles: HandleArrays,
    soft_nodes: int,
    # state
    active: wp.array[int],
    begun: wp.array[NODE],
    # out
    residual_out: wp.array[NODE],
):
    """Begin the residual at vertices of bone surfaces, to which only contacts add."""
    w, s = wp.tid()
    if active[w] == 1:
        i = w * handles.stride + soft_nodes + s
        residual_out[i] = begun[i]


class ContactPoints:
    """Points of all worlds in a step from `state`; if all points are nodes, nothing runs.

    Attributes:
        position: Positions [m], shape (worlds * n_points,), with a gradient if the state has one.
        velocity: Velocities [m/s], shape (worlds * n_points,), without a gradient if not all points are nodes.
    """

    def __init__(self, model: ProjectiveModel, state: ProjectiveState, dt: float):
        """Evaluate the points.

        Args:
            model: The model.
            state: The state at the start of the step.
            dt: Length of the step [s].
        """
        self._model, sizes = model, model.topology.sizes
        self._vertices, self._others = sizes.vertices, sizes.points > sizes.nodes
        self.position, self.velocity = state.position.flatten(), state.velocity.flatten()
        if not self._others:
            return
        nodes, ends = (self.position, self.velocity), model.topology.edge_ends
        self.position, self.velocity = model.workspace.start
        clear_gradients([self.position])
        self._each, self._pose = (model.worlds, sizes.points), []
        self._kernel = gather_kernel if self._vertices else gather_nodes_kernel
        inputs = [sizes.nodes, ends]
        if self._vertices:
            articulated = model.skeleton.workspace
            self._handles = model.matrices.of(dt).handles
            self._pose = poses(model.bones, articulated.resting(state.q.flatten(), state.qd.flatten()))
            inputs = [self._handles, model.skeleton.tree, *inputs, articulated.links]
        self._gather = [*inputs, *nodes, self.position, self.velocity]
        launch_all(self._pose, model.device)
        launch(self._kernel, self._each, self._gather, [], model.device)

    def begin(self, active: wp.array, begun: wp.array, residual: wp.array) -> None:
        """Copy `begun` to the residual at vertices of bone surfaces, before contacts add to it."""
        if self._vertices:
            inputs = [self._handles, self._model.topology.sizes.nodes, active, begun]
            launch(begin_kernel, (self._model.worlds, self._vertices), inputs, [residual], self._model.device)

    def adjoint(self) -> None:
        """Add the gradients with respect to the state that follow from the gradient with respect to `position`."""
        if self._others:
            device = self._model.device
            launch_all(self._pose, device)
            if self._vertices:
                clear_gradients(self._model.skeleton.workspace.gradients())
            launch_own_adjoint(self._kernel, self._each, self._gather, device)
            adjoints(self._pose, device)
