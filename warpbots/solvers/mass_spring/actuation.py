"""Lengths at rest that follow controls and time: l0' = l0 (1 + sum over actuators of gain times signal)."""

import functools
import math
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.numerics import real, real_numpy
from warpbots.scene import Actuator, Oscillation

__all__ = [
    "Signal",
    "adj_rest_kernel",
    "drive_arrays",
    "drive_of",
    "pass_kernel",
    "rest_kernel",
    "signal_kernel",
    "signals_of",
]

_TURN = wp.constant(wp.float64(2.0 * math.pi))


class Signal(NamedTuple):
    """What springs follow: a control, or an oscillation.

    A wave has two signals, a quarter of a turn apart: sin(a - b) is a sum of both with constant factors cos b and
    -sin b, so that the phase of every single spring is in its gains.

    Attributes:
        channel: Control channel.
        oscillation: Number among the oscillations of the scene, or -1.
        ahead: Phase by which it is ahead of the oscillation [rad].
    """

    channel: int
    oscillation: int
    ahead: float


def signals_of(actuators: tuple[Actuator, ...]) -> list[Signal]:
    """The signals of the actuators of a scene."""
    signals, oscillations = [], 0
    for channel, actuator in enumerate(actuators):
        if not isinstance(actuator, Oscillation):
            signals.append(Signal(channel, -1, 0.0))
            continue
        ahead = (0.0,) if actuator.wave is None else (0.0, 0.5 * math.pi)
        signals += [Signal(channel, oscillations, angle) for angle in ahead]
        oscillations += 1
    return signals


@functools.cache
def drive_arrays() -> type:
    """Warp struct of which signals drive which springs."""

    @wp.struct
    class DriveArrays:
        """Signals of the springs that have any, as compressed rows; the same in all worlds.

        spring: The springs that follow signals, shape (n_driven,).
        start: First entry of each of them, one more for the end, shape (n_driven + 1,).
        signal: Number of a signal of the spring, shape (n_entries,).
        gain: Strain at rest at signal 1 [1], shape (n_entries,).
        channel: Control channel of each signal, shape (n_signals,).
        oscillation: Oscillation of each signal, or -1, shape (n_signals,).
        ahead: Phase by which each signal is ahead of its oscillation [rad], shape (n_signals,).
        """

        spring: wp.array[int]
        start: wp.array[int]
        signal: wp.array[int]
        gain: wp.array[real]
        channel: wp.array[int]
        oscillation: wp.array[int]
        ahead: wp.array[wp.float64]

    return DriveArrays


def drive_of(drive: np.ndarray, actuators: tuple[Actuator, ...], device: wp.Device) -> object:
    """The drive of a `Lattice`, shape (n_drives, 3), as a Warp struct."""
    drive = drive[np.lexsort((drive[:, 1], drive[:, 0]))]
    signals = signals_of(actuators)
    arrays = drive_arrays()()
    spring, start = np.unique(drive[:, 0].astype(int), return_index=True)
    arrays.spring = wp.array(spring, dtype=int, device=device)
    arrays.start = wp.array(np.append(start, len(drive)), dtype=int, device=device)
    arrays.signal = wp.array(drive[:, 1].astype(int), dtype=int, device=device)
    arrays.gain = wp.array(drive[:, 2].astype(real_numpy), dtype=real, device=device)
    for field, dtype in (("channel", int), ("oscillation", int), ("ahead", wp.float64)):
        setattr(arrays, field, wp.array([getattr(s, field) for s in signals], dtype=dtype, device=device))
    return arrays


@functools.cache
def signal_kernel() -> wp.Kernel:
    """Kernel over (worlds, signals): the signals of the actuators; differentiated by Warp."""
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
        w, n = wp.tid()
        o = drive.oscillation[n]
        s = u[w, drive.channel[n]]
        if o >= 0:
            t = time[w] + wp.float64(ahead)
            angle = _TURN * wp.float64(frequency[w, o]) * t + wp.float64(phase[w, o]) + drive.ahead[n]
            s = (real(1.0) + s) * amplitude[w, o] * real(wp.sin(angle))
        signal_out[w, n] = s

    return signal


@functools.cache
def rest_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_driven): lengths at rest under the signals, of those springs that follow any."""
    DriveArrays = drive_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.rest"), enable_backward=False)
    def rest(
        # model
        drive: DriveArrays,
        l0: wp.array2d[real],
        # state
        signal: wp.array2d[real],
        # out
        rest_out: wp.array2d[real],
    ):
        """l0' = l0 (1 + sum gain signal)."""
        w, k = wp.tid()
        s = drive.spring[k]
        strain = real(0.0)
        for e in range(drive.start[k], drive.start[k + 1]):
            strain += drive.gain[e] * signal[w, drive.signal[e]]
        rest_out[w, s] = l0[w, s] * (real(1.0) + strain)

    return rest


@functools.cache
def adj_rest_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_driven): adjoint of `rest_kernel`; what does not follow signals passes by."""
    DriveArrays = drive_arrays()

    @wp.kernel(module=wp.get_module("warpbots.springs.adj_rest"), enable_backward=False)
    def adj_rest(
        # model
        drive: DriveArrays,
        l0: wp.array2d[real],
        # state
        signal: wp.array2d[real],
        rest_adj: wp.array2d[real],
        copies: int,
        # out
        l0_adj_out: wp.array2d[real],
        signal_adj_out: wp.array2d[real],
    ):
        """l0* += sum gain signal rest*, signal* += gain l0 rest*."""
        w, k = wp.tid()
        s = drive.spring[k]
        strain = real(0.0)
        row = w * copies + (k & (copies - 1))
        for e in range(drive.start[k], drive.start[k + 1]):
            strain += drive.gain[e] * signal[w, drive.signal[e]]
            wp.atomic_add(signal_adj_out, row, drive.signal[e], drive.gain[e] * l0[w, s] * rest_adj[w, s])
        if l0_adj_out:
            l0_adj_out[w, s] = l0_adj_out[w, s] + strain * rest_adj[w, s]

    return adj_rest


@functools.cache
def pass_kernel() -> wp.Kernel:
    """Kernel over (worlds, springs): what the gradient to a length at rest is without signals."""

    @wp.kernel(module=wp.get_module("warpbots.springs.pass"), enable_backward=False)
    def pass_on(rest_adj: wp.array2d[real], l0_adj_out: wp.array2d[real]):
        """l0* += rest*."""
        w, s = wp.tid()
        l0_adj_out[w, s] = l0_adj_out[w, s] + rest_adj[w, s]

    return pass_on
