"""Files are written whole or not at all: Ctrl-C and full disks at the worst moments."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warpbots.output_files import replacing


@pytest.fixture(autouse=True)
def python_hears_ctrl_c():
    """Also where the tests were started in the background, by a shell that keeps Ctrl-C from them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def write(folder, then=lambda: None):
    with replacing(folder / "a.txt", folder / "b.txt") as temporary:
        for path in temporary:
            path.write_text("new")
        then()


def ctrl_c(*args):
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_files_are_put_in_place_waits_for_the_last(tmp_path, monkeypatch):
    replace = Path.replace

    def interrupted(self, target):
        ctrl_c()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_writing_leaves_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, ctrl_c)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_two_ctrl_c_leave_no_temporary_file(tmp_path, monkeypatch):
    unlink = Path.unlink

    def interrupted(self, **options):
        ctrl_c()
        return unlink(self, **options)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, ctrl_c)
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, signal, torch
from warpbots.output_files import replacing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    with replacing({path!r}) as (temporary,):
        torch.save(torch.zeros(10000), temporary)
except OSError as error:
    print(error.errno, error)
"""


def test_a_full_disk_in_the_words_of_torch(tmp_path):
    """The system lets no file grow beyond 20 kB: torch has its own error for it, and the user reads the system's."""
    code = LIMITED.format(path=str(tmp_path / "controller.pt"))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.startswith(f"{errno.EFBIG} "), run.stdout + run.stderr
    assert "controller.pt: File too large; nothing was changed there" in run.stdout
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_no_full_disk_stays_what_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write(tmp_path, lambda: 1 / 0)
    assert not list(tmp_path.iterdir())
