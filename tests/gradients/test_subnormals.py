"""Replayed kernels count subnormal numbers as zero, and nothing else does."""

import platform

import numpy as np
import pytest
import torch
import warp as wp

from warpbots.gradients.captured import Captured
from warpbots.numerics import launch

SMALL = np.float32(1e-30)
pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="others lose no time")


@wp.kernel(enable_backward=False)
def multiply(a: wp.array[float], b: wp.array[float], product_out: wp.array[float]):
    i = wp.tid()
    product_out[i] = a[i] * b[i]


def captured(fault=None):
    """The product of two small numbers as kernels of a graph, and the array with the product."""
    a, b = (wp.array([value], dtype=float, device="cpu") for value in (SMALL, np.float32(1e-10)))
    product = wp.full(1, 7.0, dtype=float, device="cpu")

    def work():
        launch(multiply, 1, [a, b], [product], product.device)
        if fault is not None:
            raise fault

    return Captured(product.device, work, work, "kernels"), product


def subnormal_here():
    """Whether this thread computes with subnormal numbers."""
    return bool(SMALL * np.float32(1e-10) > 0.0)


def test_kernels_compute_without_subnormal_numbers():
    """When they are launched first and in replays; afterwards the thread computes with them again."""
    graph, product = captured()
    for _ in range(3):
        product.fill_(7.0)
        graph(lambda: None, None)
        assert product.numpy()[0] == 0.0
        assert subnormal_here()


def test_a_fault_leaves_the_thread_as_it_was():
    graph, _ = captured(ValueError("stop"))
    with pytest.raises(ValueError, match="stop"):
        graph(lambda: None, None)
    assert subnormal_here()


def test_the_choice_of_a_user_stays():
    """Who has switched subnormal numbers off in torch keeps them off."""
    graph, _ = captured()
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot on this processor")
    try:
        for _ in range(2):
            graph(lambda: None, None)
            assert not subnormal_here()
    finally:
        torch.set_flush_denormal(False)
    assert subnormal_here()
