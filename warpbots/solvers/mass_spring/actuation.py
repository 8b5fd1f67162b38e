"""Rest lengths that follow controls and time: l0' = l0 (1 + sum over actuators of gain times signal)."""

import functools
import math
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.numerics import real
from warpbots.scene import Actuator, Oscillation
from warpbots.solvers.device_arrays import device_array

__all__ = [
    "Signal",
    "adj_rest_length_kernel",
    "drive_arrays",
    "drive_of",
    "add_kernel",
    "rest_length_kernel",
    "signal_kernel",
    "signals_of",
]

_TWO_PI = wp.constant(wp.float64(2.0 * math.pi))


class Signal(NamedTuple):
    """A signal that rest lengths follow: a control signal or an oscillation.

    A wave takes two signals that are a quarter of a period apart: sin(a - b) = cos b sin a - sin b sin(a + pi/2). Each
    spring has a gain for either signal, and the two gains contain the phase lag b of the spring.

    Attributes:
        channel: Index of the control channel.
        oscillation: Index of the oscillation among all oscillations of the scene, or -1 for a control signal.
        ahead: Phase lead of this signal over the oscillation [rad].
    """

    channel: int
    oscillation: int
    ahead: float


def signals_of(actuators: tuple[Actuator, ...]) -> list[Signal]:
    """List the signals of all actuators of a scene: two for a wave, one for any other actuator."""
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
    """Warp struct type that lists the signals of each driven spring."""

    @wp.struct
    class DriveArrays:
        """Signals of the driven springs, as compressed rows: one row for each driven spring, one entry for each signal.

        All worlds share the rows.

        spring: Indices of the springs that follow signals, shape (n_driven,).
        start: Index of the first entry of the row of each driven spring, followed by the total number of entries, shape
            (n_driven + 1,).
        signal: For each entry, the index of the signal, shape (n_entries,).
        gain: For each entry, the relative change of the rest length that a signal of 1 causes [1], shape (n_entries,).
        stressed: For each entry, 1 if the actuator prescribes a stress and 0 if it prescribes a strain, shape
            (n_entries,).
        channel: Control channel of each signal, shape (n_signals,).
        oscillation: Index of the oscillation of each signal, or -1 for a control signal, shape (n_signals,).
        ahead: Phase lead of each signal over its oscillation [rad], shape (n_signals,).
        """

        spring: wp.array[int]
        start: wp.array[int]
        signal: wp.array[int]
        gain: wp.array[real]
        stressed: wp.array[int]
        channel: wp.array[int]
        oscillation: wp.array[int]
        ahead: wp.array[wp.float64]

    return DriveArrays


def drive_of(drive: np.ndarray, actuators: tuple[Actuator, ...], device: wp.Device) -> object:
    """Convert the table `drive`, shape (n_drives, 4), to a Warp struct (`drive_arrays`).

    `Lattice.drive` describes the columns of the table.
    """
    drive = drive[np.lexsort((drive[:, 1], drive[:, 0]))]
    signals = signals_of(actuators)
    arrays = drive_arrays()()
    spring, start = np.unique(drive[:, 0].astype(int), return_index=True)
    arrays.spring = device_array(spring, device, int)
    arrays.start = device_array(np.append(start, len(drive)), device, int)
    arrays.signal, arrays.gain = device_array(drive[:, 1], device, int), device_array(drive[:, 2], device)
    arrays.stressed = device_array(drive[:, 3], device, int)
    for field, dtype in (("channel", int), ("oscillation", int), ("ahead", wp.float64)):
        setattr(arrays, field, device_array([getattr(s, field) for s in signals], device, dtype))
    return arrays


@functools.cache
def signal_kernel() -> wp.Kernel:
    """Kernel over (worlds, signals): computes the values of the signals of all actuators; differentiated by Warp."""
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
        # step
        ahead: real,
        # out
        signal_out: wp.array2d[real],
    ):
        """The signal u of a control, or (1 + u) amplitude sin(2 pi frequency t + phase) of an oscillation.

        t is `ahead` later than the time of the state, and the phase includes the phase lead of the signal. The sine
        is computed in double precision.
        """
        w, n = wp.tid()
        o = drive.oscillation[n]
        s = u[w, drive.channel[n]]
        if o >= 0:
            t = time[w] + wp.float64(ahead)
            angle = _TWO_PI * wp.float64(frequency[w, o]) * t + wp.float64(phase[w, o]) + drive.ahead[n]
            s = (real(1.0) + s) * amplitude[w, o] * real(wp.sin(angle))
        signal_out[w, n] = s

    return signal


@functools.cache
def _gain() -> wp.Function:
    """Warp function gain(drive, ratio, w, s, e): gain of entry e, an entry of the row of spring s, in world w."""
    DriveArrays = drive_arrays()

    @wp.func
    def gain(drive: DriveArrays, ratio: wp.array2d[real], w: int, s: int, e: int):
        """Gain of entry e, divided by the ratio of Young's moduli if the actuator prescribes a stress.

        `ratio` is None if no moduli were replaced; then the function does not divide.
        """
        g = drive.gain[e]
        if ratio:  # noqa: SIM102 (whether the array is given)
            if drive.stressed[e] == 1:
                g = g / ratio[w, s]
        return g

    return gain


@functools.cache
def rest_length_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_driven): computes the rest lengths of the driven springs from the signals.

    The array `ratio` of the kernel is None if no Young's moduli were replaced.
    """
    DriveArrays, gain = drive_arrays(), _gain()

    @wp.kernel(module=wp.get_module("warpbots.springs.rest"), enable_backward=False)
    def rest_length(
        # model
        drive: DriveArrays,
        l0: wp.array2d[real],
        ratio: wp.array2d[real],
        # work
        signal: wp.array2d[real],
        # out
        length_out: wp.array2d[real],
    ):
        """l0' = l0 (1 + sum of gain times signal over the entries of the spring)."""
        w, k = wp.tid()
        s = drive.spring[k]
        strain = real(0.0)
        for e in range(drive.start[k], drive.start[k + 1]):
            strain += gain(drive, ratio, w, s, e) * signal[w, drive.signal[e]]
        length_out[w, s] = l0[w, s] * (real(1.0) + strain)

    return rest_length


@functools.cache
def adj_rest_length_kernel() -> wp.Kernel:
    """Kernel over (worlds, n_driven): adjoint of `rest_length_kernel`, except for the term l0* += l0'*.

    `add_kernel` adds this term.
    """
    DriveArrays, gain = drive_arrays(), _gain()

    @wp.kernel(module=wp.get_module("warpbots.springs.adj_rest"), enable_backward=False)
    def adj_rest_length(
        # model
        drive: DriveArrays,
        l0: wp.array2d[real],
        ratio: wp.array2d[real],
        copies: int,
        # work
        signal: wp.array2d[real],
        length_adj: wp.array2d[real],
        # out
        l0_adj_out: wp.array2d[real],
        ratio_adj_out: wp.array2d[real],
        signal_adj_out: wp.array2d[real],
    ):
        """signal* += gain l0 l0'*, l0* += S l0'*, ratio* -= S_stressed l0 l0'* / ratio.

        An asterisk marks the gradient with respect to a quantity. S is the sum of gain times signal over all entries of
        the spring, S_stressed the sum over the entries whose actuators prescribe a stress.
        """
        w, k = wp.tid()
        s = drive.spring[k]
        strain = real(0.0)
        stressed = real(0.0)
        row = w * copies + (k & (copies - 1))
        for e in range(drive.start[k], drive.start[k + 1]):
            g = gain(drive, ratio, w, s, e)
            strain += g * signal[w, drive.signal[e]]
            if drive.stressed[e] == 1:
                stressed += g * signal[w, drive.signal[e]]
            wp.atomic_add(signal_adj_out, row, drive.signal[e], g * l0[w, s] * length_adj[w, s])
        if ratio_adj_out:
            change = stressed / ratio[w, s] * l0[w, s] * length_adj[w, s]
            ratio_adj_out[w, s] = ratio_adj_out[w, s] - change
        if l0_adj_out:
            l0_adj_out[w, s] = l0_adj_out[w, s] + strain * length_adj[w, s]

    return adj_rest_length


@functools.cache
def add_kernel(dtype: type = real) -> wp.Kernel:
    """Kernel over (worlds, n): adds one array to another, with entries of type `dtype`."""

    @wp.kernel(module=wp.get_module(f"warpbots.springs.add_{dtype.__name__}"), enable_backward=False)
    def add(a: wp.array2d[dtype], total_out: wp.array2d[dtype]):
        """Add the entry of a to the entry of `total_out`."""
        w, s = wp.tid()
        total_out[w, s] = total_out[w, s] + a[w, s]

    return add
