"""Spectra of motions that are known."""

import numpy as np
import pytest

from warpbots.solvers.mass_spring import spectrum


def test_two_sines_are_found():
    """Frequencies to 1e-4 and amplitudes to 1 %, one being a hundredth of the other, between lines of the spectrum."""
    t = 1e-3 * np.arange(2000)
    found = spectrum(5.0 + 2.0 * np.sin(2.0 * np.pi * 7.31 * t) + 0.02 * np.sin(2.0 * np.pi * 31.77 * t + 1.0), 1e-3)
    assert found.peaks(2) == pytest.approx([7.31, 31.77], rel=1e-4)
    at = np.abs(found.frequency[:, None] - [7.31, 31.77]).argmin(axis=0)
    assert found.amplitude[at] == pytest.approx([2.0, 0.02], rel=1e-2)


def test_faults():
    """What is no record, and peaks that are not there."""
    for record, interval, message in (
        (np.zeros(3), 0.1, "at least 8 finite values"),
        (np.full(20, np.nan), 0.1, "finite"),
        (np.zeros((20, 2)), 0.1, r"\(20, 2\)"),
        (np.zeros(20), 0.0, "interval must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            spectrum(record, interval)
    with pytest.raises(ValueError, match="record a longer motion"):
        spectrum(np.arange(20.0), 0.1).peaks(500)
