"""Points of matter that touch rigid bodies or are bound to them: which, where, and with which friction.

Bodies have their poses at the start of the step. A point of matter is a ball with a radius, which may be zero. It
touches a body if it reaches the surface of the body, and of several bodies it touches the nearest.

The place of a point is at first the place of the surface that is nearest to it, and its velocity is zero. A solver of
matter adds the velocity of the point, and replaces the place if its points exchange impulses elsewhere.

A point that is bound to a body sticks to it: it ends the step with the velocity of the body, with which it moves along
a tangent where the body turns. With the correction beta, contact therefore acts on its velocity plus beta r / h, where
r is its displacement from its place in the body at the start. The impulse acts at one point on both, so that this
changes neither momentum nor angular momentum. Where forces are measured, the point has the velocity of the body
instead, because its own velocity and r depend on the length of the last step. At first its velocity is this change.
"""

import functools
from typing import NamedTuple

import warp as wp

from warpbots.contact import CODES
from warpbots.contact.solid import LINEAR, Solids, solid_distance, solid_frame
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import real, sum_of_lanes, vector
from warpbots.solvers.articulated.exchange import velocity_at
from warpbots.solvers.articulated.exchange_arrays import Exchange
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Links
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.coupled.body_solids import SolidBoxes

__all__ = [
    "TouchingPoints",
    "add_counts_kernel",
    "end_of_points",
    "list_points_kernel",
    "place_solids_kernel",
    "touching_points",
    "wrench_kernel",
]

_sum = sum_of_lanes(vec3)
_FRICTION, _STICKY = wp.constant(CODES["friction"]), wp.constant(CODES["sticky"])
_ZERO = wp.constant(scalar(0.0))
_HALF = wp.constant(scalar(0.5))


@wp.kernel(enable_backward=False)
def place_solids_kernel(
    # model
    bodies: int,
    solids: Solids,
    boxes: SolidBoxes,
    lanes: int,
    # work
    links: Links,
    # out
    axes_out: wp.array[mat33],
    origin_out: wp.array[vec3],
    lower_out: wp.array[vec3],
    upper_out: wp.array[vec3],
    counts_out: wp.array[int],
):
    """Write axes and origin of the solid of each body, and the corners of boxes along the axes; clear the counts.

    There is a box around each body of a world and then one around all of them.
    """
    w, lane = wp.tid()
    parts = counts_out.shape[0] // origin_out.shape[0]
    for b in range(lane, bodies, lanes):
        k = w * bodies + b
        R = links.body_rotation[k]
        p = links.body_position[k]
        axes, origin = solid_frame(solids, b, R, p)
        axes_out[k] = axes
        origin_out[k] = origin
        middle = p + R @ boxes.middle[b]
        half = boxes.half[b]
        if wp.isfinite(half[0]):  # a turned box of infinite size has edges of 0 times infinity
            half = vec3(wp.dot(wp.abs(R[0]), half), wp.dot(wp.abs(R[1]), half), wp.dot(wp.abs(R[2]), half))
        lower_out[k + w] = middle - half
        upper_out[k + w] = middle + half
        for part in range(parts):
            counts_out[k * parts + part] = 0
    sync()
    if lane == 0:
        first = w * (bodies + 1)
        lower = lower_out[first]
        upper = upper_out[first]
        for b in range(1, bodies):
            lower = wp.min(lower, lower_out[first + b])
            upper = wp.max(upper, upper_out[first + b])
        lower_out[first + bodies] = lower
        upper_out[first + bodies] = upper


@wp.func
def is_near(lower: vec3, upper: vec3, r: scalar, y: vec3):
    """Whether y is at most r away, along each axis, from a box with these corners."""
    return (
        y[0] >= lower[0] - r and y[0] <= upper[0] + r
        and y[1] >= lower[1] - r and y[1] <= upper[1] + r
        and y[2] >= lower[2] - r and y[2] <= upper[2] + r
    )  # fmt: skip


@wp.func
def surface_of(solids: Solids, b: int, R: mat33, p: vec3, x: vec3):
    """Signed distance of x from the solid of body b [m], and its unit gradient."""
    d, n = solid_distance(solids, 0, b, R, p, x)
    if solids.kind[b] >= LINEAR:
        n = wp.normalize(n)
    return d, n


@wp.func
def length_of_part(matter: int, parts: int):
    """Number of points in each part of the matter of a world but the last; parts follow one another."""
    return (matter + parts - 1) // parts


@wp.kernel(enable_backward=False)
def add_counts_kernel(
    # model
    parts: int,
    # work
    counts: wp.array[int],
    # out
    next_out: wp.array[int],
    count_out: wp.array[int],
):
    """Write, for each part of each body, the sum of the counts of the parts before, and the sum over all parts."""
    k = wp.tid()
    total = int(0)
    for c in range(k * parts, (k + 1) * parts):
        next_out[c] = total
        total += counts[c]
    count_out[k] = total


@wp.kernel(enable_backward=False)
def list_points_kernel(
    # model
    bodies: int,
    matter: int,
    parts: int,
    # work
    body: wp.array[int],
    count: wp.array[int],
    # out
    next_out: wp.array[int],
    first_out: wp.array[int],
    row_out: wp.array[int],
):
    """List the points of matter that touch bodies, by body, in the order of the matter; one thread lists a part."""
    w, part = wp.tid()
    first = int(w * matter)
    for b in range(bodies):
        k = w * bodies + b
        c = k * parts + part
        before = int(0)
        if part > 0:
            before = next_out[c]
        next_out[c] = first + before  # index of the next point of the part
        if part == 0:
            first_out[k] = first
        first += count[k]
    length = length_of_part(matter, parts)
    start = wp.min(part * length, matter)
    for r in range(w * matter + start, w * matter + wp.min(start + length, matter)):
        if body[r] >= 0:
            c = (w * bodies + body[r]) * parts + part
            row_out[next_out[c]] = r
            next_out[c] = next_out[c] + 1
    for i in range(first + part, (w + 1) * matter, parts):
        row_out[i] = -1


@wp.func
def end_of_points(points: Exchange, bodies: int, w: int):
    """Index after that of the last point of a world; the points of a world follow one another."""
    last = (w + 1) * bodies - 1
    return points.first[last] + points.count[last]


@wp.func
def friction_of(friction: wp.array2d[real], bodies: int, w: int, s: int, b: int):
    """Coulomb coefficient of soft body s and rigid body b: the mean of the coefficients of both."""
    return _HALF * (scalar(friction[w, s]) + scalar(friction[w, friction.shape[1] - bodies + b]))


@wp.kernel(enable_backward=False)
def wrench_kernel(
    # model
    bodies: int,
    # step
    h: scalar,
    # work
    points: Exchange,
    impulse: wp.array[vec3],
    # out
    force_out: wp.array2d[vec3],
    torque_out: wp.array2d[vec3],
):
    """Write the mean force of the points on each body, and its torque about the origin: sums of p / h and x x p / h."""
    w, b, lane = wp.tid()
    k = w * bodies + b
    force = vec3()
    torque = vec3()
    for i in range(points.first[k] + lane, points.first[k] + points.count[k], wp.block_dim()):
        force += impulse[i] / h
        torque += wp.cross(points.place[i], impulse[i]) / h
    force = _sum(force)
    torque = _sum(torque)
    if lane == 0:
        force_out[w, b] = force
        torque_out[w, b] = torque


class TouchingPoints(NamedTuple):
    """Kernels of points that touch rigid bodies, for positions in two or three dimensions."""

    find_touching: wp.Kernel
    surface: wp.Kernel


@functools.cache
def touching_points(dim: int) -> TouchingPoints:
    """Kernels for matter in `dim` dimensions."""
    vec = vector(dim)
    in_space, _ = space_maps(dim)
    module = wp.get_module(f"warpbots.coupled.touching_points_{dim}d")

    @wp.kernel(module=module, enable_backward=False)
    def find_touching(
        # model
        bodies: int,
        solids: Solids,
        matter: int,
        lanes: int,
        parts: int,
        bound: wp.array[int],
        # state
        x: wp.array[vec],
        # work
        radius: wp.array[scalar],
        axes: wp.array[mat33],
        origin: wp.array[vec3],
        lower: wp.array[vec3],
        upper: wp.array[vec3],
        # out
        body_out: wp.array[int],
        counts_out: wp.array[int],
    ):
        """Write the body that each of the points of matter in each world touches or is bound to, -1 for none.

        A point with a negative radius touches nothing; a bound point touches its body only. Most points are outside of
        the box around all bodies, and few are in the box around one body. The points of each body are counted in parts
        of the matter; the counts must be zero.
        """
        w, lane = wp.tid()
        last = (w + 1) * (bodies + 1) - 1
        low = lower[last]
        high = upper[last]
        for r in range(w * matter + lane, (w + 1) * matter, lanes):
            y = in_space(x[r])
            nearest = radius[r]
            body = bound[r - w * matter]
            if body < 0 and nearest >= _ZERO and is_near(low, high, nearest, y):
                for b in range(bodies):
                    m = w * (bodies + 1) + b
                    if is_near(lower[m], upper[m], nearest, y):
                        d, _n = surface_of(solids, b, axes[w * bodies + b], origin[w * bodies + b], y)
                        if d < nearest:
                            nearest = d
                            body = b
            body_out[r] = body
            if body >= 0:
                part = (r - w * matter) // length_of_part(matter, parts)
                wp.atomic_add(counts_out, (w * bodies + body) * parts + part, 1)

    @wp.kernel(module=module, enable_backward=False)
    def surface(
        # model
        bodies: int,
        elements: int,
        element: wp.array[int],
        solids: Solids,
        soft: wp.array[int],
        friction: wp.array2d[real],
        matter: int,
        lanes: int,
        bound: wp.array[int],
        bound_place: wp.array[vec3],
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        # step
        h: scalar,
        correction: scalar,
        deepest: scalar,
        # work
        twist: wp.array[Twist],
        axes: wp.array[mat33],
        origin: wp.array[vec3],
        body: wp.array[int],
        row: wp.array[int],
        # out
        points_out: Exchange,
        distance_out: wp.array[scalar],
        stopped_out: wp.array[int],
    ):
        """Write normal, condition, friction, distance, and place and velocity of each point before those of the matter.

        The distance of a bound point is minus its distance from its place in the body. Its velocity is that of its
        correction or, with an array `v`, the velocity of its body minus v. `stopped_out` receives the last point of
        each world that is deeper than `deepest` in its body, or farther away from its place in it.
        """
        w, lane = wp.tid()
        for i in range(w * matter + lane, end_of_points(points_out, bodies, w), lanes):
            r = row[i]
            b = body[r]
            k = w * bodies + b
            p = r - w * matter
            y = in_space(x[r])
            d = scalar(0.0)
            if bound[p] >= 0:
                away = y - origin[k] - axes[k] @ bound_place[p]
                change = correction / h * away
                if v:
                    change = velocity_at(twist[w * elements + element[b]], y) - in_space(v[r])
                d = -wp.length(away)
                points_out.place[i] = y
                points_out.velocity[i] = change
                points_out.normal[i] = vec3()
                points_out.condition[i] = _STICKY
                points_out.friction[i] = _ZERO
            else:
                d, n = surface_of(solids, b, axes[k], origin[k], y)
                points_out.place[i] = y - wp.max(d, _ZERO) * n
                points_out.velocity[i] = vec3()
                points_out.normal[i] = n
                points_out.condition[i] = _FRICTION
                points_out.friction[i] = friction_of(friction, bodies, w, soft[r], b)
            distance_out[i] = d
            if d < -deepest:
                wp.atomic_max(stopped_out, w, p)

    return TouchingPoints(find_touching, surface)
