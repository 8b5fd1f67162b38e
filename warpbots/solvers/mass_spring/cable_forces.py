"""Forces of cables on the masses at a stage."""

import functools

import warp as wp

from warpbots.numerics import NODE, Launch, clear_gradients, launch_adjoints, launch_all
from warpbots.solvers.cable_forces import CableWorkspace, cable_adjoints, cable_launches

__all__ = ["add_cable_forces", "adj_cable_forces", "scatter_kernel"]


@functools.cache
def scatter_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_waypoints): adds the force at each waypoint to the mass of the waypoint.

    Warp differentiates the kernel.
    """

    @wp.kernel(module=wp.get_module("warpbots.springs.scatter"))
    def scatter(
        # model
        particle: wp.array[int],
        # work
        force: wp.array2d[NODE],
        # out
        force_out: wp.array2d[NODE],
    ):
        """Add the force at a waypoint to the force on its mass, atomically: several cables may pass one mass."""
        w, i = wp.tid()
        wp.atomic_add(force_out, w, particle[i], force[w, i])

    return scatter


def add_cable_forces(cables: object, work: CableWorkspace, control: wp.array, x: wp.array, force: wp.array) -> None:
    """Add the forces of the cables to the forces at a stage.

    Args:
        cables: From `warpbots.solvers.cable_routes.cables_of`.
        work: Arrays of the cables; the function fills them.
        control: Control signals, shape (worlds, channels).
        x: Positions of the stage, shape (worlds * n_masses,).
        force: Forces to add to [N], shape (worlds * n_masses,).
    """
    work.length.zero_()
    launch_all(_launches(cables, work, control, x, force), x.device)


def adj_cable_forces(
    cables: object, work: CableWorkspace, control: wp.array, x: wp.array, x_adj: wp.array, force_adj: wp.array
) -> None:
    """Adjoint of `add_cable_forces`: add to `x_adj` and to the gradients with respect to the controls.

    `force_adj` is the gradient with respect to the forces. The function evaluates the cables again, because other
    stages have overwritten `work`.
    """
    work.length.zero_()
    steps = _launches(cables, work, control, x, force_adj)
    launch_all(steps[:3], x.device)
    clear_gradients(vars(work).values())
    x_adj, force_adj = (_by_world(a, work) for a in (x_adj, force_adj))
    adjoints = [*cable_adjoints(work, control.grad, x_adj), ([None, work.force.grad], [force_adj])]
    launch_adjoints(steps, adjoints, x.device)


def _launches(cables: object, work: CableWorkspace, control: wp.array, x: wp.array, force: wp.array) -> list[Launch]:
    """List the kernel launches in the order in which they run: kernel, size, inputs and outputs of each."""
    x, force = _by_world(x, work), _by_world(force, work)
    scatter = scatter_kernel(), work.force.shape, [cables.particle, work.force], [force]
    return [*cable_launches(cables, work, control, x), scatter]


def _by_world(array: wp.array, work: CableWorkspace) -> wp.array:
    worlds = work.length.shape[0]
    return array.reshape((worlds, array.size // worlds))
