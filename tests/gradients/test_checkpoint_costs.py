"""What a checkpoint schedule costs: intervals computed, and memory of long rollouts in a process as users start it."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.gradients import Replay

SQUARE = wb.Scene(
    [wb.SoftBody("b", wb.shapes.Box((0.2, 0.2), (0.6, 0.6)), wb.Material(1e4))],
    domain=((0, 0), (1, 1)),
    gravity=(0, 0),
)


@pytest.mark.parametrize(("steps", "k"), [(7, 3), (9, 3), (10, 4), (3, 5), (8, 1)])
def test_all_but_the_last_whole_segment_is_computed_twice(steps, k, monkeypatch):
    runs, run = [], Replay.run
    monkeypatch.setattr(Replay, "run", lambda self, inputs: runs.append(1) or run(self, inputs))
    sim = wb.Simulation(SQUARE, wb.MPM(dx=1 / 10), 1e-3, 2, checkpoints=wb.Checkpoints.every(k))
    v = sim.state().velocity.clone().requires_grad_()
    sim.rollout(None, steps, sim.state(velocity=v)).final.position.sum().backward()
    assert len(runs) == 2 * steps - min(k, steps)


def test_segments_are_whole_but_the_first():
    assert wb.Checkpoints.every(4).segments(10, 1) == [2, 4, 4]
    assert wb.Checkpoints.every(4).segments(8, 1) == [4, 4]
    assert wb.Checkpoints.all().segments(10, 1) == [10]
    assert wb.Checkpoints.sqrt().segments(100, 3) == [5] * 20


MEASURE = """
import pathlib, sys, warpbots as wb
box = wb.shapes.Box((0.2, 0.2), (0.6, 0.6))
scene = wb.Scene([wb.SoftBody("b", box, wb.Material(1e4))], domain=((0, 0), (1, 1)), gravity=(0, 0))
sim = wb.Simulation(scene, wb.MPM(dx=0.0125), dt=5e-3, substeps=5)
def once(n):
    v = sim.state().velocity.clone().requires_grad_()
    sim.rollout(None, n, sim.state(velocity=v)).final.position.sum().backward()
def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
once(2)
before = peak()
once(int(sys.argv[1]))
print((peak() - before) / 1e3)
"""
"""Growth of the peak of resident memory [MB]; `ru_maxrss` would include the peak of the process that started this one."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_memory_of_a_long_rollout_grows_as_the_root_of_its_length(monkeypatch):
    """Four times the length, twice the memory; with torch's allocator it was four times, 531 MB instead of 84."""
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    grown = []
    subprocess.run([sys.executable, "-c", MEASURE, "1"], check=True, capture_output=True)  # compiling is a peak, too
    for steps in (100, 400, 1600):
        words = [sys.executable, "-c", MEASURE, str(steps)]
        grown.append(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1]))
    order = np.polyfit(np.log([100, 400, 1600]), np.log(grown), 1)[0]
    assert order < 0.75
    assert grown[-1] < 150.0


def test_states_are_independent_copies():
    sim = wb.Simulation(SQUARE, wb.MPM(dx=1 / 10), 1e-3, 2)
    first = sim.step(sim.state(), torch.zeros(1, 0))
    kept = first.position.clone()
    sim.step(first, torch.zeros(1, 0))
    assert torch.equal(first.position, kept)
