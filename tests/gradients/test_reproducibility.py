"""Same machine, same numbers, same bits; and float32 against float64."""

import numpy as np
import pytest
import warp as wp
from cases import assert_same
from fingerprint import compute, in_fresh_process

from warpbots.numerics import precision, record


@pytest.fixture(scope="module")
def here() -> dict[str, np.ndarray]:
    return compute()


def test_twice_in_one_process(here):
    """States and gradients of fifty steps are equal to the last bit."""
    again = compute()
    assert here.keys() == again.keys()
    for name, value in here.items():
        assert_same(again[name], value, name)


def test_in_a_fresh_process(here, tmp_path):
    """Nothing depends on addresses, on caches or on what ran before."""
    for name, value in in_fresh_process(tmp_path, precision).items():
        assert_same(value, here[name], name)


@pytest.mark.skipif(precision != "float32", reason="compares float32 with float64")
def test_single_precision_against_double(here, tmp_path):
    """States to 1e-5 of their size; gradients with a cosine above 0.9999 and a norm within 0.1 %."""
    double = in_fresh_process(tmp_path, "float64")
    for name, expected in double.items():
        a, b = here[name].ravel(), expected.ravel()
        if not b.any():  # what a field has none of, or no world that is lost
            assert not a.any(), name
            continue
        error = np.linalg.norm(a - b) / np.linalg.norm(b)
        if not name.startswith("d_"):
            print(f"{name}: {error:.1e}")
            assert error < 1e-5, name
            continue
        cosine, ratio = a @ b / np.linalg.norm(a) / np.linalg.norm(b), np.linalg.norm(a) / np.linalg.norm(b)
        print(f"{name}: 1 - cosine {1 - cosine:.1e}, norm {ratio - 1:+.1e}")
        assert cosine > 0.9999, name
        assert abs(ratio - 1) < 1e-3, name


@pytest.mark.slow
def test_no_array_is_overwritten_that_a_gradient_reads(here, tmp_path):
    """A run with `wp.config.verify_autograd_array_access` warns of nothing, and gives the same bits.

    It sees what is launched on a tape and what `record` tells it: the solvers launch off the tape and record one
    adjoint per step, which fills the grid anew.
    """
    for name, value in in_fresh_process(tmp_path, precision, "--verify-array-access").items():
        assert_same(value, here[name], name)


def test_a_step_onto_a_state_that_was_read_is_seen(monkeypatch):
    """Back and forth between two states would lose the first: Warp's guard says so."""
    monkeypatch.setattr(wp.config, "verify_autograd_array_access", True)
    a, b = (wp.zeros(3, dtype=float, requires_grad=True) for _ in range(2))
    with wp.Tape():
        record(lambda: None, reads=[a], writes=[b])
        with pytest.raises(UserWarning, match="has already been read"):  # here every warning is an error
            record(lambda: None, reads=[b], writes=[a])
