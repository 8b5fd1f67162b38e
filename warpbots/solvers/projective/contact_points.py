"""Points as contacts see them when a step begins: nodes, which a state has, then vertices of shells, which bones carry.

Where a vertex of a shell begins follows from the coordinates of the joints, and so does its gradient. No force is at
it but those of its contacts.
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
    handles: HandleArrays, tree: Tree, links: Links, flesh: int, x: wp.array[_vec], v: wp.array[_vec],
    x_out: wp.array[_vec], v_out: wp.array[_vec],
):  # fmt: skip
    """Places and velocities of points: those of nodes, and of vertices of shells as their bones have them."""
    w, i = wp.tid()
    k = w * handles.nodes + i
    if i < flesh:
        x_out[k] = x[w * flesh + i]
        v_out[k] = v[w * flesh + i]
    else:
        b = handles.bound - handles.nodes + i  # of all that is bound, shells come last
        X = carried_to(handles, tree, links, w, b)
        V = links.twist[w * tree.elements + tree.element[handles.bone[b]]]
        x_out[k] = single(X)
        v_out[k] = single(linear(V) + wp.cross(angular(V), X))


@wp.kernel(enable_backward=False)
def bare_kernel(handles: HandleArrays, flesh: int, active: wp.array[int], lacking_out: wp.array[NODE]):
    """No force is at a vertex of a shell."""
    w, s = wp.tid()
    if active[w] == 1:
        lacking_out[w * handles.stride + flesh + s] = NODE()


class Points:
    """Points of all worlds in a step from `state`; without shells these are its nodes, and nothing runs.

    Attributes:
        position: Where they are [m], shape (worlds * n_points,), with a gradient if the state has one.
        velocity: How fast they are [m/s], likewise, without a gradient where there are shells.
    """

    def __init__(self, model: ProjectiveModel, state: ProjectiveState, dt: float):
        """Find them.

        Args:
            model: What touches.
            state: Where the step starts.
            dt: Length of the step [s].
        """
        self._model, self._shells = model, len(model.scratch.shells)
        self.position, self.velocity = state.position.flatten(), state.velocity.flatten()
        if not self._shells:
            return
        scratch, articulated = model.scratch, model.skeleton.workspace
        still = ArticulatedState(state.q, state.qd, state.q, state.qd, scratch.bones.previous[1])
        nodes = self.position, self.velocity
        self.position, self.velocity = scratch.start
        clear_gradients([self.position])
        self._handles = scratch.matrix(dt).handles
        self._pose = poses(model.bones, articulated.at_rest(still))
        links = articulated.links
        self._gather = [self._handles, model.skeleton.tree, links, scratch.count, *nodes, self.position, self.velocity]
        launch_all(self._pose, model.device)
        launch(gather_kernel, (model.worlds, scratch.points), self._gather, [], model.device)

    def bare(self, active: wp.array, lacking: wp.array) -> None:
        """Begin the sum of the forces at shells, or of what the adjoint has in their place."""
        if self._shells:
            inputs = [self._handles, self._model.scratch.count, active]
            launch(bare_kernel, (self._model.worlds, self._shells), inputs, [lacking], self._model.device)

    def adjoint(self) -> None:
        """Gradients to the state from those of `position`."""
        if self._shells:
            model, articulated = self._model, self._model.skeleton.workspace
            launch_all(self._pose, model.device)
            clear_gradients(articulated.gradients())
            launch_own_adjoint(gather_kernel, (model.worlds, model.scratch.points), self._gather, model.device)
            adjoints(self._pose, model.device)
