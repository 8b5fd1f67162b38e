"""Forces of cables at their waypoints, by `warpbots.actuation_laws.cable`, for all solvers that support cables."""

import warp as wp

from warpbots.actuation_laws import cable_arrays, cable_kernels
from warpbots.numerics import Launch, real

__all__ = ["CableWorkspace", "cable_adjoints", "cable_launches"]


class CableWorkspace:
    """Arrays for the lengths, tensions and forces of the cables, with gradients.

    Attributes:
        length: Lengths of the routes [m], shape (worlds, n_cables).
        tension: Tensions [N], shape (worlds, n_cables).
        force: Forces at the waypoints [N], shape (worlds, n_waypoints), vector.
    """

    def __init__(self, worlds: int, cables: int, waypoints: int, vector: type, device: wp.Device):
        def zeros(count: int, dtype: type) -> wp.array:
            return wp.zeros((worlds, count), dtype=dtype, device=device, requires_grad=True)

        self.length, self.tension, self.force = zeros(cables, real), zeros(cables, real), zeros(waypoints, vector)


def cable_launches(cables: object, work: CableWorkspace, control: wp.array, x: wp.array) -> list[Launch]:
    """Launches that add to `work.length`, which must be zero, and write `work.tension` and `work.force`.

    Args:
        cables: The cables, result of `warpbots.solvers.cable_routes.cables_of`.
        work: Arrays of the cables.
        control: Control signals, shape (worlds, channels).
        x: Positions [m], shape (worlds, n), vector.
    """
    length, tension, force = cable_kernels(work.force.dtype._length_)
    return [
        (length, work.force.shape, [cables, x], [work.length]),
        (tension, work.tension.shape, [cables, work.length, control], [work.tension]),
        (force, work.force.shape, [cables, x, work.tension], [work.force]),
    ]


def cable_adjoints(work: CableWorkspace, control_adj: wp.array, x_adj: wp.array) -> list[tuple[list, list]]:
    """Gradient arrays of the inputs and outputs of each launch of `cable_launches`.

    Args:
        work: Arrays of the cables.
        control_adj: Gradient with respect to the control signals, shape (worlds, channels).
        x_adj: Gradient with respect to the positions, shape (worlds, n), vector.

    Returns:
        For each launch the gradients of its inputs and of its outputs, as `warpbots.numerics.launch_adjoints` takes
        them.
    """
    none = cable_arrays()()
    return [
        ([none, x_adj], [work.length.grad]),
        ([none, work.length.grad, control_adj], [work.tension.grad]),
        ([none, x_adj, work.tension.grad], [work.force.grad]),
    ]
