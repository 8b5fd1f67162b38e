"""What browsers get and say, without a browser."""

import asyncio

import numpy as np
import pytest
import torch
from bench_cases import Viewer, flat_bar, rod, soft_cube

from warpbots.bench import pace as pacing
from warpbots.bench.pace import Pace


def run(steps):
    """Run a coroutine."""
    return asyncio.run(asyncio.wait_for(steps, 60.0))


async def until(holds):
    """Let the bench run until something holds."""
    while not holds():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("make", [flat_bar, soft_cube, rod])
def test_the_arrays_have_the_sizes_that_the_header_says(make):
    async def watch():
        bench, viewer = make().bench(), Viewer()
        bench.conversation.join(1, viewer)
        await until(lambda: viewer.frames)
        bench.close()
        return viewer

    viewer = run(watch())
    header, (geometry,) = viewer.scene
    still = header["particles"] + 3 * header["grid"] + sum(3 * m["faces"] for m in header["soft"])
    still += sum(6 * m["vertices"] + 3 * m["faces"] for m in header["rigid"] if m)
    assert len(geometry) == 4 * still
    frame, (vertices, colors, position, rotation, arrows) = viewer.frames[0]
    count = len(vertices) // 12
    assert len(colors) == 4 * count and len(position) == 12 * len(header["rigid"]) and not arrows
    assert len(rotation) == 36 * len(header["rigid"]) and len(frame["control"]) == len(header["channels"])
    assert np.isfinite(np.frombuffer(vertices, dtype=np.float32)).all()


def test_it_plays_while_somebody_watches_and_stands_still_afterwards():
    async def watch():
        bench, viewer = flat_bar().bench(), Viewer()
        talk = bench.conversation
        talk.join("a", viewer)
        talk.hear("a", {"type": "play"})
        for _ in range(5):
            seen = len(viewer.frames)
            await until(lambda seen=seen: len(viewer.frames) > seen)
            talk.hear("a", {"type": "drawn"})
        assert bench.time > 0.0 and viewer.frames[-1][0]["time"] > viewer.frames[0][0]["time"]
        talk.leave("a")
        await asyncio.sleep(0.1)
        time = bench.time
        await asyncio.sleep(0.1)
        assert bench.time == time and bench.playing
        talk.join("b", viewer)  # it goes on for the next one
        await until(lambda: bench.time > time)
        bench.close()

    run(watch())


def test_a_browser_that_draws_slowly_skips_pictures_and_no_steps():
    async def watch():
        bench, slow = flat_bar().bench(), Viewer()
        bench.conversation.join("slow", slow)
        bench.play()
        await until(lambda: bench.time > 0.1)
        bench.close()
        return len(slow.frames)

    assert run(watch()) == 2  # as many as may be on their way


def test_sliders_buttons_and_the_mouse_reach_the_bench():
    async def talk():
        bench, viewer = flat_bar().bench(), Viewer()
        bench.conversation.join(1, viewer)

        def say(**message):
            bench.conversation.hear(1, message)

        say(type="control", channel=1, value=-0.5)
        say(type="factor", name="gravity", value=0.5)
        say(type="speed", value=0.25)
        assert bench.control.tolist() == [0.0, -0.5] and bench.factors["gravity"] == 0.5 and bench.speed == 0.25
        ray = {"origin": [0.2, -1.0, 0.125], "direction": [0, 1, 0], "forward": [0, 1, 0]}
        say(type="grab", **ray)
        say(type="drag", **(ray | {"origin": [0.25, -1.0, 0.125]}))
        assert np.allclose(np.subtract(*bench.pulled[::-1]), [0.05, 0.0, 0.0])
        say(type="record")
        say(type="step")
        say(type="stop")
        assert bench.recording.steps == 1
        say(type="seek", value=0.0)
        assert bench.time == 0.0 and torch.equal(bench.state.position, bench.recording.start.position)
        say(type="release")
        assert bench.pulled is None
        say(type="grab", **(ray | {"origin": [0.9, -1.0, 0.9]}))
        assert viewer.frames[-1][0] == {"type": "missed"}
        say(type="gradient", stiffness=False)
        assert len(bench.arrows())
        say(type="reset")
        assert bench.time == 0.0
        bench.close()

    run(talk())


def test_a_fault_pauses_and_is_said_to_the_user():
    async def talk():
        bench, viewer = flat_bar().bench(), Viewer()
        bench.conversation.join(1, viewer)
        bench.play()
        bench.conversation.hear(1, {"type": "factor", "name": "youngs_modulus", "value": 1e4})
        assert not bench.playing and "over the stability bound" in bench.message
        await until(lambda: viewer.frames and "stability" in viewer.frames[-1][0]["message"])
        bench.conversation.hear(1, {"type": "factor", "name": "spin", "value": 2.0})
        assert bench.message.startswith("bench: there is no slider 'spin'")
        bench.conversation.hear(1, {"type": "explode"})
        assert "'explode', which is unknown" in bench.message
        bench.play()
        assert not bench.message
        bench.state = bench.state.mapped(lambda field: field * float("nan") if field.is_floating_point() else field)
        await until(lambda: bench.message)
        assert not bench.playing
        bench.close()

    run(talk())


def test_the_pace_is_said_when_an_interval_takes_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pacing.time, "perf_counter", lambda: now[0])
    pace, simulated, dt = Pace(), 0.0, 0.01
    for _ in range(3):
        simulated += dt * min(1, pace.due(simulated, 1.0, dt))
        now[0] += 4.0
    assert pace.ratio == pytest.approx(dt / 4.0)


def test_the_pace_is_real_time_catches_up_little_and_says_when_it_is_slow(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pacing.time, "perf_counter", lambda: now[0])
    pace, simulated, dt = Pace(), 0.0, 0.01
    for _ in range(100):  # a fast computer
        simulated += dt * pace.due(simulated, 1.0, dt)
        now[0] += 0.025
    assert simulated == pytest.approx(now[0], abs=0.03) and pace.ratio == pytest.approx(1.0, abs=0.03)
    start, begun = simulated, now[0]
    for _ in range(100):  # a slow one, which needs 50 ms for 10 ms
        count = min(1, pace.due(simulated, 1.0, dt))
        simulated += dt * count
        now[0] += 0.05
    assert simulated - start == pytest.approx(0.2 * (now[0] - begun), rel=0.05)
    assert pace.ratio == pytest.approx(0.2, abs=0.02)
    assert pace.due(simulated, 1.0, dt) <= 25  # it does not catch up the seconds that are lost
    assert pace.due(simulated, 0.0, dt) == 0 and pace.ratio is None  # paused
    pace.due(simulated, 0.5, dt)
    now[0] += 0.1
    assert pace.due(simulated, 0.5, dt) == 5  # half speed
