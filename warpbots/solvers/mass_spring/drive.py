"""Lengths at rest that follow controls and time: l0' = l0 (1 + sum over actuators of gain times signal)."""

import functools
import math

import numpy as np
import warp as wp

from warpbots.math import real, real_numpy
from warpbots.scene import Actuator, Oscillation

__all__ = ["adj_rest_kernel", "drive_arrays", "drive_of", "rest_kernel", "signal_kernel"]

_TURN = wp.constant(wp.float64(2.0 * math.pi))


@functools.cache
def drive_arrays() -> type:
    """Warp struct of which actuators drive which springs."""

    @wp.struct
    class DriveArrays:
        """Actuators of springs, as compressed rows; the same in all worlds.

        start: First entry of each spring, one more for the end, shape (n_springs + 1,).
        actuator: Number of an actuator of the spring, shape (n_entries,).
        gain: Strain at rest at signal 1 [1], shape (n_entries,).
        oscillation: Number of each actuator among those that oscillate, or -1, shape (n_actuators,).
        springs: Number of springs of one world.
        """

        start: wp.array[int]
        actuator: wp.array[int]
        gain: wp.array[real]
        oscillation: wp.array[int]
        springs: int

    return DriveArrays


def drive_of(drive: np.ndarray, springs: int, actuators: tuple[Actuator, ...], device: wp.Device) -> object:
    """The drive of a `Lattice`, shape (n_drives, 3), as a Warp struct."""
    drive = drive[np.lexsort((drive[:, 1], drive[:, 0]))]
    oscillates = np.array([isinstance(a, Oscillation) for a in actuators], dtype=bool)
    arrays = drive_arrays()()
    arrays.start = wp.array(np.searchsorted(drive[:, 0], np.arange(springs + 1)), dtype=int, device=device)
    arrays.actuator = wp.array(drive[:, 1].astype(int), dtype=int, device=device)
    arrays.gain = wp.array(drive[:, 2].astype(real_numpy), dtype=real, device=device)
    number = np.where(oscillates, np.cumsum(oscillates) - 1, -1)
    arrays.oscillation = wp.array(number, dtype=int, device=device)
    arrays.springs = springs
    return arrays


@functools.cache
def signal_kernel() -> wp.Kernel:
    """Kernel over (worlds, actuators): the signal of each actuator; differentiated by Warp."""
    DriveArrays = drive_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.signal"))
    def signal(
        # model
        drive: DriveArrays,
        amplitude: wp.array2d[real],
        frequency: wp.array2d[real],
        phase: wp.array2d[real],
        # state
        u: wp.array2d[real],
        time: wp.array[wp.float64],
        ahead: real,
        # out
        signal_out: wp.array2d[real],
    ):
        """U, or (1 + u) amplitude sin(2 pi frequency t + phase) with t in double precision."""
        w, a = wp.tid()
        o = drive.oscillation[a]
        s = u[w, a]
        if o >= 0:
            t = time[w] + wp.float64(ahead)
            angle = _TURN * wp.float64(frequency[w, o]) * t + wp.float64(phase[w, o])
            s = (real(1.0) + u[w, a]) * amplitude[w, o] * real(wp.sin(angle))
        signal_out[w, a] = s

    return signal


@functools.cache
def rest_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): lengths at rest under the signals."""
    DriveArrays = drive_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.rest"), enable_backward=False)
    def rest(
        # model
        drive: DriveArrays,
        l0: wp.array[real],
        # state
        signal: wp.array2d[real],
        # out
        rest_out: wp.array[real],
    ):
        """l0' = l0 (1 + sum gain signal)."""
        w, spring = wp.tid()
        s = w * drive.springs + spring
        strain = real(0.0)
        for e in range(drive.start[spring], drive.start[spring + 1]):
            strain += drive.gain[e] * signal[w, drive.actuator[e]]
        rest_out[s] = l0[s] * (real(1.0) + strain)

    return rest


@functools.cache
def adj_rest_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): adjoint of `rest_kernel`."""
    DriveArrays = drive_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.adj_rest"), enable_backward=False)
    def adj_rest(
        # model
        drive: DriveArrays,
        l0: wp.array[real],
        # state
        signal: wp.array2d[real],
        rest_adj: wp.array[real],
        # out
        l0_adj_out: wp.array[real],
        signal_adj_out: wp.array2d[real],
    ):
        """l0* += (1 + sum gain signal) rest*, signal* += gain l0 rest*."""
        w, spring = wp.tid()
        s = w * drive.springs + spring
        strain = real(0.0)
        for e in range(drive.start[spring], drive.start[spring + 1]):
            strain += drive.gain[e] * signal[w, drive.actuator[e]]
            wp.atomic_add(signal_adj_out, w, drive.actuator[e], drive.gain[e] * l0[s] * rest_adj[s])
        if l0_adj_out:
            l0_adj_out[s] = l0_adj_out[s] + (real(1.0) + strain) * rest_adj[s]

    return adj_rest
