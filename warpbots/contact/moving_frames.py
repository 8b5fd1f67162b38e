"""Frames of obstacles and constraints that move as prescribed: their poses, and their velocities in a step.

A frame maps a point X of the scene at the start to x = R X + p. During a step from t to t + h, a point that the frame
carries and that is at x when the frame has the pose (R, p) moves by

    h u(x) = h (linear + spin (x - p)),   linear = (p_1 - p_0) / h,   spin = (R_1 - R_0) R^T / h,

with the poses (R_0, p_0) and (R_1, p_1) at the start and the end of the step. u is the displacement divided by the time
and not the velocity at some time in the step, so matter that sticks to a surface keeps its place on the surface. Poses
are interpolated in a table; the coordinates of drives are the integrals of their velocities.
"""

import functools

import warp as wp

from warpbots.scene import BEYOND, DRIVE_KINDS, INTERPOLATIONS
from warpbots.scene.motion_checks import MOST_DRIVES

__all__ = [
    "FrameMotions", "MovingPoses", "advance_drives_kernel", "advance_time_kernel", "belt_along", "belt_of",
    "belt_slope", "carried_along", "carried_velocity", "drive_rates_kernel", "end_motions_kernel",
    "place_frames_kernel", "place_solids_kernel", "pose_at", "rotation_of", "surface_velocity",
]  # fmt: skip

_scalar, _vec3, _mat33 = wp.float64, wp.vec3d, wp.mat33d
_ZERO, _ONE = (wp.constant(_scalar(c)) for c in (0.0, 1.0))
_TWO, _THREE = (wp.constant(_scalar(c)) for c in (2.0, 3.0))
_NAN = wp.constant(_scalar(float("nan")))
_SMALL = wp.constant(_scalar(1e-6))  # square of an angle below which series replace sines
_CUBIC = wp.constant(INTERPOLATIONS.index("cubic"))
_REPEAT = wp.constant(BEYOND.index("repeat"))
_TRANSLATION, _ROTATION, _SURFACE = (wp.constant(DRIVE_KINDS.index(k)) for k in ("translation", "rotation", "surface"))
_DRIVES = wp.constant(MOST_DRIVES)


@wp.struct
class FrameMotions:
    """Tables and drives of each frame, the same in all worlds.

    first: Index of the first pose of the table of a frame, shape (frames,).
    poses: Number of poses of the table of a frame, 0 for none, shape (frames,).
    interpolation: Index in `INTERPOLATIONS`, shape (frames,).
    beyond: Index in `BEYOND`, shape (frames,).
    pivot: Point about which the table turns [m], shape (frames,).
    obstacles: Number of frames of obstacles; frames of constraints come after them.
    first_drive: Index of the first drive of a frame, shape (frames,).
    drives: Number of drives of a frame, shape (frames,).
    end: Earliest time after which a frame has no pose [s]; infinite if there is no such time.
    time: Times of the poses of all tables, one table after the other [s], shape (poses,).
    kind: Index in `DRIVE_KINDS` of each drive, shape (drives,).
    axis: Axis of each drive at the start, shape (drives,).
    drive_pivot: A point on the axis of each drive at the start [m], shape (drives,).
    channel: Control channel of each drive, shape (drives,).
    """

    first: wp.array[int]
    poses: wp.array[int]
    interpolation: wp.array[int]
    beyond: wp.array[int]
    pivot: wp.array[_vec3]
    obstacles: int
    first_drive: wp.array[int]
    drives: wp.array[int]
    end: _scalar
    time: wp.array[_scalar]
    kind: wp.array[int]
    axis: wp.array[_vec3]
    drive_pivot: wp.array[_vec3]
    channel: wp.array[int]


@wp.struct
class MovingPoses:
    """Poses and velocities during a step, of frames or of solids on them, each of shape (worlds, n).

    rotation: Axes R.
    position: Origin p [m].
    linear: Velocity u at p [m/s].
    spin: Gradient of the velocity u [1/s].
    belt: Velocity of the surface relative to a solid [m/s].
    """

    rotation: wp.array2d[_mat33]
    position: wp.array2d[_vec3]
    linear: wp.array2d[_vec3]
    spin: wp.array2d[_mat33]
    belt: wp.array2d[_vec3]


@wp.func
def carried_velocity(p: _vec3, linear: _vec3, spin: _mat33, x: _vec3):
    """Velocity u(x) = linear + spin (x - p) of a frame at x [m/s]."""
    return linear + spin @ (x - p)


@wp.func
def belt_along(belt: _vec3, n: _vec3):
    """Velocity of a belt along a surface with a normal n of any length [m/s]; all of it if n is zero.

    A belt moves only along its surface: with the normal part it would push matter away at the end faces of a box.
    """
    nn = wp.dot(n, n)
    if nn == _ZERO:
        nn = _ONE
    return belt - (wp.dot(n, belt) / nn) * n


@wp.func
def belt_slope(belt: _vec3, n: _vec3):
    """Derivative of `belt_along` with respect to n."""
    nn = wp.dot(n, n)
    B = _mat33()
    if nn > _ZERO:
        share = wp.dot(n, belt) / nn
        B = (_TWO * share / nn) * wp.outer(n, n) - wp.outer(n, belt) / nn - share * wp.identity(n=3, dtype=_scalar)
    return B


@wp.func
def surface_velocity(poses: MovingPoses, w: int, k: int, x: _vec3, n: _vec3):
    """Velocity of the surface of k, in world w, at a point x with the normal n: of its frame and of its belt [m/s]."""
    carried = carried_velocity(poses.position[w, k], poses.linear[w, k], poses.spin[w, k], x)
    return carried + belt_along(poses.belt[w, k], n)


@wp.func
def carried_along(poses: MovingPoses, w: int, k: int, h: _scalar, x: _vec3):
    """Place, at the end of a step of length h, of a point that is carried along by k and is at x at the start.

    `poses` must be the poses at the end of the step: then the place is p_1 + R_1 R_0^T (x - p_0), and h spin =
    I - R_0 R_1^T.
    """
    way = h * poses.linear[w, k]
    return x + way - h * (wp.transpose(poses.spin[w, k]) @ (x - poses.position[w, k] + way))


@wp.func
def rotation_of(r: _vec3):
    """Rotation matrix R = I + sin(a)/a [r]x + (1 - cos(a))/a^2 [r]x^2 of a rotation vector r of length a."""
    s = wp.dot(r, r)
    one = _ONE - s / _scalar(6.0) + s * s / _scalar(120.0)
    two = _ONE / _TWO - s / _scalar(24.0) + s * s / _scalar(720.0)
    if s > _SMALL:
        a = wp.sqrt(s)
        one = wp.sin(a) / a
        two = (_ONE - wp.cos(a)) / s
    K = wp.skew(r)
    return wp.identity(n=3, dtype=_scalar) + one * K + two * (K @ K)


@wp.func
def hermite(
    before: _vec3, start: _vec3, end: _vec3, after: _vec3, left: _scalar, h: _scalar, right: _scalar, s: _scalar
):
    """Value at the fraction s of an interval of length h between `start` and `end`, by a cubic polynomial.

    The slope at an end is the slope of the parabola through `start`, `end` and the neighbour of this end: `before`,
    `left` earlier, or `after`, `right` later. An interval of length zero means that there is no neighbour.
    """
    slope = (end - start) / h
    m = slope
    n = slope
    if left > _ZERO:
        m = (h * (start - before) / left + left * slope) / (left + h)
    if right > _ZERO:
        n = (h * (after - end) / right + right * slope) / (right + h)
    if left == _ZERO and right > _ZERO:
        m = _TWO * slope - n
    if right == _ZERO and left > _ZERO:
        n = _TWO * slope - m
    t = _ONE - s
    return t * t * ((_ONE + _TWO * s) * start + s * h * m) + s * s * ((_ONE + _TWO * t) * end - t * h * n)


@wp.func
def row_of(table: wp.array3d[_scalar], w: int, k: int):
    """Row k of a table as a vector in 3D: a single column is an angle about z, two columns are x and y."""
    columns = table.shape[2]
    if columns == 1:
        return _vec3(_ZERO, _ZERO, table[w, k, 0])
    if columns == 2:
        return _vec3(table[w, k, 0], table[w, k, 1], _ZERO)
    return _vec3(table[w, k, 0], table[w, k, 1], table[w, k, 2])


@wp.func
def segment_of(motions: FrameMotions, f: int, t: _scalar):
    """Index, in the table of frame f, of the pose at the start of the interval that contains the time t."""
    low = int(0)
    high = motions.poses[f] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if motions.time[motions.first[f] + middle] <= t:
            low = middle
        else:
            high = middle
    return low


@wp.func
def time_in_table(motions: FrameMotions, f: int, t: _scalar):
    """Time in the table of frame f at the time t: at most the last time, or the time in a repeated table."""
    last = motions.time[motions.first[f] + motions.poses[f] - 1]
    if motions.beyond[f] == _REPEAT:
        return t - last * wp.floor(t / last)
    return wp.min(t, last)


@wp.func
def interpolated(motions: FrameMotions, f: int, table: wp.array3d[_scalar], w: int, t: _scalar):
    """Value of a table of frame f at the time t."""
    first = motions.first[f]
    n = motions.poses[f]
    at = time_in_table(motions, f, t)
    k = segment_of(motions, f, at)
    before = wp.max(k - 1, 0)
    after = wp.min(k + 2, n - 1)
    left = motions.time[first + k] - motions.time[first + before]
    right = motions.time[first + after] - motions.time[first + k + 1]
    if motions.beyond[f] == _REPEAT and n > 2:
        if k == 0:
            before = n - 2
            left = motions.time[first + n - 1] - motions.time[first + n - 2]
        if k == n - 2:
            after = 1
            right = motions.time[first + 1] - motions.time[first]
    h = motions.time[first + k + 1] - motions.time[first + k]
    s = (at - motions.time[first + k]) / h
    start = row_of(table, w, first + k)
    end = row_of(table, w, first + k + 1)
    value = start + s * (end - start)
    if motions.interpolation[f] == _CUBIC:
        value = hermite(
            row_of(table, w, first + before), start, end, row_of(table, w, first + after), left, h, right, s
        )
    return value


@wp.func(inline=False)  # called several times in a kernel: compiled once, for it is long
def pose_at(
    motions: FrameMotions, f: int, w: int, position: wp.array3d[_scalar], rotation: wp.array3d[_scalar],
    travel: wp.array2d[_scalar], rate: wp.array2d[_scalar], t: _scalar, ahead: _scalar,
):  # fmt: skip
    """Axes R and origin p [m] of frame f of world w at the time t, after drives have run for the time `ahead` [s]."""
    R = wp.identity(n=3, dtype=_scalar)
    p = _vec3()
    if motions.poses[f] > 0:
        R = rotation_of(interpolated(motions, f, rotation, w, t))
        p = motions.pivot[f] - R @ motions.pivot[f] + interpolated(motions, f, position, w, t)
    for k in range(wp.static(MOST_DRIVES)):  # unrolled: the backward pass needs R and p before each drive
        if k < motions.drives[f]:
            d = motions.first_drive[f] + k
            q = travel[w, d] + ahead * rate[w, d]
            axis = motions.axis[d]
            if motions.kind[d] == _TRANSLATION:
                p = p + R @ (q * axis)
            if motions.kind[d] == _ROTATION:
                E = rotation_of(q * axis)
                c = motions.drive_pivot[d]
                p = p + R @ (c - E @ c)
                R = R @ E
    return R, p


@wp.func
def belt_of(motions: FrameMotions, f: int, w: int, surface: wp.array3d[_scalar], rate: wp.array2d[_scalar]):
    """Velocity of the surface of frame f of world w relative to the frame, in the axes of the frame [m/s]."""
    own = _vec3()
    if f < motions.obstacles:
        own = row_of(surface, w, f)
    for k in range(wp.static(MOST_DRIVES)):
        if k < motions.drives[f]:
            d = motions.first_drive[f] + k
            if motions.kind[d] == _SURFACE:
                own = own + rate[w, d] * motions.axis[d]
    return own


@wp.kernel
def place_frames_kernel(
    # model
    motions: FrameMotions,
    position: wp.array3d[_scalar],
    rotation: wp.array3d[_scalar],
    surface: wp.array3d[_scalar],
    # step
    h: _scalar,
    ahead: _scalar,
    # state
    time: wp.array[_scalar],
    travel: wp.array2d[_scalar],
    # work
    rate: wp.array2d[_scalar],
    # out
    poses_out: MovingPoses,
):
    """Pose of each frame at the time t + `ahead`, and its velocity in a step from t to t + h."""
    w, f = wp.tid()
    t = time[w]
    R, p = pose_at(motions, f, w, position, rotation, travel, rate, t + ahead, ahead)
    R0, p0 = pose_at(motions, f, w, position, rotation, travel, rate, t, _ZERO)
    R1, p1 = pose_at(motions, f, w, position, rotation, travel, rate, t + h, h)
    poses_out.rotation[w, f] = R
    poses_out.position[w, f] = p
    poses_out.linear[w, f] = (p1 - p0) / h
    poses_out.spin[w, f] = (R1 - R0) @ wp.transpose(R) / h
    poses_out.belt[w, f] = R @ belt_of(motions, f, w, surface, rate)


@wp.kernel
def place_solids_kernel(
    # model
    frame: wp.array[int],
    axes: wp.array[_mat33],
    origin: wp.array[_vec3],
    # work
    frames: MovingPoses,
    # out
    poses_out: MovingPoses,
):
    """Pose and velocity of each solid that is fixed to a frame; the poses of other solids do not change."""
    w, s = wp.tid()
    f = frame[s]
    if f >= 0:
        R = frames.rotation[w, f]
        arm = R @ origin[s]
        poses_out.rotation[w, s] = R @ axes[s]
        poses_out.position[w, s] = frames.position[w, f] + arm
        poses_out.linear[w, s] = frames.linear[w, f] + frames.spin[w, f] @ arm
        poses_out.spin[w, s] = frames.spin[w, f]
        poses_out.belt[w, s] = frames.belt[w, f]


@functools.cache
def drive_rates_kernel(scalar: type) -> wp.Kernel:
    """Kernel over (worlds, drives): velocities of drives from control signals of the Warp type `scalar`."""

    @wp.kernel(module=wp.get_module(f"warpbots.contact.drive_rates_{scalar.__name__}"))
    def drive_rates(
        # model
        channel: wp.array[int],
        speed: wp.array2d[_scalar],
        # state
        control: wp.array2d[scalar],
        # out
        rate_out: wp.array2d[_scalar],
    ):
        """Velocity of each drive: q' = u speed."""
        w, d = wp.tid()
        rate_out[w, d] = speed[w, d] * _scalar(control[w, channel[d]])

    return drive_rates


@wp.kernel
def advance_drives_kernel(
    # step
    h: _scalar,
    # state
    travel: wp.array2d[_scalar],
    # work
    rate: wp.array2d[_scalar],
    # out
    travel_out: wp.array2d[_scalar],
):
    """Coordinate of each drive after a step of length h."""
    w, d = wp.tid()
    travel_out[w, d] = travel[w, d] + h * rate[w, d]


@wp.kernel
def advance_time_kernel(
    # step
    h: _scalar,
    # state
    time: wp.array[_scalar],
    # out
    time_out: wp.array[_scalar],
):
    """Time after a step: t' = t + h."""
    w = wp.tid()
    time_out[w] = time[w] + h


@wp.kernel(enable_backward=False)
def end_motions_kernel(
    # model
    end: _scalar,
    # out
    time_out: wp.array[_scalar],
):
    """Set the time of a world to NaN after the end of a table, which ends the run of the world."""
    w = wp.tid()
    if time_out[w] > end:
        time_out[w] = _NAN
