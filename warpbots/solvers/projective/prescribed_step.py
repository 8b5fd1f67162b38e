"""Prescribed motion in a step: solids and edges of obstacles, and the points where constraints hold nodes.

Implicit Euler takes forces at the end of a step, so all poses are poses at this time, also in the shorter steps that
replace a failed step.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.numerics import NODE, clear_gradients, launch, launch_own_adjoint, vector
from warpbots.solvers.moving_frames import FrameState
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState

__all__ = ["PrescribedStep"]

_vec = vector(3)


@wp.kernel
def carry_anchors_kernel(
    # model
    frame: wp.array[int],
    anchor: wp.array2d[_vec],
    # work
    frames: MovingPoses,
    # out
    place_out: wp.array2d[_vec],
):
    """Write where fixed nodes are held at the end of a step: R X + p, or X if the constraint does not move."""
    w, a = wp.tid()
    f = frame[a]
    place = anchor[w, a]
    if f >= 0:
        place = _vec(frames.rotation[w, f] @ wp.vec3d(anchor[w, a]) + frames.position[w, f])
    place_out[w, a] = place


@wp.kernel
def carry_ends_kernel(
    # model
    frame: wp.array[int],
    end: wp.array[_vec],
    points: int,
    stride: int,
    # step
    h: wp.float64,
    # work
    frames: MovingPoses,
    # out
    x_out: wp.array[_vec],
    u_out: wp.array[NODE],
):
    """Write the start of an end X of an edge of an obstacle, x = y - u, and its displacement u to y = R X + p."""
    w, e = wp.tid()
    f = frame[e]
    if f >= 0:
        i = points - frame.shape[0] + e
        p = frames.position[w, f]
        y = frames.rotation[w, f] @ wp.vec3d(end[e]) + p
        u = h * carried_velocity(p, frames.linear[w, f], frames.spin[w, f], y)
        x_out[w * points + i] = _vec(y - u)
        u_out[w * stride + i] = packed(_vec(u))


@wp.kernel(enable_backward=False)
def advance_kernel(
    # step
    h: wp.float64,
    found: wp.array[int],
    # state
    travel: wp.array2d[wp.float64],
    # work
    rate: wp.array2d[wp.float64],
    # out
    travel_out: wp.array2d[wp.float64],
):
    """Coordinate of each drive after a step; it changes only in worlds whose step succeeded."""
    w, d = wp.tid()
    travel_out[w, d] = travel[w, d] + wp.float64(found[w]) * h * rate[w, d]


class PrescribedStep:
    """Prescribed motion in a step from `state`; if nothing moves, no kernel runs."""

    def __init__(self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, dt: float):
        """Compute the poses at the end of the step.

        Args:
            model: The model.
            state: The state at the start of the step.
            control: Control signals, shape (worlds, channels).
            dt: Length of the step [s].
        """
        self._model, self._frames, self._dt = model, model.frames, dt
        self._state, self._of = state, FrameState(model, state.time, state.travel, control)
        self._frames.place(self._of, dt, dt)
        self._guides = model.matrices.of(dt).guides if model.carries else None
        if model.carries:
            launch(*self._anchors(), [], model.device)
        if self._guides is not None:
            self._guides.carry(*self._guided())

    def _anchors(self) -> tuple:
        model = self._model
        held = model.workspace.anchor.reshape(model.anchor.shape)
        return carry_anchors_kernel, held.shape, [model.anchor_frame, model.anchor, self._frames.frames, held]

    def _guided(self) -> tuple:
        return self._model.topology.sizes.nodes, self._dt, self._state.position.flatten(), self._frames.frames

    def _ends(self, x: wp.array, u: wp.array) -> tuple:
        model, sizes = self._model, self._model.topology.sizes
        inputs = [model.edge_frame, model.topology.edge_ends, sizes.points, sizes.stride, wp.float64(self._dt)]
        return carry_ends_kernel, (model.worlds, sizes.edge_ends), [*inputs, self._frames.frames, x, u]

    def carry_edges(self, x: wp.array, u: wp.array) -> None:
        """Write positions at the start of the step, and displacements, of the ends of edges of obstacles that move.

        Args:
            x: Points at the start of the step [m], shape (worlds * n_points,).
            u: Displacements [m], shape (worlds * stride,).
        """
        if self._model.edges_move:
            launch(*self._ends(x, u), [], self._model.device)

    def adj_carry_edges(self, x: wp.array, u: wp.array) -> None:
        """Adjoint of `carry_edges`: add to the gradients with respect to poses, from the gradients of `x` and `u`."""
        if self._model.edges_move:
            launch_own_adjoint(*self._ends(x, u), self._model.device)

    def guide(self, u: wp.array) -> None:
        """Move nodes on lines and planes normal to these by the displacement of their frames."""
        if self._guides is not None:
            self._guides.follow(u)

    @property
    def guides(self) -> bool:
        """Whether nodes are on lines or planes that may move."""
        return self._guides is not None

    def push(self, residual: wp.array) -> None:
        """Keep the forces on lines and planes at the end of the step, for the adjoint."""
        if self._guides is not None:
            self._guides.push(residual)

    def advance(self, found: wp.array, travel_out: wp.array) -> None:
        """Write the coordinates of the drives after the step; they change only in worlds whose step was `found`."""
        if self._frames.drives:
            inputs = [wp.float64(self._dt), found, self._state.travel, self._frames.rate]
            launch(advance_kernel, travel_out.shape, inputs, [travel_out], self._model.device)

    def clear_gradients(self) -> None:
        """Set the gradients with respect to poses and anchors to zero, before adjoints add to them."""
        if self._frames.names:
            self._frames.clear_gradients()
            clear_gradients([self._model.workspace.anchor])

    def adjoint(self, u: wp.array, seed: wp.array, a: wp.array, travel_out: wp.array, force_adj: wp.array) -> None:
        """Add the gradients with respect to the state, the control, anchors and the parameters of motion.

        They follow from the gradients with respect to poses and anchors.

        Args:
            u: Displacements at the end of the step, with gradients, shape (worlds * stride,).
            seed: Gradients of the loss with respect to displacements, shape (worlds * stride,).
            a: Adjoint variables, shape (worlds * stride,).
            travel_out: Coordinates of the drives after the step, shape (worlds, n_drives).
            force_adj: Gradients of the loss with respect to forces of nodes on lines and planes, shape (worlds *
                stride,).
        """
        if not self._frames.names:
            return
        model = self._model
        self._frames.adj_advance(self._of, self._dt, travel_out)
        if model.carries:
            launch_own_adjoint(*self._anchors(), model.device)
        if self._guides is not None:
            self._guides.adjoint(*self._guided(), u, seed, a, force_adj)
        self._frames.adj_place(self._of, self._dt, self._dt)
