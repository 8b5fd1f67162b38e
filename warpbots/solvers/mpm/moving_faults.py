"""Motions of obstacles that matter cannot follow: they end the run of a world, with a message.

An obstacle that moves more than a cell in a step could pass through matter without a node in contact. Two obstacles
that meet leave no room for the matter between them. The time of the world becomes NaN, as at the end of a table of
poses.
"""

import functools

import numpy as np
import warp as wp

from warpbots.contact import normal, signed_distance
from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.solid import Solids
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import index_vector, launch, parallel, real, vector
from warpbots.solvers.moving_frames import have_met
from warpbots.solvers.mpm.arrays import grid_geometry, motion_arrays
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.moving_obstacles import opposite, surface
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["motion_fault", "stop_impossible"]

_SQRT_HALF = wp.constant(wp.float64(np.sqrt(0.5)))
_NAN = wp.constant(wp.float64(float("nan")))
_OVERLAP = wp.constant(wp.float64(0.01))
"""Overlap of two obstacles at which they have met [cells]; a smaller one may be rounding."""


def stop_impossible(model: MPMModel, state: MPMState, time_out: wp.array, dt: float) -> None:
    """Set the time of a world to NaN if an obstacle is too fast, or if two obstacles meet with matter between them.

    Args:
        model: The model, with obstacles that move and with their poses in a step of length `dt`.
        state: State at the start of this step.
        time_out: Time after the step [s], shape (worlds,).
        dt: Length of the step [s].
    """
    corners = [wp.vec3d(*np.pad(c, (0, 3 - model.dim))) for c in (model.grid.lower, model.grid.upper)]
    solids, poses = model.moving.solids, model.frames.solids
    inputs = [*corners, wp.float64(model.grid.dx), solids.reach, poses, wp.float64(dt)]
    launch(stop_fast_kernel, (model.worlds, len(model.moving)), inputs, [time_out], model.device)
    if len(model.scene.obstacles) > 1:
        still = [model.contacts.of_node, model.contacts.normal]
        lanes = len(model.matter) if parallel(model.device) else 1
        inputs = [model.geometry, wp.float64(model.grid.dx), solids, *still, lanes, state.motion, poses]
        inputs.append(model.workspace.pinched)
        launch(stop_met_kernel(model.dim), (model.worlds, lanes), inputs, [time_out], model.device)


@wp.kernel(enable_backward=False)
def stop_fast_kernel(
    # model
    lower: wp.vec3d,
    upper: wp.vec3d,
    dx: wp.float64,
    reach: wp.array[wp.float64],
    # work
    poses: MovingPoses,
    dt: wp.float64,
    # out
    time_out: wp.array[wp.float64],
):
    """Sets the time to NaN if points of the solid that are in the grid may move more than a cell in a step.

    Two bounds hold, and the smaller one counts. The velocity is affine in the position, so no point of the grid moves
    faster than the fastest corner of the grid; no point of a solid in a ball around its origin p moves faster than
    |u(p)| + |spin| times the radius of the ball.
    """
    w, k = wp.tid()
    p = poses.position[w, k]
    most = wp.float64(0.0)
    for c in range(8):
        x = lower
        for a in range(3):
            if (c >> a) & 1 == 1:
                x[a] = upper[a]
        most = wp.max(most, wp.length(carried_velocity(p, poses.linear[w, k], poses.spin[w, k], x)))
    spin = _SQRT_HALF * wp.sqrt(wp.ddot(poses.spin[w, k], poses.spin[w, k]))  # norm of R_1 - R_0, divided by the time
    around = wp.length(poses.linear[w, k])
    if spin > wp.float64(0.0):
        around += spin * reach[k]
    if dt * wp.min(most, around) > dx:
        time_out[w] = _NAN


@functools.cache
def stop_met_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, lanes): finds particles between two faces that close and have met.

    Between opposite faces the sum of the distances of a particle is the gap. The distance to an obstacle at
    rest is bounded by the distance to its tangent plane through the nearest node, if this node is in the obstacle.
    """
    vec, ivec, (in_space, _) = vector(dim), index_vector(dim), space_maps(dim)
    s, MotionArrays, GridGeometry = stencil(dim), motion_arrays(dim), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.stop_met_{dim}d"), enable_backward=False)
    def stop_met(
        # model
        grid: GridGeometry,
        dx: wp.float64,
        solids: Solids,
        contact: wp.array[wp.vec3i],
        normal: wp.array[vec],
        lanes: int,
        # state
        motion: MotionArrays,
        # work
        poses: MovingPoses,
        pinched: wp.array[int],
        # out
        time_out: wp.array[wp.float64],
    ):
        """Sets the time to NaN if the gap of opposite faces at the particle is negative, and they close."""
        w, lane = wp.tid()
        if pinched[w] == 0:
            return
        for r in range(w * grid.particles + lane, (w + 1) * grid.particles, lanes):
            cells = (motion.x[r] - grid.lower) * grid.inv_dx
            if s.reach(cells, grid.resolution):
                nearest = ivec()
                node = int(0)
                for a in range(dim):
                    nearest[a] = int(cells[a] + real(0.5))
                    node = node * grid.resolution[a] + nearest[a]
                own = contact[node]
                x = in_space(motion.x[r])
                for k in range(solids.kind.shape[0]):
                    p = poses.position[w, k]
                    d, n = surface(solids, k, poses.rotation[w, k], p, x)
                    u = carried_velocity(p, poses.linear[w, k], poses.spin[w, k], x)
                    for j in range(3):
                        if d < dx and own[j] >= 0 and wp.dot(u, n) > wp.float64(0.0):
                            m = normal[own[j]]
                            above = real(0.0)
                            for a in range(dim):
                                above += m[a] * (cells[a] - real(nearest[a]))
                            if opposite(n, in_space(m)) and d + dx * wp.float64(above) < -_OVERLAP * dx:
                                time_out[w] = _NAN
                    for q in range(k):
                        o = poses.position[w, q]
                        e, face = surface(solids, q, poses.rotation[w, q], o, x)
                        closing = wp.dot(u - carried_velocity(o, poses.linear[w, q], poses.spin[w, q], x), n)
                        if d < dx and e < dx and closing > wp.float64(0.0):  # noqa: SIM102
                            if opposite(n, face) and d + e < -_OVERLAP * dx:
                                time_out[w] = _NAN

    return stop_met


def motion_fault(model: MPMModel, before: dict, after: dict, dt: float) -> str | None:
    """A sentence with the reason why a motion of obstacles or constraints cannot go on, and the remedy.

    Args:
        model: The model.
        before: Fields of the state before the step, as NumPy arrays.
        after: Fields of the state after the step.
        dt: Length of the step [s].

    Returns:
        The sentence; None if the motion can go on.
    """
    if not len(model.frames):
        return None
    stopped = np.isfinite(before["time"]) & ~np.isfinite(after["time"])
    if not stopped.any():
        return None
    if ended := model.frames.diagnosis(before["time"], after["time"], dt):
        return ended
    w = int(stopped.argmax())
    moved = _displacements(model, before, after, dt)[w]
    k = int(moved.argmax())
    if moved[k] > model.grid.dx:
        name = model.scene.obstacles[model.moving.owner.numpy()[k]].name
        return (
            f"obstacle {name!r} in world {w} moves {moved[k]:.3g} m in a step of {dt:.3g} s, more than a cell of "
            f"{model.grid.dx:g} m, so that it could pass through matter: use more substeps, or a slower motion"
        )
    first, second, p = _met(model, before, w)
    x = before["position"][w, p].astype(np.float64)
    body = model.scene.bodies[model.matter.body[p]].name
    return have_met(
        f"particle {p} of {body!r} in world {w}, at {x.round(4).tolist()} m,", first, second, before["time"][w]
    )


def _displacements(model: MPMModel, before: dict, after: dict, dt: float) -> np.ndarray:
    """Bound of the displacement in a step of each moving obstacle in the grid [m], shape (worlds, n_moving)."""
    own, reach = model.moving.owner.numpy(), model.moving.solids.reach.numpy()
    origin = model.moving.solids.position.numpy()
    start, end = (
        [a[:, model.frames.of_obstacle[own]] for a in model.frames.poses(model, time, travel)]
        for time, travel in ((before["time"], before["travel"]), (before["time"] + dt, after["travel"]))
    )
    ends = np.stack([model.grid.lower, model.grid.upper])
    corners = np.stack(np.meshgrid(*ends.T, indexing="ij"), axis=-1).reshape(-1, model.dim)
    corners = np.pad(corners, ((0, 0), (0, 3 - model.dim)))
    turn = end[0] - start[0]
    at_rest = np.einsum("wkji,wkcj->wkci", start[0], corners - start[1][..., None, :])  # R^T (x - p)
    moved = np.einsum("wkij,wkcj->wkci", turn, at_rest) + (end[1] - start[1])[..., None, :]
    middle = np.linalg.norm(np.einsum("wkij,kj->wki", turn, origin) + end[1] - start[1], axis=-1)
    angle = np.linalg.norm(turn, axis=(-2, -1)) * np.sqrt(0.5)
    around = middle + np.where(angle > 0.0, angle * np.where(angle > 0.0, reach, 0.0), 0.0)
    return np.minimum(np.linalg.norm(moved, axis=-1).max(axis=-1), around)


def _met(model: MPMModel, before: dict, w: int) -> tuple[str, str, int]:
    """Names of two obstacles with opposite faces that are closest to each other, and a particle between them."""
    x = before["position"][w].astype(np.float64)
    points, axes = model.frames.on_obstacles(model, before["time"], before["travel"], w, x)
    shapes = [obstacle.shape for obstacle in model.scene.obstacles]
    distance = np.array([signed_distance(*pair) for pair in zip(shapes, points, strict=True)])
    step = 0.01 * model.grid.dx
    face = np.array([normal(shape, at, step) @ R.T for shape, at, R in zip(shapes, points, axes, strict=True)])
    gap = np.where(distance < model.grid.dx, distance, np.inf)
    gap = gap[:, None] + gap[None]
    opposite = np.einsum("apd,bpd->abp", face, face) < -0.9
    a, b, k = np.unravel_index(np.where(opposite, gap, np.inf).argmin(), gap.shape)
    return model.scene.obstacles[a].name, model.scene.obstacles[b].name, int(k)
