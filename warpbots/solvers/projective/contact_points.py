"""Points that may be in contact when a step begins: nodes of the state, then vertices of bone surfaces.

The position of a vertex of a bone surface follows from the joint coordinates, and so does its gradient. Its only forces
are those of its contacts.
"""

import warp as wp

from warpbots.numerics import NODE, clear_gradients, launch, launch_all, launch_own_adjoint, vector
from warpbots.solvers.articulated.model import ArticulatedState
from warpbots.solvers.articulated.robot_arrays import Tree
from warpbots.solvers.articulated.spatial import angular, linear
from warpbots.solvers.articulated.step_arrays import Links
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.projective.bones.handles import HandleArrays, carried_to, single
from warpbots.solvers.projective.model import ProjectiveModel, ProjectiveState

__all__ = ["Points"]

_vec = vector(3)


@wp.kernel
def gather_kernel(
    # model
    handles: HandleArrays,
    tree: Tree,
    soft_nodes: int,
    # state
    links: Links,
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    x_out: wp.array[_vec],
    v_out: wp.array[_vec],
):
    """Positions and velocities of points: those of nodes, and of vertices of bone surfaces by their bones."""
    w, i = wp.tid()
    k = w * handles.nodes + i
    if i < soft_nodes:
        x_out[k] = x[w * soft_nodes + i]
        v_out[k] = v[w * soft_nodes + i]
    else:
        b = handles.bound - handles.nodes + i  # vertices of bone surfaces are the last bound points
        X = carried_to(handles, tree, links, w, b)
        V = links.twist[w * tree.elements + tree.element[handles.bone[b]]]
        x_out[k] = single(X)
        v_out[k] = single(linear(V) + wp.cross(angular(V), X))


@wp.kernel(enable_backward=False)
def clear_kernel(
    # model
    handles: HandleArrays,
    soft_nodes: int,
    # state
    active: wp.array[int],
    # out
    residual_out: wp.array[NODE],
):
    """Vertices of bone surfaces have no forces but those of contacts."""
    w, s = wp.tid()
    if active[w] == 1:
        residual_out[w * handles.stride + soft_nodes + s] = NODE()


class Points:
    """Points of all worlds in a step from `state`; without bone surfaces these are its nodes, and nothing runs.

    Attributes:
        position: Positions [m], shape (worlds * n_points,), with a gradient if the state has one.
        velocity: Velocities [m/s], shape (worlds * n_points,), without a gradient where bones have surfaces.
    """

    def __init__(self, model: ProjectiveModel, state: ProjectiveState, dt: float):
        """Evaluate them.

        Args:
            model: The model.
            state: Where the step starts.
            dt: Length of the step [s].
        """
        self._model, self._vertices = model, model.topology.sizes.vertices
        self.position, self.velocity = state.position.flatten(), state.velocity.flatten()
        if not self._vertices:
            return
        workspace, articulated = model.workspace, model.skeleton.workspace
        still = ArticulatedState(state.q, state.qd, state.q, state.qd, workspace.bones.previous[1])
        nodes = self.position, self.velocity
        self.position, self.velocity = workspace.start
        clear_gradients([self.position])
        self._handles = model.matrices.of(dt).handles
        self._pose = poses(model.bones, articulated.at_rest(still))
        links = articulated.links
        inputs = [self._handles, model.skeleton.tree, model.topology.sizes.nodes, links]
        self._gather = [*inputs, *nodes, self.position, self.velocity]
        launch_all(self._pose, model.device)
        launch(gather_kernel, (model.worlds, model.topology.sizes.points), self._gather, [], model.device)

    def clear(self, active: wp.array, residual: wp.array) -> None:
        """Begin the sum of the forces on vertices of bone surfaces, or of what replaces them in the adjoint."""
        if self._vertices:
            inputs = [self._handles, self._model.topology.sizes.nodes, active]
            launch(clear_kernel, (self._model.worlds, self._vertices), inputs, [residual], self._model.device)

    def adjoint(self) -> None:
        """Gradients with respect to the state from those of `position`."""
        if self._vertices:
            model, articulated = self._model, self._model.skeleton.workspace
            launch_all(self._pose, model.device)
            clear_gradients(articulated.gradients())
            launch_own_adjoint(gather_kernel, (model.worlds, model.topology.sizes.points), self._gather, model.device)
            adjoints(self._pose, model.device)
