"""Division of the grid among threads of a CPU: each adds to planes of its own, across the first axis.

Particles add to the nodes around them, wherever they are. So a thread visits all particles, in their order, and leaves
out the nodes of other threads; each node receives its terms in the order in which one thread would add them. The planes
of a thread meet about as many particles as those of any other thread. Results do not depend on the planes.
"""

import functools
from types import ModuleType
from typing import NamedTuple

import warp as wp

from warpbots.numerics import NODE, Slice, matrix, real, vector
from warpbots.solvers.mpm import stencil_2d, stencil_3d
from warpbots.solvers.mpm.arrays import grid_geometry, motion_arrays

__all__ = ["PARTS", "GridPart", "grid_part", "planes_kernel", "stencil"]

PARTS = 64
"""Parts of the planes of the grid, of which each thread has some."""

_SAMPLES = 4096
"""Particles whose places decide where parts end."""


def stencil(dim: int) -> ModuleType:
    """Module with the functions `scatter`, `gather`, `slope`, ... for `dim` dimensions."""
    return {2: stencil_2d, 3: stencil_3d}[dim]


class GridPart(NamedTuple):
    """Warp functions of a thread's part of the grid.

    Attributes:
        meets: meets(part, planes, grid, w, x): whether a particle at x [cells] in world w adds to nodes of the part.
        owns: owns(part, planes, grid, w, x): whether the first node of its stencil is in the part, which is true for
            the part of one thread only.
        scatter_to_part: scatter_to_part(part, planes, grid, w, x, q, m, A, values): `scatter` to the nodes of the part.
    """

    meets: wp.Function
    owns: wp.Function
    scatter_to_part: wp.Function


@functools.cache
def grid_part(dim: int, shared: bool) -> GridPart:
    """Warp functions of a part of the grid, or of the whole grid unless it is `shared`.

    `part` numbers `PARTS` parts, and part k begins at plane ``planes[k]`` of the planes of all worlds.
    """
    vec, mat, GridGeometry, s = vector(dim), matrix(dim), grid_geometry(dim), stencil(dim)

    if shared:

        @wp.func
        def meets(part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec):
            """Whether a particle adds to nodes of the part."""
            plane = w * grid.resolution[0] + s.origin(x)[0]
            return plane + 2 >= planes[part.first] and plane < planes[part.end]

        @wp.func
        def owns(part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec):
            """Whether the first node of the stencil is in the part."""
            plane = w * grid.resolution[0] + s.origin(x)[0]
            return plane >= planes[part.first] and plane < planes[part.end]

        @wp.func
        def scatter_to_part(
            part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec, q: vec, m: real, A: mat,
            values: wp.array[NODE],
        ):  # fmt: skip
            """Add to the nodes of the part."""
            low = planes[part.first] - w * grid.resolution[0]
            high = planes[part.end] - w * grid.resolution[0]
            plane = s.origin(x)[0]
            if plane >= low and plane + 2 < high:
                s.scatter(values, w * grid.pencils, grid.resolution, x, q, m, A)
            else:
                s.scatter_between(values, w * grid.pencils, grid.resolution, x, q, m, A, low, high)

    else:

        @wp.func
        def meets(part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec):
            """True: the part is the grid."""
            return True

        @wp.func
        def owns(part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec):
            """True: the part is the grid."""
            return True

        @wp.func
        def scatter_to_part(
            part: Slice, planes: wp.array[int], grid: GridGeometry, w: int, x: vec, q: vec, m: real, A: mat,
            values: wp.array[NODE],
        ):  # fmt: skip
            """Add to all nodes."""
            s.scatter(values, w * grid.pencils, grid.resolution, x, q, m, A)

    return GridPart(meets, owns, scatter_to_part)


@functools.cache
def planes_kernel(dim: int) -> wp.Kernel:
    """Kernel of one thread: divides the planes of the grid into parts that meet about as many particles each."""
    MotionArrays, GridGeometry, s = motion_arrays(dim), grid_geometry(dim), stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.planes_{dim}d"), enable_backward=False)
    def divide_planes(
        # model
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # out
        count_out: wp.array[int],
        planes_out: wp.array[int],
    ):
        """planes_out[k] is the first plane before which a share of at least k / PARTS of the sampled particles lies."""
        total = int(0)
        for i in range(count_out.shape[0]):
            count_out[i] = 0
        for r in range(0, motion.x.shape[0], motion.x.shape[0] // wp.static(_SAMPLES) + 1):
            x = (motion.x[r] - grid.lower) * grid.inv_dx
            if s.reach(x, grid.resolution):
                plane = grid.world[r] * grid.resolution[0] + s.origin(x)[0] + 1  # the middle of the stencil
                count_out[plane] = count_out[plane] + 1
                total += 1
        before = int(0)
        k = int(0)
        for i in range(count_out.shape[0]):
            while k < wp.static(PARTS) and before * wp.static(PARTS) >= k * total:
                planes_out[k] = i
                k += 1
            before += count_out[i]
        while k <= wp.static(PARTS):
            planes_out[k] = count_out.shape[0]
            k += 1
        planes_out[0] = 0

    return divide_planes
