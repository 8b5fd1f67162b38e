"""An optimised hand of meshes does its task in MuJoCo, written as MJCF and driven open loop."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import warpbots as wb

pytest.importorskip("mujoco")
PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"


def test_the_box_is_flipped_there_too(monkeypatch, tmp_path):
    """Finger and controls are those of `diffhand_compare.py`; MuJoCo has its contact laws at the contact points.

    Until the finger touches the box, both motions agree to the errors of their steps.
    """
    monkeypatch.setattr(sys, "path", [str(PAPERS), str(PAPERS.parent), *sys.path])
    import refined
    from diffhand_hands import finger, flip_scene

    best = refined.kept("diffhand_flip_after")
    control = torch.tanh(best["controls"].double())
    scene = flip_scene(finger(), best["factors"].double())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of impacts that steps do not resolve, as in the paper
        sim = wb.Simulation(scene, wb.Articulated(rounding=0.2), 0.025, 5)
        fine = wb.Simulation(scene, sim.solver, 0.025, 50)
    ours = sim.rollout(control, 30, observe=lambda s: s.q).observation[0].numpy()
    assert abs(np.rad2deg(ours[-1, -1]) - 90.0) < 2.0
    wb.robots.save(tmp_path / "finger.xml", scene, contact="points", rounding=0.2)
    replay = wb.robots.replay_in_mujoco(tmp_path / "finger.xml", scene, control.numpy(), 0.025, timestep=5e-5)
    free = fine.rollout(control[:1], 1).final.q[0].numpy()
    assert np.abs(replay.q[1] - free).max() < 1e-4
    assert np.abs(free).max() > 0.01
    angle = np.rad2deg(replay.q[:, -1])
    print(f"box at {angle[-1]:.2f} degrees there, {np.rad2deg(ours[-1, -1]):.2f} here")
    assert abs(angle[-1] - 90.0) < 5.0
    assert angle[5] < 80.0  # it takes a while
