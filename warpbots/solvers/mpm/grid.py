"""The background grid: geometry, nodes inside obstacles, and nodal velocities in a step (ChainQueen eq. 7)."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.contact import CODES, constrain, extra_rest_friction, normal, refuse_thin, signed_distance
from warpbots.numerics import NODE, Slice, index_vector, real, real_numpy, vector
from warpbots.scene import Obstacle
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.mpm.arrays import grid_geometry
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["MARGIN", "BackgroundGrid", "GridContacts", "clear_kernel", "divide", "grid_kernel", "node_position"]

MARGIN = 3
"""Cells of the grid beyond the domain on every side, so that a particle at its edge has its whole stencil."""

_THINNEST = 3.0
"""Least thickness of an obstacle that stops matter [cells]; nodes of a thinner obstacle push matter to the sides.

In tests with blocks above plates in 2D, at all positions relative to the nodes, some fell through a horizontal plate of
1.25 cells and past a vertical plate of 2.5, and none at 1.5 and 3; on a plate below 8 cells they may tip over too soon.
This limit does not apply to sticky obstacles, which push matter to no side.
"""


_NODE = 120.0
"""Memory of a node while the grid is built [bytes]."""


class GridContacts(NamedTuple):
    """Contacts of grid nodes with obstacles that do not move.

    A node has at most three contacts: with the obstacles whose surfaces are nearest.

    Attributes:
        of_node: Indices of the up to three contacts of each node, -1 for no contact, shape (n_nodes,), vec3i.
        normal: Outward unit normal of the obstacle at the node of each contact, shape (n_contacts,).
        obstacle: Index of the obstacle of each contact, shape (n_contacts + n_moving * nodes,): first the
            contacts with obstacles at rest, then all nodes for each obstacle that moves, because it may touch any node.
        condition: Code of the contact condition of each obstacle (`warpbots.contact.CODES`), shape (n_obstacles,).
        extra: Coefficient of static friction minus coefficient of sliding friction of each obstacle [1], shape
            (n_obstacles,).
        place: Position of the node of each entry of `obstacle` [m], vector.
    """

    of_node: wp.array
    normal: wp.array
    obstacle: wp.array
    condition: wp.array
    extra: wp.array
    place: wp.array

    @property
    def surfaces(self) -> list[wp.array]:
        """Inputs of kernels of contact: all arrays except `place`."""
        return list(self[:-1])


@dataclasses.dataclass(frozen=True)
class BackgroundGrid:
    """A regular background grid.

    Attributes:
        lower: Position of the first node [m], shape (dim,).
        dx: Size of a cell [m].
        resolution: Number of nodes along each axis.
    """

    lower: np.ndarray
    dx: float
    resolution: tuple[int, ...]

    @classmethod
    def around(cls, lower: np.ndarray, upper: np.ndarray, dx: float) -> "BackgroundGrid":
        """The grid that covers the box from `lower` to `upper` [m] and a margin; its nodes lie on multiples of dx."""
        count = np.prod(np.ceil((upper - lower) / dx) + 2 * MARGIN)
        refuse_excess(count, _NODE, "MPM: nodes of the grid", "use a larger MPM(dx=...) or a smaller Scene.domain")
        first = np.floor(lower / dx + 1e-9).astype(int) - MARGIN
        last = np.ceil(upper / dx - 1e-9).astype(int) + MARGIN
        return cls(first * dx, dx, tuple(int(n) for n in last - first + 1))

    @property
    def nodes(self) -> int:
        """Number of nodes of one world."""
        return int(np.prod(self.resolution))

    @property
    def pencils(self) -> int:
        """Number of pencils of one world; a pencil is a line of nodes along the last axis."""
        return self.nodes // self.resolution[-1]

    def geometry(self, worlds: int, particles: int, device: wp.Device) -> object:
        """The grid as a Warp struct, including the index of the world of each particle."""
        geometry = grid_geometry(len(self.resolution))()
        geometry.lower, geometry.dx = tuple(real_numpy(v) for v in self.lower), real_numpy(self.dx)
        geometry.inv_dx = real_numpy(1.0 / self.dx)
        geometry.resolution, geometry.pencils, geometry.particles = self.resolution, self.pencils, particles
        geometry.world = wp.array(np.repeat(np.arange(worlds), particles), dtype=int, device=device)
        return geometry

    def positions(self) -> np.ndarray:
        """Positions of all nodes [m], shape (nodes, dim)."""
        axes = [self.lower[a] + self.dx * np.arange(n) for a, n in enumerate(self.resolution)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(self.nodes, len(self.resolution))

    @property
    def upper(self) -> np.ndarray:
        """Position of the last node [m], shape (dim,)."""
        return self.lower + self.dx * (np.array(self.resolution) - 1)

    @property
    def places(self) -> list:
        """Inputs of kernels that compute positions of nodes with `node_position`: first node, cell size, resolution."""
        dim = len(self.resolution)
        return [wp.vec3d(*self.lower, *[0.0] * (3 - dim)), wp.float64(self.dx), index_vector(dim)(*self.resolution)]

    def refuse_thin(self, obstacles: tuple[Obstacle, ...], moving: np.ndarray) -> None:
        """Raise if an obstacle in the grid, or one that may move into it, is too thin for the nodes to resolve.

        Args:
            obstacles: Obstacles of the scene.
            moving: Whether each obstacle moves, shape (n_obstacles,), bool.

        Raises:
            SceneError: An obstacle is too thin; the message names the first such obstacle.
        """
        boxes = [o.shape.bounds for o in obstacles]
        met = [
            o
            for o, (low, high), moves in zip(obstacles, boxes, moving, strict=True)
            if moves or ((low <= self.upper) & (high >= self.lower)).all()
        ]
        sticky = tuple(o for o in met if o.condition == "sticky")
        others = tuple(o for o in met if o.condition != "sticky")
        refuse_thin(sticky, self.dx, "nodes", "MPM(dx=...)")
        refuse_thin(others, self.dx, "nodes", "MPM(dx=...)", _THINNEST * self.dx)

    def contacts(self, obstacles: tuple[Obstacle, ...], moving: np.ndarray, device: wp.Device) -> "GridContacts":
        """Contacts of the nodes inside obstacles that do not move, with the normals of the obstacles at these nodes.

        Args:
            obstacles: Obstacles of the scene.
            moving: Whether each obstacle moves, shape (n_obstacles,), bool.
            device: Device of the arrays.
        """
        dim = len(self.resolution)
        position, nowhere = self.positions(), np.full(self.nodes, np.inf)
        distance = np.array(
            [nowhere if m else signed_distance(o.shape, position) for o, m in zip(obstacles, moving, strict=True)]
        ).reshape(len(obstacles), self.nodes)
        # Deep inside many obstacles a node keeps the three whose surfaces are nearest: matter never gets there.
        order = np.argsort(-np.where(distance <= 0.0, distance, -np.inf), axis=0)[:3]
        of_node = np.full((self.nodes, 3), -1)
        normals, owners, places = [np.zeros((0, dim))], [np.zeros(0, dtype=int)], [np.zeros((0, dim))]
        count = 0
        for rank, obstacle in enumerate(order):
            for o in np.unique(obstacle):
                nodes = np.nonzero((obstacle == o) & (distance[o] <= 0.0))[0]
                of_node[nodes, rank] = count + np.arange(len(nodes))
                normals.append(normal(obstacles[o].shape, position[nodes], 0.01 * self.dx))
                owners.append(np.full(len(nodes), o))
                places.append(position[nodes])
                count += len(nodes)
        owners.append(np.repeat(np.flatnonzero(moving), self.nodes))
        places.append(np.tile(position, (np.count_nonzero(moving), 1)))
        return GridContacts(
            of_node=wp.array(of_node, dtype=wp.vec3i, device=device),
            normal=wp.array(np.concatenate(normals), dtype=vector(dim), device=device),
            obstacle=wp.array(np.concatenate(owners), dtype=int, device=device),
            condition=wp.array([CODES[o.condition] for o in obstacles], dtype=int, device=device),
            extra=wp.array(extra_rest_friction(obstacles), dtype=real, device=device),
            place=wp.array(np.concatenate(places), dtype=vector(dim), device=device),
        )


@functools.cache
def node_position(dim: int) -> wp.Function:
    """Warp function at(lower, dx, resolution, i): position in 3D [m] of node i of a world, as in `positions`.

    The result agrees with `positions` to the bit, because nodes often lie on the surface of an obstacle.
    """
    ivec = index_vector(dim)

    @wp.func
    def at(lower: wp.vec3d, dx: wp.float64, resolution: ivec, i: int):
        """Position of node i [m], with z = 0 if `dim` is 2."""
        x = lower
        left = i
        for k in range(dim):
            a = dim - 1 - k
            above = left // resolution[a]
            x[a] = lower[a] + dx * wp.float64(left - above * resolution[a])
            left = above
        return x

    return at


@functools.cache
def clear_kernel() -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): sets the nodes of the active pencils to zero."""

    @wp.kernel(module=wp.get_module("warpbots.mpm.clear"), enable_backward=False)
    def clear(
        # launch
        part: Slice,
        # model
        length: int,
        lanes: int,
        # state
        active: wp.array[int],
        # out
        values_out: wp.array[NODE],
    ):
        """Sets the value of each node of the active pencils to zero: h_i = 0."""
        item, lane = wp.tid()
        pencil = part.start + item
        if active[pencil] != 0:
            for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
                values_out[i] = NODE()

    return clear


@functools.cache
def divide(dim: int) -> wp.Function:
    """Warp function that divides a momentum p by a mass m: v = p / m."""
    vec = vector(dim)

    @wp.func
    def velocity_of(p: vec, m: real):
        """v = p / m."""
        return p / m

    @wp.func_grad(velocity_of)
    def adj_velocity_of(p: vec, m: real, adj_ret: vec):
        # The generated adjoint divides by m^2, which underflows in float32 at the rim of a body.
        wp.adjoint[p] += adj_ret / m
        wp.adjoint[m] -= wp.dot(adj_ret, p / m) / m

    return velocity_of


@functools.cache
def grid_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): computes the velocities of nodes; differentiated by Warp.

    Velocities follow from momenta, gravity and contact. Most pencils of most grids are empty and skipped. A thread
    computes every `lanes`-th node of its pencil: all nodes on a CPU, and a single node on a GPU, so that adjacent
    threads compute adjacent nodes. Each world may have several `copies` of friction and gravity
    (`warpbots.numerics.Copies`); each thread uses one of these copies.
    """
    vec = vector(dim)
    s, constrain_velocity, quotient = stencil(dim), constrain(dim), divide(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.grid_{dim}d"))
    def move_grid(
        # launch
        part: Slice,
        # model
        contact: wp.array[wp.vec3i],
        normal: wp.array[vec],
        obstacle: wp.array[int],
        condition: wp.array[int],
        extra: wp.array[real],
        friction: wp.array2d[real],
        gravity: wp.array[vec],
        length: int,
        pencils: int,
        lanes: int,
        copies: int,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        dt: real,
        # out
        velocity_out: wp.array[NODE],
    ):
        """Writes the velocity of each node after gravity and contact: v_i = constrain(p_i / m_i + dt g)."""
        item, lane = wp.tid()
        pencil = part.start + item
        if active[pencil] == 0:
            return
        w = pencil // pencils
        row = w * copies + ((pencil + lane) & (copies - 1))
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            h = momentum[i]
            v = vec()
            if h[3] != real(0.0):
                v = quotient(s.momentum(h), h[3]) + dt * gravity[row]
                own = contact[i - w * pencils * length]
                for k in range(3):
                    c = own[k]
                    if c >= 0:
                        o = obstacle[c]
                        n = normal[c]
                        v = constrain_velocity(v, n, -wp.dot(v, n), condition[o], friction[row, o], extra[o])
            velocity_out[i] = s.node(v, real(0.0))

    return move_grid
