"""PPO and SAC on the tasks of soft multi-body systems: return, action and length of an episode, and stored results."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
pytest.importorskip("trimesh")
PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"
sys.path.insert(0, str(PAPERS))

import softbody_gripper  # noqa: E402
import softbody_learning as learning  # noqa: E402
import softbody_octopus  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gripper", "octopus", "fish"])
def test_return_is_the_negative_loss_of_the_same_controls(name, monkeypatch):
    """Of a rollout with controls as the gradient method makes them; two episodes, as signals begin anew."""
    monkeypatch.setattr(learning, "WORLDS", 1)
    task = learning.TASKS[name]()._replace(steps=3)
    env, way = learning.environment(task), float(np.linalg.norm(task.way))
    u = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 1, task.sim.channels)).astype(np.float32)
    control = torch.tensor(u[:, 0])
    if name == "gripper":
        share, place = softbody_gripper.FASTEST * softbody_gripper.STEP / softbody_gripper.REACH, [torch.zeros(3)]
        for velocity in control[:, 4:]:
            place.append(place[-1] + share * velocity)
            place[-1][2].clamp_(min=0.0)  # not below the start
        control = torch.cat([0.5 + 0.5 * control[:, :4], torch.stack(place[1:])], dim=1)  # from empty to full
    if name == "octopus":
        age = torch.arange(3)[:, None] - torch.arange(3)
        kept = np.exp(-softbody_octopus.STEP / softbody_octopus.LAG)
        control = ((1.0 - kept) * kept ** age.clamp(min=0) * (age >= 0)).to(control) @ control
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
        seen = task.observers[0].bind(task.sim)(motion.final)[0].numpy()
        np.testing.assert_allclose(infos[0]["terminal_observation"][: len(seen)], seen, atol=1e-4)


def test_muscles_average_for_as_long_as_those_of_the_gradient():
    """The response to one impulse has the standard deviation of the gradient's Gaussian, but for the step."""
    signals, last = [], np.zeros((1, 1), np.float32)
    for k in range(100):
        last = learning.lagged(last, np.full((1, 1), float(k == 0), np.float32))
        signals.append(float(last[0, 0]))
    time = softbody_octopus.STEP * np.arange(100)
    assert sum(signals) == pytest.approx(1.0, abs=1e-5)
    assert np.sqrt(np.cov(time, aweights=signals, ddof=0)) == pytest.approx(softbody_octopus.LAG, rel=0.01)


@pytest.fixture
def two_threads():
    """Torch with two threads, and as many as before after the test."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def test_a_stopped_run_leaves_its_curve_beside_the_others(monkeypatch, tmp_path, two_threads):
    def learn(task, method, seed, episodes, note):
        assert torch.get_num_threads() == 1  # several wait for one another in small operations
        note([0.15, 0.1], 0)
        note([0.15, 0.1, 0.004, 0.2], 1)
        raise KeyboardInterrupt

    other = {"method": "sac", "seed": 0, "curve": [0.2, 0.1], "near": 0.005, "final": 0.1}
    (tmp_path / "softbody_learning.json").write_text(json.dumps({"fish": [other]}))
    monkeypatch.setattr(learning, "HERE", tmp_path)
    monkeypatch.setattr(learning, "TASKS", {"fish": lambda: SimpleNamespace(near=0.005, searches={})})
    monkeypatch.setattr(learning, "learn", learn)
    monkeypatch.setattr(sys, "argv", ["softbody_learning.py", "fish", "--methods", "ppo"])
    with pytest.raises(KeyboardInterrupt):
        learning.main()
    found = json.loads((tmp_path / "softbody_learning.json").read_text())["fish"]
    assert found[0] == other
    assert found[1]["curve"] == [0.15, 0.1, 0.004, 0.2] and found[1]["final"] is None
    assert found[1]["arrived"] == 3 and found[1]["lost"] == 1
    monkeypatch.setattr(sys, "argv", ["softbody_learning.py", "--draw"])
    learning.main()
    assert (tmp_path / "softbody_learning.png").stat().st_size > 5000
