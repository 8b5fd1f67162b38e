"""Amplitude spectrum of a recorded motion, for comparison with the natural frequencies of a lattice."""

import dataclasses
from typing import Any

import numpy as np

__all__ = ["Spectrum", "spectrum"]

_SHORTEST = 8
"""Smallest number of values of a record."""


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """Amplitude spectrum of a motion.

    Attributes:
        frequency: Frequencies from 0 to half the sampling rate [Hz], shape (n,).
        amplitude: Amplitude of the sine at each frequency, in the unit of the record, shape (n,).
    """

    frequency: np.ndarray
    amplitude: np.ndarray

    def peaks(self, count: int) -> np.ndarray:
        """Frequencies of the `count` highest peaks [Hz], in increasing order.

        Each frequency is interpolated with a parabola through the logarithms of the amplitudes.

        Raises:
            ValueError: The spectrum has fewer than `count` peaks.
        """
        from scipy.signal import find_peaks

        level = np.log(np.maximum(self.amplitude, np.finfo(float).tiny))
        peak, _ = find_peaks(level)
        if len(peak) < count:
            raise ValueError(f"Spectrum.peaks: there are {len(peak)} peaks, not {count}; record a longer motion")
        peak = np.sort(peak[np.argsort(-level[peak])[:count]])
        left, middle, right = level[peak - 1], level[peak], level[peak + 1]
        return (peak + 0.5 * (left - right) / (left - 2.0 * middle + right)) * self.frequency[1]


def spectrum(record: Any, interval: float) -> Spectrum:
    """Amplitude spectrum of a motion after its mean is subtracted.

    The motion is multiplied by a Blackman-Harris window, whose side lobes are 92 dB below the main lobe.

    Args:
        record: Values of the motion at equal intervals, such as a displacement, shape (n,), as an array or a tensor.
            Oscillations with fewer than about eight periods in the record merge with the mean and with one another.
        interval: Time between two values [s].

    Raises:
        ValueError: The record is not a row of at least 8 finite values, or `interval` is not positive.
    """
    from scipy.signal.windows import blackmanharris

    values = np.asarray(record.detach().cpu() if hasattr(record, "detach") else record, dtype=np.float64)
    if values.ndim != 1 or len(values) < _SHORTEST or not np.isfinite(values).all():
        raise ValueError(
            f"spectrum: a record must be a row of at least {_SHORTEST} finite values, got shape {values.shape}"
        )
    if not interval > 0.0:
        raise ValueError(f"spectrum: interval must be positive [s], got {interval:g}")
    window = blackmanharris(len(values), sym=False)
    size = 2 ** int(np.ceil(np.log2(8 * len(values))))  # zeros after the record make lines dense enough for a parabola
    lines = np.fft.rfft(window * (values - values.mean()), size)
    return Spectrum(np.fft.rfftfreq(size, interval), 2.0 * np.abs(lines) / window.sum())
