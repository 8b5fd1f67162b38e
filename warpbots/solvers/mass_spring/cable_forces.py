"""Cables between masses: the kernels of `warpbots.actuators.cable` on the nodes of a stage."""

import functools

import warp as wp

from warpbots.actuators import cable_arrays, cable_kernels
from warpbots.numerics import NODE, Launch, clear_gradients, launch_adjoints, launch_all, real

__all__ = ["CableScratch", "adj_draw", "draw", "scatter_kernel"]

_COMPONENTS = 4
"""Components of a node; those behind the dimensions of the scene are 0."""


class CableScratch:
    """What a stage knows of the cables, with gradients.

    Attributes:
        length: Lengths of the routes [m], shape (worlds, n_cables).
        tension: Tensions [N], shape (worlds, n_cables).
        force: Forces at the waypoints [N], shape (worlds, n_waypoints).
    """

    def __init__(self, worlds: int, cables: int, waypoints: int, device: wp.Device):
        def zeros(count: int, dtype: type) -> wp.array:
            return wp.zeros((worlds, count), dtype=dtype, device=device, requires_grad=True)

        self.length, self.tension, self.force = zeros(cables, real), zeros(cables, real), zeros(waypoints, NODE)


@functools.cache
def scatter_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_waypoints): forces at waypoints to their masses; differentiated by Warp."""

    @wp.kernel(module=wp.get_module("warpbots.springs.scatter"))
    def scatter(
        # model
        particle: wp.array[int],
        # state
        force: wp.array2d[NODE],
        # out
        force_out: wp.array2d[NODE],
    ):
        """F_particle += f; a mass may be a waypoint of several cables."""
        w, i = wp.tid()
        wp.atomic_add(force_out, w, particle[i], force[w, i])

    return scatter


def draw(cables: object, scratch: CableScratch, control: wp.array, x: wp.array, force: wp.array) -> None:
    """Add the forces of the cables at a stage.

    Args:
        cables: From `warpbots.solvers.cable_routes.cables_of`.
        scratch: Filled on the way.
        control: Control signals, shape (worlds, channels).
        x: Positions of the stage, shape (worlds * n_masses,).
        force: What the forces are added to, likewise.
    """
    scratch.length.zero_()
    launch_all(_launches(cables, scratch, control, x, force), x.device)


def adj_draw(
    cables: object, scratch: CableScratch, control: wp.array, x: wp.array, x_adj: wp.array, force_adj: wp.array
) -> None:
    """Add to gradients from `force_adj` at a stage; arguments as of `draw`, which is run again."""
    scratch.length.zero_()
    steps = _launches(cables, scratch, control, x, force_adj)
    launch_all(steps[:3], x.device)
    clear_gradients(vars(scratch).values())
    x_adj, force_adj = (_by_world(a, scratch) for a in (x_adj, force_adj))
    none = cable_arrays()()
    adjoints = (
        ([none, x_adj], [scratch.length.grad]),
        ([none, scratch.length.grad, control.grad], [scratch.tension.grad]),
        ([none, x_adj, scratch.tension.grad], [scratch.force.grad]),
        ([None, scratch.force.grad], [force_adj]),
    )
    launch_adjoints(steps, adjoints, x.device)


def _launches(cables: object, scratch: CableScratch, control: wp.array, x: wp.array, force: wp.array) -> list[Launch]:
    """Kernel, size, inputs and outputs of every launch."""
    length, tension, pull = cable_kernels(_COMPONENTS)
    x, force = _by_world(x, scratch), _by_world(force, scratch)
    return [
        (length, scratch.force.shape, [cables, x], [scratch.length]),
        (tension, scratch.tension.shape, [cables, scratch.length, control], [scratch.tension]),
        (pull, scratch.force.shape, [cables, x, scratch.tension], [scratch.force]),
        (scatter_kernel(), scratch.force.shape, [cables.particle, scratch.force], [force]),
    ]


def _by_world(array: wp.array, scratch: CableScratch) -> wp.array:
    worlds = scratch.length.shape[0]
    return array.reshape((worlds, array.size // worlds))
