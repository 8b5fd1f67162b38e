"""The loss of a load that a pneumatic gripper carries."""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"))
from carry import ARMS, STEP, Carry


def test_a_rest_counts_in_the_loss():
    """The loss is the mean distance from the target, at the end of the motion and after each interval of the rest."""
    steps, rest = 3, 3
    grip = Carry("cube", rest=rest * STEP)
    grip.steps = steps
    grip.start(0)
    with torch.no_grad():
        grip.raw[:, ARMS] = 2.0  # an arm pushes the cube
        signals = grip.controls()
        signals = torch.cat([signals, *[signals[-1:]] * rest])
        states = [state for _, state in grip.sim.rollout(signals, steps + rest).states()]
        away = [float((grip.centre(state) - grip.target).norm()) for state in states]
        np.testing.assert_allclose(float(grip.loss()), np.mean(away[steps:]), rtol=1e-6)
    assert np.ptp(away[steps - 1 :]) > 1e-3 * away[0]
