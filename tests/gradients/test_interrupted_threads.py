"""Processes whose threads share worlds or a body, interrupted, ended and killed from outside while they run."""

import os
import signal
import subprocess
import sys
import time

import pytest

from warpbots.gradients.thread_team import at_once

HEARD = []
"""Interrupts that the handler of a test has received."""

PROGRAM = """
import signal
import sys
import numpy as np
import torch
import warp as wp
import warpbots as wb

wp.config.log_level = wp.LOG_WARNING
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
matter = wb.SoftBody("block", wb.shapes.Box((0, 0, 0), (1, 1, 1)), wb.Material(1e5, 0.25))
scene = wb.Scene([matter], obstacles=[wb.floor(-0.1)], domain=((-1, -1, -0.2), (2, 2, 2)))
solver = {{"springs": wb.MassSpring(1 / 14), "mpm": wb.MPM(1 / 8)}}[{solver!r}]
options = {options!r}

def gradient(sim):
    start = sim.state()
    start.velocity.requires_grad_()
    end = sim.rollout(None, 3, start).final.position
    end.square().sum().backward()
    return end.detach(), start.velocity.grad

sim = wb.Simulation(scene, solver, 1e-3, 3, threads=2, **options)
expected = gradient(wb.Simulation(scene, solver, 1e-3, 3, threads=1, **options))
gradient(sim)
while True:
    try:
        print("ready", flush=True)
        while True:
            gradient(sim)
    except KeyboardInterrupt:
        right = all(torch.equal(a, b) for a, b in zip(gradient(sim), expected))
        usual = np.float32(1e-30) * np.float32(1e-10) > 0  # the mode of numbers that replays change for a while
        print("right" if right and usual else "wrong", flush=True)
"""


def interrupting(done):
    """Interrupt this process as Ctrl-C does, and note that the task went on."""
    signal.raise_signal(signal.SIGINT)
    done.append(True)


@pytest.fixture
def handler(request):
    """Installs a handler of Ctrl-C for a test."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("handler", [signal.default_int_handler], indirect=True)
def test_an_interrupt_waits_for_the_end_of_all_tasks(handler):
    """In the middle of the pool's own locks it would leave them locked for ever."""
    done = []
    with pytest.raises(KeyboardInterrupt):
        at_once([lambda: interrupting(done), lambda: time.sleep(0.02) or done.append(True)])
    assert done == [True, True]
    assert at_once([lambda: 1, lambda: 2]) == [1, 2]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("handler", [lambda number, frame: HEARD.append(number)], indirect=True)
def test_a_handler_of_the_user_hears_the_interrupt(handler):
    HEARD.clear()
    assert at_once([lambda: interrupting([]), lambda: len(HEARD)]) == [None, 0]
    assert HEARD == [signal.SIGINT]


def last_words(process):
    """What a process has written to its standard error, after its end."""
    process.kill()
    return process.communicate()[1]


@pytest.fixture(params=[("springs", {}), ("mpm", {}), ("mpm", {"worlds": 4})], ids=["springs", "mpm", "worlds"])
def running(request):
    """A process that runs on and on with two threads, and has begun."""
    solver, options = request.param
    program = [sys.executable, "-c", PROGRAM.format(solver=solver, options=options)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n", last_words(process)
        yield process
    finally:
        last_words(process)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_interrupts_end_a_rollout_and_the_next_is_right(running):
    """At whichever moment they come; results have the bits of one thread."""
    for wait in (0.11, 0.02, 0.07, 0.0, 0.13):
        time.sleep(wait)
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "right\n", last_words(running)
        assert running.stdout.readline() == "ready\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_ends_when_it_is_told_to(running, sent):
    """Threads that wait for one another keep no process alive."""
    time.sleep(0.05)
    running.send_signal(sent)
    assert running.wait(timeout=60) == -sent
