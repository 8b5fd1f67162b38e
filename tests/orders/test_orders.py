"""The order in which threads run does not matter: what a GPU chooses anew every time, chosen here on a CPU.

Every kernel of every solver in the shape that it has on a GPU, with its threads in their order, reversed and shuffled.
And no array is written over that a gradient still reads, as Warp's own guard sees it. All kernels are compiled for it
anew, so this is slow.
"""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.verification, pytest.mark.slow]

TESTS = Path(__file__).resolve().parents[1]
GATHERED = (
    "springs", "machine", "cubes", "bricks", "winged", "turning", "driven", "breathing", "tied", "factored", "sled",
    "loose", "draped", "hand", "tumbling", "lifted", "drawn", "pressed",
    "hammered", "flung", "whipped",
)  # fmt: skip
"""Scenes in whose motion every sum is taken by one thread, or by several in an order of their own."""
TOUCHING = dict.fromkeys(
    ("springs", "cubes", "bricks", "breathing", "tied", "sled", "loose", "draped", "particles", "carried", "pressed"),
    "friction",
)
TOUCHING |= {
    "pounded": "body_friction",
    "pinned": "body_friction",
    "hammered": "body_friction",
    "hand": "contact_stiffness",
    "tumbling": "contact_restitution",
    "lifted": "surface_velocity",
}
"""Scenes in contact, and a parameter that moves them only there."""
SCATTERED = ("flat", "particles", "charged", "yielding", "liquid", "carried", "pounded", "pinned")
"""Scenes whose particles add to nodes by atomic operations, which round as they come."""


@functools.cache
def found() -> dict[str, np.ndarray]:
    """What `in_orders` finds, in a process of its own."""
    folders = [TESTS / name for name in (".", "orders", "projective")] + [TESTS.parent / "benchmarks"]
    path = os.pathsep.join([*map(str, folders), *sys.path])
    environment = os.environ | {"WARPBOTS_PARALLEL": "1", "PYTHONPATH": path}
    command = [
        sys.executable,
        str(TESTS / "orders" / "in_orders.py"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "found.npz"
        run = subprocess.run(
            [*command, str(target), "race", *GATHERED, *SCATTERED],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        with np.load(target) as file:
            return dict(file)


def pairs(scene: str, order: str):
    """Name, result in the order of the threads, and in another one."""
    results = found()
    start = f"{scene}/ordinary/"
    names = [n.removeprefix(start) for n in results if n.startswith(start)]
    return [(n, results[start + n], results[f"{scene}/{order}/{n}"]) for n in names]


ORDERS = pytest.mark.parametrize("order", ["reversed", "shuffled"])


@ORDERS
def test_orders_are_seen(order):
    """Where the order does matter, it is another one, in which every thread comes once."""
    ((_, first, other),) = pairs("race", order)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(np.sort(other), first)


@pytest.mark.parametrize("scene", TOUCHING)
def test_scenes_touch(scene):
    """What is meant to be in contact is."""
    gradients = {name: first for name, first, _ in pairs(scene, "reversed")}
    assert np.abs(gradients["d_" + TOUCHING[scene]]).max() > 0.0


@ORDERS
@pytest.mark.parametrize("scene", GATHERED)
def test_motions_are_the_same_to_the_bit(scene, order):
    """States, or what is sensed of them."""
    for name, first, other in pairs(scene, order):
        if not name.startswith("d_"):
            np.testing.assert_array_equal(other, first, err_msg=name)


@ORDERS
@pytest.mark.parametrize("scene", GATHERED + SCATTERED)
def test_results_are_the_same_to_rounding(scene, order):
    """And gradients with respect to states, controls and every parameter: to 1e-10 of the largest entry.

    Most agree to 1e-14; an adjoint that is iterated to 1e-11 ends within that. A gradient that is zero is a sum of terms
    that cancel, to 1e-13: the derivative by the speed of a belt on which all matter slips. Gradients of the sled differ
    by up to 1.4e-9, with a tolerance of 1e-12 as well: its bones lie on a hard floor. Those of the sheets differ by as
    much: their steps end at the tolerance of the solver, as tighter ones take minutes.
    """
    share = 3e-9 if scene in ("sled", "draped") else 1e-10
    for name, first, other in pairs(scene, order):
        assert np.abs(other - first).max() <= share * np.abs(first).max() + 1e-13, name
