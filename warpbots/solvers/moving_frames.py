"""Frames of obstacles and constraints that move: built from a scene, placed in each step, with the adjoint."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import warp as wp

from warpbots.contact import signed_distance
from warpbots.contact.moving_frames import (
    FrameMotions,
    MovingPoses,
    advance_drives_kernel,
    advance_time_kernel,
    drive_rates_kernel,
    end_motions_kernel,
    place_frames_kernel,
    place_solids_kernel,
)
from warpbots.numerics import launch, launch_adjoint, real_numpy
from warpbots.scene import BEYOND, DRIVE_KINDS, INTERPOLATIONS, Constraint, Obstacle, Scene, VelocityDrive
from warpbots.scene.motion_checks import drives_of
from warpbots.solvers.device_arrays import device_array, tiled
from warpbots.solvers.motion_parameters import MotionParameters, moving_parts

__all__ = ["FrameState", "MovingFrames", "have_met"]


@dataclasses.dataclass(frozen=True, eq=False)
class FrameState:
    """Inputs of the poses of frames; the field ``grad`` of each array has its gradient.

    Attributes:
        parameters: Object with the parameters of motion as attributes: a model.
        time: Time of each world [s], double precision, shape (worlds,).
        travel: Coordinates of the drives [m or rad], double precision, shape (worlds, n_drives).
        control: Control signals in [-1, 1], shape (worlds, channels).
    """

    parameters: MotionParameters
    time: wp.array
    travel: wp.array
    control: wp.array


def _poses(worlds: int, count: int, device: wp.Device, moving: bool) -> MovingPoses:
    poses = MovingPoses()
    for name, dtype in (
        ("rotation", wp.mat33d), ("position", wp.vec3d), ("linear", wp.vec3d), ("spin", wp.mat33d), ("belt", wp.vec3d),
    ):  # fmt: skip
        setattr(poses, name, wp.zeros((worlds, count), dtype=dtype, device=device, requires_grad=moving))
    return poses


class MovingFrames:
    """The frames of all obstacles and constraints that move in a scene, and the solids on these frames.

    Attributes:
        scene: The scene.
        worlds: Number of worlds.
        device: Device of all arrays.
        motions: Tables and drives of each frame, as a Warp struct.
        frames: Poses and velocities of the frames in the step of the last call of `place`, shape (worlds, n_frames).
            The adjoints of kernels add to the ``grad`` of these arrays.
        solids: Poses and velocities of all solids in this step, shape (worlds, n_solids); solids at rest have their
            pose in the scene and a velocity of zero. Without frames, these arrays have no ``grad``.
        of_obstacle: Index of the frame of each obstacle, -1 for an obstacle at rest, shape (n_obstacles,).
        of_constraint: Index of the frame of each constraint, -1 for a constraint at rest, shape (n_constraints,).
        names: Names of the obstacles and constraints of the frames.
        drives: Number of drives.
        rate: Velocities of the drives in the step of the last call of `place` [m/s or rad/s], shape (worlds, n_drives).
        end: Time after which a frame has no pose [s]; infinite if there is no such time.
        ends_first: Name of the obstacle or constraint whose table ends at this time, or None.
        absent: Names of the parameters of motion that the scene does not use.
    """

    def __init__(
        self, scene: Scene, worlds: int, device: wp.Device, solids: object = None,
        obstacle_of: Sequence[int] | None = None,
    ):  # fmt: skip
        """Prepare the frames of a scene.

        Args:
            scene: The scene.
            worlds: Number of worlds.
            device: Device of the arrays.
            solids: Solids of the obstacles in the frame of the scene, as a Warp struct (`warpbots.contact.solid`), or
                None.
            obstacle_of: Index of the obstacle of each solid; None if solid k is obstacle k.
        """
        moving = moving_parts(scene)
        self.names = [part.name for part in moving]
        self.scene, self.worlds, self.device = scene, worlds, device
        self.of_obstacle = self._numbers(scene.obstacles, moving)
        self.of_constraint = self._numbers(scene.constraints, moving)
        self.motions = self._motions(scene, moving, device)
        self.drives = int(self.motions.channel.size)
        ends = {p.name: p.motion.end for p in moving if p.motion is not None}
        self.end = min(ends.values(), default=np.inf)
        self.ends_first = min(ends, key=ends.__getitem__) if np.isfinite(self.end) else None
        self.frames = _poses(worlds, len(moving), device, True)
        count = 0 if solids is None else solids.kind.size
        self.solids = _poses(worlds, count, device, bool(moving))
        self._axes, self._origin = (solids.rotation, solids.position) if count else (None, None)
        owner = np.arange(count) if obstacle_of is None else np.asarray(obstacle_of, dtype=int)
        self.of_solid = device_array(self.of_obstacle[owner] if count else [], device, int)
        if count:
            wp.copy(self.solids.rotation, tiled(solids.rotation.numpy(), worlds, device, wp.mat33d))
            wp.copy(self.solids.position, tiled(solids.position.numpy(), worlds, device, wp.vec3d))
        tables = any(p.motion is not None for p in moving)
        self.absent = set() if tables else {"motion_position", "motion_rotation"}
        self.absent |= set() if self.drives else {"drive_speed"}
        self.absent |= set() if (self.of_obstacle >= 0).any() else {"surface_velocity"}
        self.rate = wp.zeros((worlds, self.drives), dtype=wp.float64, device=device, requires_grad=True)

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def _numbers(parts: Sequence[Obstacle | Constraint], moving: list) -> np.ndarray:
        of = {id(part): k for k, part in enumerate(moving)}
        return np.array([of.get(id(part), -1) for part in parts], dtype=int)

    @staticmethod
    def _motions(scene: Scene, moving: list, device: wp.Device) -> FrameMotions:
        motions, chains = FrameMotions(), [drives_of(part.name, scene.actuators) for part in moving]
        tables, drives = [part.motion for part in moving], [d for chain in chains for _, d in chain]
        poses = [0 if m is None else len(m.times) for m in tables]

        def numbers(values: list) -> wp.array:
            return device_array(values, device, int)

        def vectors(values: list) -> wp.array:
            spatial = [(*v, 0.0)[:3] if v is not None else (0.0, 0.0, 0.0) for v in values]
            return device_array(np.array(spatial).reshape(-1, 3), device, wp.vec3d)

        motions.first, motions.poses = numbers(np.cumsum([0, *poses])[:-1]), numbers(poses)
        motions.interpolation = numbers([0 if m is None else INTERPOLATIONS.index(m.interpolation) for m in tables])
        motions.beyond = numbers([0 if m is None else BEYOND.index(m.beyond) for m in tables])
        motions.pivot = vectors([None if m is None else m.pivot for m in tables])
        motions.obstacles = sum(isinstance(part, Obstacle) for part in moving)
        motions.first_drive = numbers(np.cumsum([0, *map(len, chains)])[:-1])
        motions.drives = numbers([len(chain) for chain in chains])
        motions.end = min((m.end for m in tables if m is not None), default=np.inf)
        times = [m.times for m in tables if m is not None]
        motions.time = device_array(np.concatenate([np.zeros(0), *times]), device, wp.float64)
        motions.kind = numbers([DRIVE_KINDS.index(d.kind) for d in drives])
        motions.axis = vectors([_axis(d) for d in drives])
        motions.drive_pivot = vectors([d.pivot for d in drives])
        motions.channel = numbers([channel for chain in chains for channel, _ in chain])
        return motions

    def place(self, of: FrameState, h: float, ahead: float) -> None:
        """Compute `frames` and `solids` for a step of length `h` [s], with their poses `ahead` [s] after its start."""
        if not self.names:
            return
        self.set_rates(of)
        launch(*self._frames(of, h, ahead), self.device)
        if self.of_solid.size:
            launch(*self._solids(), self.device)

    def poses(
        self, parameters: MotionParameters, time: np.ndarray, travel: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Axes R and origins p [m] of all frames at a time, shapes (worlds, n_frames, 3, 3) and (worlds, n_frames, 3).

        A point X of the scene moves to R X + p.

        Args:
            parameters: Object with the parameters of motion as attributes: a model.
            time: Time of each world [s], shape (worlds,).
            travel: Coordinates of the drives [m or rad], shape (worlds, n_drives).
        """
        arrays = [wp.array(a, dtype=wp.float64, device=self.device) for a in (time, travel, np.zeros_like(travel))]
        found = _poses(self.worlds, len(self), self.device, False)
        inputs = [self.motions, *_tables(parameters), wp.float64(1.0), wp.float64(0.0), *arrays]
        launch(place_frames_kernel, (self.worlds, len(self)), inputs, [found], self.device)
        return found.rotation.numpy(), found.position.numpy()

    def obstacle_poses(
        self, parameters: MotionParameters, time: np.ndarray, travel: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`poses` of all obstacles, shapes (worlds, n_obstacles, 3, 3) and (worlds, n_obstacles, 3).

        Obstacles that do not move have R = 1 and p = 0.
        """
        R = np.tile(np.eye(3), (self.worlds, len(self.of_obstacle), 1, 1))
        p = np.zeros((self.worlds, len(self.of_obstacle), 3))
        moving = self.of_obstacle >= 0
        if moving.any():
            axes, origins = self.poses(parameters, time, travel)
            R[:, moving], p[:, moving] = (a[:, self.of_obstacle[moving]] for a in (axes, origins))
        return R, p

    def on_obstacles(
        self, parameters: MotionParameters, time: np.ndarray, travel: np.ndarray, w: int, x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Points of a world at a time, in the frame of each obstacle, and the axes of these frames.

        Args:
            parameters: Object with the parameters of motion as attributes: a model.
            time: Time of each world [s], shape (worlds,).
            travel: Coordinates of the drives [m or rad], shape (worlds, n_drives).
            w: The world.
            x: The points [m], shape (n, dim).

        Returns:
            Points X [m], shape (n_obstacles, n, dim), and axes R [1], shape (n_obstacles, dim, dim), with x = R X + p.
        """
        dim = self.scene.dim
        R, p = (a[w] for a in self.obstacle_poses(parameters, time, travel))
        R, p = R[:, :dim, :dim], p[:, :dim]
        return (x - p[:, None]) @ R, R

    def depths(
        self, parameters: MotionParameters, time: np.ndarray, travel: np.ndarray, w: int, x: np.ndarray
    ) -> np.ndarray:
        """Depth of a point, shape (dim,), in each obstacle [m], negative outside, shape (n_obstacles,).

        The arguments are those of `on_obstacles`.
        """
        points, _ = self.on_obstacles(parameters, time, travel, w, x[None])
        shapes = (obstacle.shape for obstacle in self.scene.obstacles)
        return np.array([-float(signed_distance(*pair)[0]) for pair in zip(shapes, points, strict=True)])

    def clear_gradients(self) -> None:
        """Set the gradients with respect to all poses to zero, before adjoints add to them."""
        for poses in (self.frames, self.solids) if self.names else ():
            for name in MovingPoses.vars:
                getattr(poses, name).grad.zero_()
        self.rate.grad.zero_()

    def adj_place(self, of: FrameState, h: float, ahead: float) -> None:
        """Adjoint of `place`: add to the gradients of all arrays of `of`, from those of `frames` and `solids`."""
        if not self.names:
            return
        if self.of_solid.size:
            kernel, dim, inputs, outputs = self._solids()
            launch_adjoint(kernel, dim, inputs, outputs, [None] * 3 + [MovingPoses()], [MovingPoses()], self.device)
        kernel, dim, inputs, outputs = self._frames(of, h, ahead)
        adj = [FrameMotions(), *(None if a.grad is None else a.grad for a in inputs[1:4]), None, None]
        adj += [of.time.grad, of.travel.grad, self.rate.grad]
        launch_adjoint(kernel, dim, inputs, outputs, adj, [MovingPoses()], self.device)
        self.adj_rates(of)

    def set_rates(self, of: FrameState) -> None:
        """Compute the velocities `rate` of the drives."""
        launch(*self._rates(of), self.device)

    def adj_rates(self, of: FrameState) -> None:
        """Adjoint of `set_rates`."""
        if self.drives:
            kernel, dim, inputs, outputs = self._rates(of)
            adj = [None, inputs[1].grad, of.control.grad]
            launch_adjoint(kernel, dim, inputs, outputs, adj, [self.rate.grad], self.device)

    def advance(self, of: FrameState, h: float, travel_out: wp.array) -> None:
        """Write the coordinates of the drives after a step of length `h` [s]; `place` must run first."""
        if self.drives:
            launch(*self._advance(of, h, travel_out), self.device)

    def adj_advance(self, of: FrameState, h: float, travel_out: wp.array) -> None:
        """Adjoint of `advance`; `adj_place` must run afterwards, because it propagates the gradients of `rate`."""
        if self.drives:
            kernel, dim, inputs, outputs = self._advance(of, h, travel_out)
            adj = [None, of.travel.grad, self.rate.grad]
            launch_adjoint(kernel, dim, inputs, outputs, adj, [travel_out.grad], self.device)

    def time_step(self, h: float) -> wp.float64:
        """Length of a step by which time advances [s]; exact if anything moves, else rounded like forces."""
        return wp.float64(h if self.names else real_numpy(h))

    def advance_time(self, of: FrameState, h: float, time_out: wp.array) -> None:
        """Write the time after a step of length `h` [s]."""
        launch(advance_time_kernel, self.worlds, [wp.float64(h), of.time], [time_out], self.device)

    def adj_advance_time(self, of: FrameState, h: float, time_out: wp.array) -> None:
        """Adjoint of `advance_time`."""
        adj, inputs = [None, of.time.grad], [wp.float64(h), of.time]
        launch_adjoint(
            advance_time_kernel, self.worlds, inputs, [time_out], adj, [time_out.grad], self.device
        )  # fmt: skip

    def end_runs(self, h: float, time_out: wp.array) -> None:
        """Set the time of each world that is past the end of a table to NaN; the simulation then stops this world.

        Args:
            h: Length of the step [s]. A time that is later than the end by a millionth of the step or of the table is
                not past the end, because the sum of the steps is rounded.
            time_out: Time after the step [s], shape (worlds,).
        """
        if self.ends_first is not None:
            end = wp.float64(self.end + 1e-6 * max(h, self.end))
            launch(end_motions_kernel, self.worlds, [end], [time_out], self.device)

    def diagnosis(self, time: np.ndarray, time_out: np.ndarray, h: float) -> str | None:
        """A sentence that names the table that ended in a step, with the remedy; None if none did.

        Args:
            time: Time before the step [s], shape (worlds,).
            time_out: Time after the step [s], shape (worlds,).
            h: Length of the step [s].
        """
        late = np.isfinite(time) & ~np.isfinite(time_out) & (time + h > self.end)
        if self.ends_first is None or not late.any():
            return None
        return (
            f"the prescribed motion of {self.ends_first!r} ends at {self.end:g} s, and world {int(late.argmax())} goes "
            f"on to {float(time[late.argmax()]) + h:g} s: give the table more poses, or use "
            f"PrescribedMotion(beyond='hold') or 'repeat'"
        )

    def _rates(self, of: FrameState) -> tuple:
        inputs = [self.motions.channel, of.parameters.drive_speed, of.control]
        return drive_rates_kernel(of.control.dtype), (self.worlds, self.drives), inputs, [self.rate]

    def _frames(self, of: FrameState, h: float, ahead: float) -> tuple:
        inputs = [
            self.motions,
            *_tables(of.parameters),
            wp.float64(h),
            wp.float64(ahead),
            of.time,
            of.travel,
            self.rate,
        ]
        return place_frames_kernel, (self.worlds, len(self)), inputs, [self.frames]

    def _solids(self) -> tuple:
        inputs = [self.of_solid, self._axes, self._origin, self.frames]
        return place_solids_kernel, (self.worlds, self.of_solid.size), inputs, [self.solids]

    def _advance(self, of: FrameState, h: float, travel_out: wp.array) -> tuple:
        return advance_drives_kernel, (self.worlds, self.drives), [wp.float64(h), of.travel, self.rate], [travel_out]


def have_met(point: str, first: str, second: str, time: float) -> str:
    """Sentence about a point of matter between two obstacles that have met, with the remedy.

    Args:
        point: The point, in words.
        first: Name of an obstacle.
        second: Name of the other obstacle.
        time: The time [s].
    """
    return (
        f"{point} is between the obstacles {first!r} and {second!r} at {time:.4g} s: they have met, and leave no room "
        f"for matter; end the motion earlier"
    )


def _axis(drive: VelocityDrive) -> Sequence[float]:
    return (0.0, 0.0, 1.0) if drive.axis is None else drive.axis


def _tables(parameters: MotionParameters) -> list[wp.array]:
    """Inputs of `place_frames_kernel`: displacements and rotations of the tables, and velocities of surfaces."""
    return [parameters.motion_position, parameters.motion_rotation, parameters.surface_velocity]
