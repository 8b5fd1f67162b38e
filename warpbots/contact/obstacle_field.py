"""Obstacles on the device, for contact at any point: its depth inside an obstacle and the outward normal.

Half-spaces, spheres and boxes, posed or not, are closed forms; every other shape is sampled on a regular grid and
interpolated linearly.
"""

import functools
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.contact.conditions import CODES, extra_rest_friction
from warpbots.contact.distance import signed_distance
from warpbots.numerics import index_vector, matrix, real, real_numpy, vector
from warpbots.scene import Box, HalfSpace, Obstacle, Posed, Shape, Sphere
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["obstacle_arrays", "obstacle_field", "penetration"]

_SAMPLE = 40.0
"""Memory of a sample while it is computed, per dimension [bytes]."""

_HALF_SPACE, _SPHERE, _BOX, _SAMPLED = (wp.constant(k) for k in range(4))


@functools.cache
def obstacle_arrays(dim: int) -> type:
    """Warp struct of all obstacles of a scene."""
    vec, mat, ivec = vector(dim), matrix(dim), index_vector(dim)

    @wp.struct
    class ObstacleArrays:
        """Obstacles, each of shape (n_obstacles,) but the samples.

        kind: Which closed form, or samples.
        condition: Contact condition (`warpbots.contact.CODES`).
        extra: Coefficient of static friction less that of sliding friction [1].
        frame: Rotation from the frame of the shape to that of the scene.
        origin: Origin of that frame [m]: a point on a half-space, the centre of a sphere or a box, the first sample.
        size: Outward normal of a half-space; radius [m] in the first component; half edges [m]; spacing [m] of samples.
        resolution: Samples along each axis.
        first: Number of the first sample.
        sample: Signed distances [m] of all sampled obstacles, shape (n_samples,).
        """

        kind: wp.array[int]
        condition: wp.array[int]
        extra: wp.array[real]
        frame: wp.array[mat]
        origin: wp.array[vec]
        size: wp.array[vec]
        resolution: wp.array[ivec]
        first: wp.array[int]
        sample: wp.array[real]

    return ObstacleArrays


def obstacle_field(
    obstacles: tuple[Obstacle, ...],
    dim: int,
    box: Callable[[Shape], tuple[np.ndarray, np.ndarray]],
    spacing: float,
    device: wp.Device,
) -> object:
    """The obstacles as a Warp struct.

    Args:
        obstacles: Of a scene.
        dim: 2 or 3.
        box: Lower and upper corner [m] of the box in which a shape without a closed form is sampled, each of shape
            (dim,); beyond it the distance goes on as at its edge.
        spacing: Distance between samples [m].
        device: Device of the arrays.

    Raises:
        SceneError: A shape would need too many samples.
    """
    kinds, frames, origins, sizes, resolutions, firsts, samples = [], [], [], [], [], [], [np.zeros(0)]
    for obstacle in obstacles:
        kind, frame, origin, size = _closed_form(obstacle.shape)
        resolution = np.zeros(dim, dtype=int)
        firsts.append(sum(map(len, samples)))
        if kind == _SAMPLED:
            lower, upper = box(obstacle.shape)
            resolution = np.maximum(2.0, np.ceil((upper - lower) / spacing)) + 1.0
            refuse_excess(
                resolution.prod(), _SAMPLE * dim, f"Obstacle {obstacle.name!r}: samples of its distance",
                "use a larger spacing, a smaller Scene.domain, or a half-space, a sphere or a box",
            )  # fmt: skip
            resolution = resolution.astype(int)
            origin, size = lower, (upper - lower) / (resolution - 1)
            axes = [lo + h * np.arange(n) for lo, h, n in zip(origin, size, resolution, strict=True)]
            x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
            samples.append(signed_distance(obstacle.shape, x))
        for values, value in zip(
            (kinds, frames, origins, sizes, resolutions), (kind, frame, origin, size, resolution), strict=True
        ):
            values.append(value)
    field = obstacle_arrays(dim)()
    count = len(obstacles)

    def array(values: list, shape: tuple, dtype: type, numpy_type: type = real_numpy) -> wp.array:
        return wp.array(np.array(values, dtype=numpy_type).reshape(count, *shape), dtype=dtype, device=device)

    field.kind, field.first = array(kinds, (), int, np.int32), array(firsts, (), int, np.int32)
    field.condition = array([CODES[o.condition] for o in obstacles], (), int, np.int32)
    field.extra = array(extra_rest_friction(obstacles), (), real)
    field.frame, field.origin = array(frames, (dim, dim), matrix(dim)), array(origins, (dim,), vector(dim))
    field.size, field.resolution = array(sizes, (dim,), vector(dim)), array(resolutions, (dim,), index_vector(dim), int)
    field.sample = wp.array(np.concatenate(samples).astype(real_numpy), dtype=real, device=device)
    return field


def _closed_form(shape: Shape) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Kind, frame, origin and size of a shape."""
    if isinstance(shape, Posed):
        kind, frame, origin, size = _closed_form(shape.shape)
        R = np.array(shape.rotation)
        return kind, R @ frame, R @ origin + np.array(shape.translation), size
    if isinstance(shape, HalfSpace):
        return _HALF_SPACE, np.eye(len(shape.point)), np.array(shape.point), np.array(shape.normal)
    if isinstance(shape, Sphere):
        return _SPHERE, np.eye(len(shape.center)), np.array(shape.center), np.full(len(shape.center), shape.radius)
    dim = len(shape.bounds[0])
    if isinstance(shape, Box):
        lower, upper = shape.bounds
        return _BOX, np.eye(dim), (lower + upper) / 2.0, (upper - lower) / 2.0
    return _SAMPLED, np.eye(dim), np.zeros(dim), np.ones(dim)


@functools.cache
def penetration(dim: int) -> wp.Function:
    """Warp function (depth [m], outward normal) = penetration(obstacles, o, x) of a point x [m] in obstacle o.

    Positive depth is inside. Outside only the sign is of use. Differentiable in x.
    """
    vec, ivec = vector(dim), index_vector(dim)
    ObstacleArrays = obstacle_arrays(dim)

    @wp.func
    def in_box(y: vec, half: vec):
        """Depth under the nearest face, and its normal, in the frame of the box."""
        depth = half[0] - wp.abs(y[0])
        nearest = int(0)
        for a in range(1, dim):
            d = half[a] - wp.abs(y[a])
            if d < depth:
                depth = d
                nearest = a
        n = vec()
        n[nearest] = wp.where(y[nearest] < real(0.0), real(-1.0), real(1.0))
        return depth, n

    @wp.func
    def in_samples(obstacles: ObstacleArrays, o: int, y: vec):
        """Minus the interpolated distance, and its slope."""
        h = obstacles.size[o]
        top = obstacles.resolution[o]
        cell = ivec()
        t = vec()
        for a in range(dim):
            s = wp.clamp(y[a] / h[a], real(0.0), real(top[a] - 1))
            cell[a] = wp.min(int(wp.floor(s)), top[a] - 2)
            t[a] = s - real(cell[a])
        distance = real(0.0)
        slope = vec()
        for corner in range(wp.static(2**dim)):
            at = int(0)
            weight = real(1.0)
            for a in range(dim):
                bit = (corner >> a) & 1
                at = at * top[a] + cell[a] + bit
                weight *= wp.where(bit == 1, t[a], real(1.0) - t[a])
            d = obstacles.sample[obstacles.first[o] + at]
            distance += weight * d
            for a in range(dim):
                other = real(1.0)
                for b in range(dim):
                    if b != a:
                        other *= wp.where(((corner >> b) & 1) == 1, t[b], real(1.0) - t[b])
                slope[a] += wp.where(((corner >> a) & 1) == 1, real(1.0), real(-1.0)) * other * d / h[a]
        return -distance, slope

    @wp.func
    def penetrate(obstacles: ObstacleArrays, o: int, x: vec):
        """Depth [m] and outward unit normal."""
        y = wp.transpose(obstacles.frame[o]) @ (x - obstacles.origin[o])
        size = obstacles.size[o]
        kind = obstacles.kind[o]
        depth = -wp.dot(size, y)
        n = size
        if kind == _SPHERE:
            depth = size[0] - wp.length(y)
            n = wp.normalize(y)
        if kind == _BOX:
            depth, n = in_box(y, size)
        if kind == _SAMPLED:
            depth, n = in_samples(obstacles, o, y)
            n = wp.normalize(n)
        return depth, obstacles.frame[o] @ n

    return penetrate
