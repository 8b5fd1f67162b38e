"""Kernel launches that compute the poses of moving obstacles at the stages of a step, and their adjoints."""

import dataclasses

import warp as wp

from warpbots.numerics import Launch, clear_gradients, launch_all
from warpbots.solvers.articulated.implicit_integrators import GAMMA
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.obstacle_motion import ObstacleMotion, place_kernel, time_kernel
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.tree_passes import adjoints
from warpbots.solvers.moving_frames import FrameState

__all__ = ["STAGE_SHARES", "StepOfObstacles"]

STAGE_SHARES = (GAMMA, 1.0)
"""Share of a step that has passed at the first of two stages, and at the second stage or a single stage."""


@dataclasses.dataclass(frozen=True, eq=False)
class StepOfObstacles:
    """The motion of obstacles in a step, and its adjoint; if no obstacle moves, all methods do nothing.

    A step may consist of parts (`impacts`). A part is given by the time `left` from its start to the end of the step,
    and by its `length` [s], each of shape (worlds,); without them, methods act on the whole step.

    Attributes:
        model: The model.
        method: Code of the integrator.
        state: State at the start of the step.
        control: Control signals, double precision, shape (worlds, channels).
        h: Length of the step [s]; None for the step that ended in `state`, whose length is `state.last_step`.
    """

    model: ArticulatedModel
    method: int
    state: ArticulatedState
    control: wp.array
    h: float | None = None

    def motion(self) -> ObstacleMotion:
        """Inputs of the poses in the step, as a Warp struct; also computes the velocities of the drives."""
        model, frames, motion = self.model, self.model.frames, ObstacleMotion()
        motion.method, motion.motions = self.method, frames.motions
        if not frames:
            return motion
        frames.set_rates(self._frame_state)
        motion.ended, motion.length = int(self.h is None), self.state.last_step
        if self.h is not None:
            motion.length = model.workspace.whole
            motion.length.fill_(self.h)
        motion.time, motion.travel, motion.rate = self.state.time, self.state.travel, frames.rate
        motion.position, motion.rotation = model.motion_position, model.motion_rotation
        motion.surface = model.surface_velocity
        return motion

    def place(self, share: float = 1.0, left: wp.array | None = None, length: wp.array | None = None) -> None:
        """Place the obstacles at the time at which a share of the step, or of a part of it, has passed."""
        if self.model.frames:
            launch_all(self._launches(share, left, length), self.model.device)

    def adj_place(self, share: float = 1.0, left: wp.array | None = None, length: wp.array | None = None) -> None:
        """Adjoint of `place`, from the gradients of the poses, which are zero afterwards."""
        frames = self.model.frames
        if frames:
            launches = self._launches(share, left, length)
            clear_gradients([self.model.workspace.moment])
            adjoints(launches, self.model.device)
            frames.adj_rates(self._frame_state)
            frames.clear_gradients()

    def end(self, state_out: ArticulatedState) -> None:
        """Write the time, the coordinates of the drives and the length of the step to the state at its end."""
        frames = self.model.frames
        if frames:
            frames.set_rates(self._frame_state)
            frames.advance(self._frame_state, self.h, state_out.travel)
            frames.advance_time(self._frame_state, self.h, state_out.time)
            frames.end_runs(self.h, state_out.time)
            state_out.last_step.fill_(self.h)

    def adj_end(self, state_out: ArticulatedState) -> None:
        """Adjoint of `end`."""
        frames = self.model.frames
        if frames:
            frames.clear_gradients()
            frames.adj_advance(self._frame_state, self.h, state_out.travel)
            frames.adj_advance_time(self._frame_state, self.h, state_out.time)
            frames.adj_rates(self._frame_state)
            frames.clear_gradients()

    @property
    def _frame_state(self) -> FrameState:
        return FrameState(self.model, self.state.time, self.state.travel, self.control)

    def _launches(self, share: float, left: wp.array | None, length: wp.array | None) -> list[Launch]:
        model, frames, motion = self.model, self.model.frames, self.motion()
        whole, at = motion.length, model.workspace.moment
        part = [whole, whole if left is None else left, whole if length is None else length, scalar(share)]
        return [
            (time_kernel, model.worlds, part, [at]),
            (place_kernel, (model.worlds, len(frames)), [motion, at], [frames.frames]),
        ]
