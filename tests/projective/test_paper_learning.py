"""The environments in which PPO and SAC learn the tasks of soft multi-body systems: return, action and length."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
pytest.importorskip("trimesh")
PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"
sys.path.insert(0, str(PAPERS))

import softbody_gripper  # noqa: E402
import softbody_learning as learning  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gripper", "fish"])
def test_return_is_the_negative_loss_of_the_same_controls(name, monkeypatch):
    """Of a rollout with controls as the gradient method makes them; two episodes, as the drone begins anew."""
    monkeypatch.setattr(learning, "WORLDS", 1)
    task = learning.TASKS[name]()._replace(steps=3)
    env, way = learning.environment(task), float(np.linalg.norm(task.way))
    u = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 1, task.sim.channels)).astype(np.float32)
    control = torch.tensor(u[:, 0])
    if name == "gripper":
        place = softbody_gripper.FASTEST * softbody_gripper.STEP / softbody_gripper.REACH * control[:, 4:].cumsum(0)
        control = torch.cat([control[:, :4], place], dim=1)
    with torch.no_grad():
        motion = task.sim.rollout(control, 3)
    start, end = task.centre(motion.start)[0], task.centre(motion.final)[0]
    loss = float((start + torch.tensor(task.way).to(start) - end).norm())
    env.reset()
    for _ in range(2):
        for row in u:
            _, _, over, infos = env.step(row)
        assert over.all() and not infos[0]["TimeLimit.truncated"]  # no value is expected after the end
        assert infos[0]["episode"]["r"] == pytest.approx(100.0 * (1.0 - loss / way), abs=1e-3)
        q = motion.final.q[0].numpy()
        np.testing.assert_allclose(infos[0]["terminal_observation"][: len(q)], q, atol=1e-5)
