"""What the user is told while kernels compile."""

import time

from warpbots.gradients.progress_notice import said_when_slow


def test_a_slow_block_is_announced_while_it_runs(capsys):
    with said_when_slow("preparing", seconds=0.05):
        time.sleep(0.2)
        during = capsys.readouterr().err
    assert during == "warpbots: preparing ...\n"
    assert capsys.readouterr().err.startswith("warpbots: ... took 0.")


def test_a_fast_block_says_nothing(capsys):
    with said_when_slow("preparing", seconds=0.2):
        pass
    time.sleep(0.3)
    assert capsys.readouterr().err == ""
