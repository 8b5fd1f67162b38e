"""Motions of rigid bodies that matter cannot follow: they end the run of a world, with a message.

A body that moves more than a cell, or the distance of masses, in a step could pass through matter without touching it.
A point of matter deep inside a body was not pushed out by contact: it is squeezed between solids, or the steps are too
long. Obstacles that meet at a rigid body leave no room for it. A position in such a world becomes NaN, so that the run
ends at this step.
"""

import functools
import itertools

import numpy as np
import warp as wp

from warpbots.contact import normal, signed_distance
from warpbots.contact.solid import SPHERE
from warpbots.numerics import launch, real, vector
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.spatial import Twist, angular, linear, scalar, vec3
from warpbots.solvers.coupled.measured_bodies import MeasuredBodies, measured_bodies
from warpbots.solvers.coupled.model import CoupledModel
from warpbots.solvers.coupled.states import CoupledState

__all__ = ["DEEPEST", "end_worlds", "find_fast", "impossible_motion", "squeezed"]

_NAN = wp.constant(real(float("nan")))
_ZERO = wp.constant(scalar(0.0))

DEEPEST = 0.5
"""Depth of a point of matter in a rigid body from which contact has failed [`MatterPoints.size`]."""

_FAST = 0.25
"""Displacement of a body in a step that may be the cause of such a depth [`MatterPoints.size`]."""

_OPPOSITE = -0.5
"""Largest product of the normals of two faces that are opposite to each other [1]."""

_TRIED = 20
"""Number of particles of a step that failed for which two solids around them are looked for."""


@wp.kernel(enable_backward=False)
def find_fast_kernel(
    # model
    bodies: int,
    elements: int,
    element: wp.array[int],
    kind: wp.array[int],
    reach: wp.array[scalar],
    lower: vec3,
    upper: vec3,
    # step
    most: scalar,
    # work
    twist: wp.array[Twist],
    origin: wp.array[vec3],
    # out
    stopped_out: wp.array[int],
):
    """Write 0 for each world in which a body at the grid is faster than `most` [m/s], else -1.

    No point of a body moves faster than |u(p)| + |omega| r with its origin p and the radius r of a ball around it. A
    sphere that spins is at the same place.
    """
    w = wp.tid()
    stopped_out[w] = -1
    for b in range(bodies):
        V = twist[w * elements + element[b]]
        p = origin[w * bodies + b]
        speed = wp.length(linear(V) + wp.cross(angular(V), p))
        if kind[b] != SPHERE and wp.length_sq(angular(V)) > _ZERO:
            speed += wp.length(angular(V)) * reach[b]
        nearest = wp.max(lower, wp.min(upper, p))
        if reach[b] > _ZERO and speed > most and wp.length(p - nearest) < reach[b]:
            stopped_out[w] = 0


@functools.cache
def end_worlds_kernel(dim: int) -> wp.Kernel:
    """Kernel over worlds, for matter in `dim` dimensions."""
    vec = vector(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.coupled.end_worlds_{dim}d"), enable_backward=False)
    def stop_worlds(
        # model
        matter: int,
        # work
        time: wp.array[scalar],
        stopped: wp.array[int],
        # out
        position_out: wp.array2d[vec],
    ):
        """Set a position to NaN in each world in `stopped`, and in each in which the time of the bodies is NaN."""
        w = wp.tid()
        p = stopped[w]
        if p < 0 and wp.isnan(time[w]):
            p = 0
        if p >= 0:
            position_out[w, p] = vec(_NAN)

    return stop_worlds


def find_fast(model: CoupledModel, dt: float) -> None:
    """Write to `model.workspace.stopped` the worlds in which a body is too fast for a step.

    Args:
        model: The model, with the motion of the rigid bodies at the start of the step in its workspace.
        dt: Length of the step [s].
    """
    rigid, points, work, solids = model.rigid, model.points, model.workspace, model.solids
    ends = [vec3(*np.append(corner, 0.0)[:3]) for corner in (points.lower, points.upper)]
    tree = rigid.tree
    inputs = [tree.bodies, tree.elements, tree.element, solids.kind, solids.reach, *ends, scalar(points.size / dt)]
    inputs += [rigid.workspace.links.twist, work.origin]
    launch(find_fast_kernel, model.worlds, inputs, [work.stopped], model.device)


def end_worlds(model: CoupledModel, state_out: CoupledState) -> None:
    """Set a position to NaN in worlds in `model.workspace.stopped`, and where obstacles have met at a rigid body."""
    work = model.workspace
    inputs = [len(model.matter), work.bodies_time, work.stopped]
    launch(end_worlds_kernel(model.dim), model.worlds, inputs, [state_out.position], model.device)


def impossible_motion(model: CoupledModel, solver: Articulated, before: dict, dt: float) -> str | None:
    """A sentence about the body that stopped the last step; None if it stopped no world.

    Args:
        model: The model.
        solver: Solver of the rigid bodies.
        before: Fields of the state before the step, as NumPy arrays.
        dt: Length of the step [s].
    """
    work, points = model.workspace, model.points
    dx = points.size
    stopped = work.stopped.numpy()
    if (stopped < 0).all():
        return None
    w = int((stopped >= 0).argmax())
    p, bodies = int(stopped[w]), measured_bodies(solver, model.rigid, before["q"], before["qd"])
    if model.bound.of[p] >= 0 and (away := _away(model, w, p, before)) > DEEPEST * dx:
        return (
            f"{points.name} {p} of {model.scene.bodies[model.matter.body[p]].name!r} in world {w} is {away:.3g} m away "
            f"from its place in RigidBody {model.scene.rigid[model.bound.of[p]].name!r}, to which it is bound, and may "
            f"be half a {points.cell} of {dx:g} m away: start it at its place, or use more substeps"
        )
    k = int(work.body.numpy().reshape(model.worlds, -1)[w, p])
    depth = -bodies.distance(model.scene.rigid[k].shape, w, k, before["position"][w, p]) if k >= 0 else 0.0
    if depth <= DEEPEST * dx:
        return _fast(model, bodies, w, dt)
    name, of = model.scene.rigid[k].name, model.scene.bodies[model.matter.body[p]].name
    x = before["position"][w, p].astype(np.float64)
    said = (
        f"{points.name} {p} of {of!r} in world {w}, at {x.round(4).tolist()} m, is {depth:.3g} m "
        f"inside RigidBody {name!r}, which contact allows up to half a {points.cell} of {dx:g} m: "
    )
    if between := _between(model, bodies, before, w, p):
        return said + between
    speed = np.linalg.norm(before["velocity"][w, p] - bodies.velocity_at(w, k, x))
    moved = (
        f"they move by {speed * dt:.3g} m against each other in a step of {dt:.3g} s: "
        if speed * dt > _FAST * dx
        else ""
    )
    return f"{said}{moved}use more substeps, or a smaller {points.option}"


def squeezed(model: CoupledModel, solver: Articulated, before: dict, after: dict) -> str:
    """The cause of a step that failed, if its matter is squeezed between two solids, as the end of a sentence; or "".

    Args:
        model: The model.
        solver: Solver of the rigid bodies.
        before: Fields of the state before the step, as NumPy arrays.
        after: Fields of the state after the step.
    """
    fields = [n for n in ("position", "velocity", "deformation") if n in after]
    lost = np.zeros(before["position"].shape[:2], dtype=bool)
    for name in fields:
        lost |= ~np.isfinite(after[name]).reshape(*lost.shape, -1).all(axis=-1)
    lost &= np.isfinite(before["position"]).all(axis=-1)
    if not (lost.any() and np.isfinite(before["q"]).all() and np.isfinite(before["qd"]).all()):
        return ""
    bodies = measured_bodies(solver, model.rigid, before["q"], before["qd"])
    for w, p in np.argwhere(lost)[:_TRIED]:
        if between := _between(model, bodies, before, int(w), int(p)):
            return f"; {model.points.name} {p} of {model.scene.bodies[model.matter.body[p]].name!r}: {between}"
    return ""


def _away(model: CoupledModel, w: int, p: int, before: dict) -> float:
    """Distance of a bound point from its place in its body, whose pose is in the workspace [m]."""
    work, k = model.workspace, w * len(model.scene.rigid) + model.bound.of[p]
    place = work.origin.numpy()[k] + work.axes.numpy()[k] @ model.bound.place.numpy()[p]
    return float(np.linalg.norm(before["position"][w, p] - place[: model.dim]))


def _fast(model: CoupledModel, bodies: MeasuredBodies, w: int, dt: float) -> str:
    """Sentence about the fastest body of a world."""
    reach = np.where(model.solids.kind.numpy() == int(SPHERE), 0.0, model.solids.reach.numpy())
    origin = model.workspace.origin.numpy().reshape(model.worlds, -1, 3)[w]
    middle = np.array([np.linalg.norm(bodies.velocity_at(w, k, x)) for k, x in enumerate(origin)])
    moved = dt * (middle + np.linalg.norm(bodies.spin[w], axis=-1) * reach) * (model.solids.reach.numpy() > 0.0)
    k = int(moved.argmax())
    return (
        f"RigidBody {model.scene.rigid[k].name!r} in world {w} moves up to {moved[k]:.3g} m in a step of {dt:.3g} s, "
        f"more than a {model.points.cell} of {model.points.size:g} m, so that it could pass through matter: use "
        f"more substeps, or a slower motion"
    )


def _between(model: CoupledModel, bodies: MeasuredBodies, before: dict, w: int, p: int) -> str | None:
    """Words about the two solids on opposite sides of a particle; None if there are no such solids near it."""
    x, dx, soft = before["position"][w, p].astype(np.float64), model.points.size, model.soft
    rigid = [(k, body) for k, body in enumerate(model.scene.rigid) if body.shape is not None]
    solids = [(f"RigidBody {b.name!r}", b.shape, bodies.position[w, k], bodies.rotation[w, k]) for k, b in rigid]
    dim = model.dim
    axes, origins = soft.frames.obstacle_poses(soft, before["time"], before["travel"])
    solids += [
        (f"obstacle {o.name!r}", o.shape, origins[w, k], axes[w, k]) for k, o in enumerate(model.scene.obstacles)
    ]
    near = []
    for name, shape, origin, R in solids:
        R = R[:dim, :dim]
        at = (x - origin[:dim])[None] @ R
        d = float(signed_distance(shape, at)[0])
        if d < 2.0 * dx:
            near.append((name, d, R @ normal(shape, at, 0.01 * dx)[0]))
    pairs = [(a, b) for a, b in itertools.combinations(near, 2) if a[2] @ b[2] < _OPPOSITE]
    if not pairs:
        return None
    (first, d, _n), (second, e, _m) = min(pairs, key=lambda pair: pair[0][1] + pair[1][1])
    gap = f"are {d + e:.3g} m apart" if d + e > 0.0 else "have met"
    return (
        f"it is squeezed between {first} and {second}, which {gap} and leave no room for matter: end the motion "
        f"earlier, limit the force of the motors, or use a smaller {model.points.option}"
    )
