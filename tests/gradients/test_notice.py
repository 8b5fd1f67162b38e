"""What the user is told while kernels compile."""

import time

from cells import cell_of

from warpbots.gradients import progress_notice
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


def test_in_a_notebook_it_is_a_line_of_the_cell(capsys, monkeypatch):
    shown = cell_of(monkeypatch)
    monkeypatch.setattr(progress_notice, "in_notebook", lambda: True)
    with said_when_slow("preparing <a>", seconds=0.05):
        time.sleep(0.2)
    first, last = shown
    assert first["text/plain"] == "warpbots: preparing <a> ..."
    assert last["text/plain"].startswith("warpbots: preparing <a> ... took 0.")
    assert "preparing &lt;a&gt; ... took" in last["text/html"]
    assert capsys.readouterr().err == ""
