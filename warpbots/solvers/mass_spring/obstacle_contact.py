"""Contact of masses with obstacles; differentiated by Warp.

Contact changes the velocity at the end of a step, and the position follows from this velocity. If a mass is in contact
with several obstacles, the velocity after one contact is the input of the next contact. Between the stages of a step,
masses move as if there were no obstacles; so the displacement of a mass in contact is computed only from its velocities
at the start and the end of the step. The loop over obstacles has constant bounds and is unrolled: Warp's backward pass
does not replay a dynamic loop, so it would read the accumulated values as zero in later nonlinear operations.
"""

import functools

import warp as wp

from warpbots.contact import constrain
from warpbots.contact.moving_frames import MovingPoses, carried_velocity, surface_velocity
from warpbots.contact.solid import LINEAR, Solids, may_touch, solid_distance
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, real, vector

__all__ = ["contact_kernel", "contact_with_obstacle", "obstacle_force_kernel", "stop_kernel"]

_PARTS = wp.constant(8)
"""Number of points along a long displacement at which a mass is tested for being in an obstacle."""


_MET = wp.constant(real(0.02))
"""Overlap of two obstacles at which they have met [half of the smallest thickness]; a smaller one may be rounding."""

_OPPOSITE = wp.constant(real(0.9))
"""Cosine of the largest angle to the opposite direction at which faces are opposite: masses cannot move sideways."""


@functools.cache
def _surface(dim: int) -> wp.Function:
    vec, (in_space, from_space) = vector(dim), space_maps(dim)

    @wp.func
    def surface(solids: Solids, o: int, R: wp.mat33d, p: wp.vec3d, x: vec):
        """Signed distance [m] from x to obstacle o, and the outward unit normal of the obstacle.

        The columns of R are the axes of the obstacle, and p is its origin.
        """
        d, n = solid_distance(solids, 0, o, R, p, in_space(x))
        if solids.kind[o] >= LINEAR:
            n = wp.normalize(n)
        return real(d), from_space(n)

    return surface


@functools.cache
def contact_with_obstacle(dim: int) -> wp.Function:
    """Warp function after_contact(...): velocity of a mass after contact with one obstacle, and its depth in it.

    The obstacle may move, and its surface may move along itself like a belt. With a stiffness of 0 the
    surface is rigid. With a stiffness K its pressure is K d (1 - a v . n), with the depth d, the outward normal n, the
    damping a and the velocity v relative to the surface. This is the law of Hunt and Crossley (1975) with an exponent
    of 1: the pressure is continuous as contact begins, and never negative. Without contact the depth is 0 or less, and
    v' = v. A mass with a negative stiffness touches nothing.
    """
    vec, surface, constrain_velocity, (in_space, from_space) = (
        vector(dim),
        _surface(dim),
        constrain(dim),
        space_maps(dim),
    )

    @wp.func
    def after_contact(
        solids: Solids, poses: MovingPoses, w: int, o: int, condition: int, mu: real, extra: real, stiffness: real,
        damping: real, h: real, mass: real, x: vec, v: vec,
    ):  # fmt: skip
        """Velocity of the mass after contact with obstacle o of world w for the time h [m/s], and its depth in o [m].

        `mu` is the coefficient of sliding friction; static friction is larger by `extra`.
        """
        d, n = surface(solids, o, poses.rotation[w, o], poses.position[w, o], x)
        allowed = v
        if d < real(0.0) and stiffness >= real(0.0):
            moving = from_space(surface_velocity(poses, w, o, in_space(x), in_space(n)))
            against = v - moving
            push = -wp.dot(against, n)
            if stiffness > real(0.0):
                push = stiffness * -d * (real(1.0) + damping * push) * h / mass
            allowed = moving + constrain_velocity(against, n, push, condition, mu, extra)
        return allowed, -d

    return after_contact


@functools.cache
def contact_kernel(dim: int, obstacle_count: int, stages: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: applies contact to each mass that is inside an obstacle at the first stage.

    The array of friction coefficients may have several `copies` of the row of each world (`warpbots.numerics.Copies`).

    Args:
        dim: 2 or 3.
        obstacle_count: Number of obstacles of the scene.
        stages: Number of stages of the integration scheme.
    """
    vec, after_contact, (in_space, _) = vector(dim), contact_with_obstacle(dim), space_maps(dim)

    module = wp.get_module(f"warpbots.springs.obstacle_contact_{dim}d_{obstacle_count}_{stages}")
    wp.set_module_options({"max_unroll": max(16, obstacle_count)}, module)

    @wp.kernel(module=module)
    def contact(
        # model
        mass: wp.array[real],
        stiffness: wp.array[real],
        damping: real,
        obstacles: Solids,
        poses: MovingPoses,
        condition: wp.array[int],
        extra: wp.array[real],
        friction: wp.array2d[real],
        count: int,
        copies: int,
        # step
        drift: real,
        follow: real,
        h: real,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        # work
        free_x: wp.array[vec],
        free_v: wp.array[vec],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
    ):
        """v' = constrain(V), x' = X + follow (v' - V), with the end (X, V) of the step without contact.

        If the scheme has several stages, a mass in contact gets x' = x + (h - follow) v + follow v'; with a single
        stage both formulas give the same x'. `follow` is h times the sum of the weights p of the scheme.
        """
        i = wp.tid()
        w = i // count
        n = i - w * count
        row = w * copies + (n & (copies - 1))
        allowed = free_v[i]
        in_contact = bool(False)
        for o in range(wp.static(obstacle_count)):
            at = x[i] + drift * v[i]
            R = poses.rotation[w, o]
            p = poses.position[w, o]
            if may_touch(obstacles.kind[o], obstacles.reach[o], R, p, in_space(at)):
                allowed, depth = after_contact(
                    obstacles, poses, w, o, condition[o], friction[row, o], extra[o], stiffness[n], damping, h,
                    mass[i], at, allowed,
                )  # fmt: skip
                if depth > real(0.0):
                    in_contact = True
        end = free_x[i] + follow * (allowed - free_v[i])
        if wp.static(stages > 1):  # noqa: SIM102 (decides what is compiled)
            if in_contact:
                end = x[i] + (h - follow) * v[i] + follow * allowed
        x_out[i] = end
        v_out[i] = allowed

    return contact


@functools.cache
def obstacle_force_kernel(dim: int, obstacle_count: int) -> wp.Kernel:
    """Kernel over (worlds, masses): computes the force of each mass on each obstacle, and its velocity after contact.

    The force is the mean over the time h, with the contact law of `contact_kernel`.

    Args:
        dim: 2 or 3.
        obstacle_count: Number of obstacles of the scene.
    """
    vec = vector(dim)
    after_contact = contact_with_obstacle(dim)

    module = wp.get_module(f"warpbots.springs.obstacle_force_{dim}d_{obstacle_count}")
    wp.set_module_options({"max_unroll": max(16, obstacle_count)}, module)

    @wp.kernel(module=module)
    def obstacle_force(
        # model
        mass: wp.array2d[real],
        stiffness: wp.array[real],
        damping: real,
        obstacles: Solids,
        poses: MovingPoses,
        condition: wp.array[int],
        extra: wp.array[real],
        friction: wp.array2d[real],
        copies: int,
        # step
        h: real,
        # state
        x: wp.array2d[vec],
        v: wp.array2d[vec],
        # work
        force: wp.array2d[NODE],
        # out
        force_out: wp.array3d[vec],
        velocity_out: wp.array2d[vec],
    ):
        """Force m (V - constrain(V)) / h on each obstacle, beginning with the free velocity V = v + h f / m.

        After each obstacle V is replaced by constrain(V); the last V is the velocity after contact.
        """
        w, i = wp.tid()
        m = mass[w, i]
        row = w * copies + (i & (copies - 1))
        f = vec()
        for c in range(wp.static(dim)):
            f[c] = force[w, i][c]
        free = v[w, i] + h / m * f
        for o in range(wp.static(obstacle_count)):
            allowed, _depth = after_contact(
                obstacles, poses, w, o, condition[o], friction[row, o], extra[o], stiffness[i], damping, h, m,
                x[w, i], free,
            )  # fmt: skip
            force_out[w, o, i] = m / h * (free - allowed)
            free = allowed
        velocity_out[w, i] = free

    return obstacle_force


@functools.cache
def stop_kernel(dim: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: sets the position of a mass that passes through an obstacle to NaN.

    A NaN ends the run. A mass inside an obstacle passes through the obstacle in two cases: at the end of the step the
    mass is below the opposite face, which would push it out on the far side; or the mass is outside again after a
    displacement of more than `half` (half of the smallest thickness) into the face. The kernel tests whether a mass is
    inside at the start of the step and, for a displacement longer than `half`, at points along the displacement.

    If obstacles move, two of them may meet. At a mass between opposite faces, the sum of its distances is the gap; a
    mass also gets the position NaN if there is no gap left.
    """
    vec = vector(dim)
    surface, (in_space, from_space) = _surface(dim), space_maps(dim)
    nan = real(float("nan"))

    @wp.kernel(module=wp.get_module(f"warpbots.springs.stop_{dim}d"), enable_backward=False)
    def stop_passing(
        # model
        obstacles: Solids,
        poses: MovingPoses,
        moving: int,
        half: real,
        count: int,
        # step
        h: wp.float64,
        # state
        x: wp.array[vec],
        # out
        x_out: wp.array[vec],
    ):
        """x' = NaN if the displacement from x to x', relative to an obstacle, passes through the obstacle."""
        i = wp.tid()
        w = i // count
        start = x[i]
        passes = bool(False)
        for o in range(obstacles.kind.shape[0]):
            R = poses.rotation[w, o]
            p = poses.position[w, o]
            displacement = x_out[i] - start
            if moving == 1:
                carried = h * carried_velocity(p, poses.linear[w, o], poses.spin[w, o], in_space(start))
                displacement = displacement - from_space(carried)
            d = real(0.0)
            face = vec()
            if may_touch(obstacles.kind[o], obstacles.reach[o], R, p, in_space(start)):
                d, face = surface(obstacles, o, R, p, start)
            if d >= real(0.0) and wp.length(displacement) > half:
                for k in range(1, _PARTS):
                    if d >= real(0.0):
                        d, face = surface(obstacles, o, R, p, start + real(k) / real(_PARTS) * displacement)
            if moving == 1 and d < real(0.0):
                for q in range(obstacles.kind.shape[0]):
                    e, other = surface(obstacles, q, poses.rotation[w, q], poses.position[w, q], start)
                    passes = passes or (d + e < -_MET * half and wp.dot(face, other) < -_OPPOSITE)
            if d < real(0.0):
                d_end, face_end = surface(obstacles, o, R, p, start + displacement)
                if d_end < real(0.0):
                    passes = passes or wp.dot(face, face_end) < real(0.0)
                else:
                    passes = passes or wp.dot(face, displacement) < -half
        if passes:
            x_out[i] = vec(nan)

    return stop_passing
