"""Soft bodies in contact move as by incremental potential contact, a different method with barriers of its own."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ipctk", reason="ipctk is not installed")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from degenerate_contacts import run
from incremental_potential import IncrementalPotential


@pytest.mark.verification
@pytest.mark.parametrize(
    ("kind", "support"),
    [
        ("spike in a wedge", "fixed"),
        ("cube over internal edges", "fixed"),
        ("cube on a cliff", "soft"),
        ("spike on spike", "fixed"),
        ("ridge in a wedge", "soft"),
    ],
)
def test_motions_are_those_of_barriers(kind, support):
    """In steps of 10 ms a body is caught, slides, sticks and rebounds, 4 to 10 mm in all, with friction of 0.3.

    Barriers begin 1e-4 edges, 10 um, beyond the distance that surfaces keep here. With those of 1e-3 edges both are
    ten times as far apart.
    """
    made = []

    def barriers(scene, dt):
        def begin():
            made.append(IncrementalPotential(scene, dt, lags=30, activation=1e-4, least=0.01))
            return made[-1].step

        return begin

    ours, theirs = run(kind, support, 0.01), run(kind, support, 0.01, barriers)
    assert ours.end == theirs.end == "found" and len(ours.path) == 8
    assert not ours.shorter and not made[-1].lagging
    assert np.linalg.norm(theirs.path[-1] - theirs.path[0], axis=1).max() > 1e-3
    assert np.linalg.norm(ours.path - theirs.path, axis=2).max() < 4e-5
