"""Contact between two masses, of the same body or of two bodies.

A contact is a spring that acts only in compression. Masses i and j closer than r_i + r_j repel each other with the
force k (r_i + r_j - l), with their distance l and the mean k of their stiffnesses. Two masses at the same point exert
no force, because the direction is undefined. Neighbours are found with a hash grid, which is built anew at every stage.
Each mass gathers the forces of its neighbours, so that no two threads write to the same place; the adjoint runs over
the same pairs.
"""

import functools

import numpy as np
import warp as wp
from scipy.spatial import cKDTree

from warpbots.numerics import NODE, real
from warpbots.numerics.simd import add, dot, fetch, multiply_add, scale, subtract
from warpbots.scene import Scene
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.user_warning import warn_user

__all__ = ["adj_contact_kernel", "contact_kernel", "point_kernel", "radii", "stiffnesses", "warn_close"]

_RADIUS = 0.45
"""Ratio of the radius of a mass to the distance of its nearest neighbour at rest.

Below one half nothing is in contact at rest; above 1 / (2 sqrt 2) no mass slips between four on the face of a voxel.
"""

_TIGHT = 0.5 / np.sqrt(2.0)
"""Ratio of radius to distance of neighbours below which a mass slips between four on the face of a voxel."""


def radii(lattice: Lattice) -> np.ndarray:
    """Radius of each mass for contact with other masses [m], shape (n,)."""
    return _RADIUS * cKDTree(lattice.position).query(lattice.position, k=2)[0][:, 1]


def warn_close(scene: Scene, lattice: Lattice, radius: np.ndarray) -> None:
    """Warn if bodies are so close to each other at rest that their masses can slip between one another.

    Args:
        scene: Scene with the bodies.
        lattice: Lattice of the scene.
        radius: Radius of each mass (`radii`) [m], shape (n,).
    """
    for k, body in enumerate(scene.bodies):
        own = np.flatnonzero(lattice.body == k)
        alone = _RADIUS * cKDTree(lattice.position[own]).query(lattice.position[own], k=2)[0][:, 1]
        close = radius[own] < _TIGHT / _RADIUS * alone
        if close.any():
            i = int((radius[own] / alone).argmin())
            warn_user(
                f"MassSpring(collision=...): masses keep {2.0 * _RADIUS:g} of their distance at rest, and "
                f"{close.sum()} of {body.name!r} are nearer to another body than to their own, the nearest "
                f"{radius[own[i]] / _RADIUS:.3g} instead of {alone[i] / _RADIUS:.3g} m: bodies sink into each "
                f"other there; start them {alone[i] / _RADIUS:.3g} m apart"
            )
            return


def stiffnesses(lattice: Lattice) -> np.ndarray:
    """Mean stiffness of the springs at each mass [N/m], shape (n,)."""
    n, ends = len(lattice), lattice.ends.ravel()
    return np.bincount(ends, np.repeat(lattice.stiffness, 2), n) / np.bincount(ends, minlength=n)


@functools.cache
def point_kernel() -> wp.Kernel:
    """Kernel over the masses of all worlds: converts positions to single precision, for the hash grid."""

    @wp.kernel(module=wp.get_module("warpbots.springs.points"), enable_backward=False)
    def points(x: wp.array[NODE], point_out: wp.array[wp.vec3]):
        """The first three components of x in single precision."""
        i = wp.tid()
        point_out[i] = wp.vec3(wp.float32(x[i][0]), wp.float32(x[i][1]), wp.float32(x[i][2]))

    return points


@functools.cache
def contact_kernel() -> wp.Kernel:
    """Kernel over the masses of all worlds: adds the contact forces to the forces on the masses."""

    @wp.kernel(module=wp.get_module("warpbots.springs.contact"), enable_backward=False)
    def contact(
        # model
        radius: wp.array[real],
        stiffness: wp.array[real],
        count: int,
        reach: wp.float32,
        # work
        grid: wp.uint64,
        point: wp.array[wp.vec3],
        # state
        x: wp.array[NODE],
        # out
        force_out: wp.array[NODE],
    ):
        """f_i += sum of k (1 - l0 / l) (x_j - x_i) over all masses j of the same world closer than l0 = r_i + r_j."""
        i = wp.tid()
        w = i // count
        mass = i - w * count
        x_i = fetch(x, i)
        total = NODE()
        for j in wp.hash_grid_query(grid, point[i], reach):
            other = j - w * count
            if j != i and other >= 0 and other < count:
                d = subtract(fetch(x, j), x_i)
                length = wp.sqrt(dot(d, d))
                l0 = radius[mass] + radius[other]
                if length > real(0.0) and length < l0:
                    k = real(0.5) * (stiffness[mass] + stiffness[other])
                    total = multiply_add(total, k * (real(1.0) - l0 / length), d)
        force_out[i] = add(force_out[i], total)

    return contact


@functools.cache
def adj_contact_kernel() -> wp.Kernel:
    """Kernel over the masses of all worlds: adjoint of `contact_kernel`."""

    @wp.kernel(module=wp.get_module("warpbots.springs.adj_contact"), enable_backward=False)
    def adj_contact(
        # model
        radius: wp.array[real],
        stiffness: wp.array[real],
        count: int,
        reach: wp.float32,
        # work
        grid: wp.uint64,
        point: wp.array[wp.vec3],
        # state
        x: wp.array[NODE],
        force_adj: wp.array[NODE],
        # out
        x_adj_out: wp.array[NODE],
    ):
        """x_i* -= sum of k (1 - l0/l) m + k l0/l q/l d over all masses j in contact with mass i.

        x_i* is the gradient with respect to x_i. The docstring of `warpbots.solvers.mass_spring.springs` defines m, q
        and d.
        """
        i = wp.tid()
        w = i // count
        mass = i - w * count
        x_i = fetch(x, i)
        m_i = fetch(force_adj, i)
        total = NODE()
        for j in wp.hash_grid_query(grid, point[i], reach):
            other = j - w * count
            if j != i and other >= 0 and other < count:
                d = subtract(fetch(x, j), x_i)
                length = wp.sqrt(dot(d, d))
                l0 = radius[mass] + radius[other]
                if length > real(0.0) and length < l0:
                    k = real(0.5) * (stiffness[mass] + stiffness[other])
                    m = subtract(m_i, fetch(force_adj, j))
                    q = dot(m, d) / length
                    slack = l0 / length
                    g = multiply_add(scale(k * (real(1.0) - slack), m), k * slack * q / length, d)
                    total = add(total, g)
        x_adj_out[i] = subtract(x_adj_out[i], total)

    return adj_contact
