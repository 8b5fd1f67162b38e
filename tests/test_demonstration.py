"""The demonstration moves every actuator, within its range, and `warpbots view` says that it is one."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots import cli
from warpbots.scene import Box, Joint, Muscle, RigidBody, Torque


def chain(joints, **more):
    """A chain of hinges about y in weightlessness, each with a motor."""
    bodies, hinges, motors, parent = [], [], [], None
    for k in range(joints):
        body = RigidBody(f"link{k}", Box((0.0, -0.01, -0.01), (0.1, 0.01, 0.01)), density=1e3, position=(0.1 * k, 0, 0))
        hinges.append(Joint(f"hinge{k}", "revolute", parent, body.name, axis=(0, 1, 0), position=(0.1 * k, 0, 0)))
        motors.append(Torque(f"motor{k}", f"hinge{k}", 1e-3))
        bodies.append(body)
        parent = body.name
    scene = wb.Scene(bodies, joints=hinges, actuators=motors, gravity=(0, 0, 0))
    return wb.Simulation(scene, wb.Articulated(), dt=0.01, **more)


@pytest.mark.parametrize(("steps", "period"), [(200, 1.0), (40, 0.4)])
def test_channels_follow_one_another_in_waves_of_half_their_range(steps, period):
    sim = chain(4)
    signal = wb.controllers.demonstration(sim, steps).numpy()
    assert signal.shape == (steps, 4)
    delay = round(period / 4 / sim.dt)
    for k in range(4):
        assert (signal[: k * delay, k] == 0.0).all()
        np.testing.assert_allclose(signal[k * delay :, k], signal[: steps - k * delay, 0], atol=1e-6)
    time = (np.arange(steps) + 0.5) * sim.dt
    expected = 0.5 * np.minimum(2.0 * time / period, 1.0) * np.sin(2.0 * np.pi * time / period)
    np.testing.assert_allclose(signal[:, 0], expected, atol=1e-6)


def test_every_joint_moves():
    sim = chain(3)
    with torch.no_grad():
        motion = sim.rollout(wb.controllers.demonstration(sim, 100), 100)
    q = np.stack([q for _, q, _ in motion.joints()])
    assert (np.ptp(q, axis=0) > 0.02).all()


def test_a_demonstration_of_no_time_is_refused():
    with pytest.raises(ValueError, match="demonstration: steps must be at least 1, got 0"):
        wb.controllers.demonstration(chain(1), 0)


@pytest.mark.parametrize("driven", [True, False])
def test_view_shows_a_robot_move_and_says_why(driven, tmp_path, capsys):
    bar = wb.SoftBody("bar", Box((0, 0), (0.2, 0.05)), wb.Material(2e4), regions={"left": Box((0, 0), (0.1, 0.05))})
    muscles = [Muscle("pull", "left", (1.0, 0.0), 5e3)] if driven else []
    wb.usd.write(tmp_path / "bar.usda", wb.Scene([bar], muscles, gravity=(0.0, 0.0), name="bar"))
    page = tmp_path / "page.html"
    assert cli.main(["view", str(tmp_path / "bar.usda"), "--steps", "30", "--no-open", "--out", str(page)]) == 0
    said = "Demonstration, without a controller: each actuator follows a wave of half its range."
    assert (said in capsys.readouterr().out) == driven
    text = re.search(r'<script id="motion"[^>]*>([^<]*)<', page.read_text(encoding="utf-8")).group(1)
    block = zlib.decompress(base64.b64decode(text))
    header = json.loads(block[4 : 4 + int.from_bytes(block[:4], "little")])
    assert header["note"] == (said if driven else "")
    low = np.frombuffer(block, dtype=np.uint8)[4 + int.from_bytes(block[:4], "little") + header["geometry"] :]
    first = 3 * header["vertices"]
    assert low[first : first * header["frames"]].any() == driven  # differences from frame to frame
