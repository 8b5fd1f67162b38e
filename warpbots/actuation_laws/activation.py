"""Actuators of matter on the device: the stress or strain that they give to each element."""

import functools
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.actuation_laws.stress import pattern
from warpbots.numerics import matrix, real
from warpbots.scene import Actuator

__all__ = ["active_stress", "activation", "activation_arrays"]


@functools.cache
def activation_arrays(dim: int) -> type:
    """The Warp struct that assigns actuators to elements of matter, for vectors of `dim` components."""
    mat = matrix(dim)

    @wp.struct
    class ActivationArrays:
        """The actuators of each element of matter (a particle or a tetrahedron), as compressed sparse rows.

        start: Index of the first entry of each element, then the number of entries, shape (n + 1,).
        actuator: Index of the actuator of each entry, shape (n_entries,).
        pattern: Stress [Pa] or strain [1] of each actuator at u = 1 in the undeformed body, shape (n_actuators,).
        channel: Control channel of each actuator, shape (n_actuators,).
        """

        start: wp.array[int]
        actuator: wp.array[int]
        pattern: wp.array[mat]
        channel: wp.array[int]

    return ActivationArrays


def activation(
    actuators: dict[int, Actuator],
    regions: dict[str, np.ndarray],
    count: int,
    dim: int,
    device: wp.Device,
    of: Callable[[Actuator, int], np.ndarray] = pattern,
) -> object:
    """A Warp struct of actuators and of the elements that they drive.

    Args:
        actuators: Actuators by control channel.
        regions: For each region, by name, whether each element belongs to it, shape (count,), bool.
        count: Number of elements.
        dim: 2 or 3.
        device: Device of the arrays.
        of: Function of (actuator, dim) that returns the stress or the strain of the actuator at u = 1.
    """
    drives = np.array([regions[a.region] for a in actuators.values()], dtype=bool).reshape(len(actuators), count)
    element, actuator = np.nonzero(drives.T)
    patterns = np.array([of(a, dim) for a in actuators.values()]).reshape(-1, dim, dim)
    arrays = activation_arrays(dim)()
    arrays.start = wp.array(np.searchsorted(element, np.arange(count + 1)), dtype=int, device=device)
    arrays.actuator = wp.array(actuator, dtype=int, device=device)
    arrays.pattern = wp.array(patterns, dtype=matrix(dim), device=device)
    arrays.channel = wp.array(list(actuators), dtype=int, device=device)
    return arrays


@functools.cache
def active_stress(dim: int) -> wp.Function:
    """Warp function A(activation, e, w, u): total stress [Pa] or strain [1] of element e in world w."""
    mat = matrix(dim)
    ActivationArrays = activation_arrays(dim)

    @wp.func
    def active_stress_of(activation: ActivationArrays, e: int, w: int, u: wp.array2d[real]):
        """A = sum_a u_a S_a over the actuators a of the element."""
        A = mat()
        for k in range(activation.start[e], activation.start[e + 1]):
            a = activation.actuator[k]
            A += u[w, activation.channel[a]] * activation.pattern[a]
        return A

    return active_stress_of
