"""Files are written whole or not at all: Ctrl-C and full disks at the worst moments."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warpbots.output_files import protecting, replacing, temporary_folder


@pytest.fixture(autouse=True)
def python_hears_ctrl_c():
    """Also if the tests were started in the background, by a shell that keeps Ctrl-C from them."""
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
from warpbots.output_files import replacing, protecting, temporary_folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    with replacing({path!r}) as (temporary,):
        torch.save(torch.zeros(10000), temporary)
except OSError as error:
    print(error.errno, error)
"""


def test_a_full_disk_in_the_words_of_torch(tmp_path):
    """The system lets no file grow beyond 20 kB: torch has its own error for it; the user reads that of the system."""
    code = LIMITED.format(path=str(tmp_path / "controller.pt"))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.startswith(f"{errno.EFBIG} "), run.stdout + run.stderr
    assert "controller.pt: File too large; nothing was changed there" in run.stdout
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_no_full_disk_stays_what_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write(tmp_path, lambda: 1 / 0)
    assert not list(tmp_path.iterdir())


UNTIL_KILLED = """
import sys, time
from pathlib import Path
from warpbots.output_files import replacing, temporary_folder
folder = Path(sys.argv[1])
with replacing(folder / "a.txt", folder / "b.txt") as files, temporary_folder(folder) as inner:
    for file in (*files, inner / "c.txt"):
        file.write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_has_left_goes_at_the_next_write(tmp_path):
    """Files of a killed process are removed; files of a process that still writes stay, as do other files."""
    (tmp_path / ".other.12345678.txt").touch()
    runs = [
        subprocess.Popen([sys.executable, "-c", UNTIL_KILLED, tmp_path], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        assert [run.stdout.readline() for run in runs] == ["ready\n"] * 2
        runs[0].kill()
        os.waitid(os.P_PID, runs[0].pid, os.WEXITED | os.WNOWAIT)  # it has ended, but is still in the list
        assert len(list(tmp_path.iterdir())) == 7
        with replacing(tmp_path / "new.txt") as (temporary,):
            temporary.write_text("new")
        left = {p.name for p in tmp_path.iterdir()} - {"new.txt", ".other.12345678.txt"}
        assert len(left) == 3 and all(f"-{runs[1].pid}-" in name for name in left)
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    with temporary_folder(tmp_path), replacing(tmp_path / "new.txt") as (temporary,):
        temporary.write_text("newer")
    assert {p.name for p in tmp_path.iterdir()} == {"new.txt", ".other.12345678.txt"}


def test_left_over_files_of_other_hosts_go_after_a_day(tmp_path):
    young, old = (tmp_path / f".a.warpbots-00000f-{k}-12345678.txt" for k in (1, 2))
    for file in (young, old):
        file.touch()
    os.utime(old, (0, 0))
    write(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"a.txt", "b.txt", young.name}


@pytest.mark.parametrize("link", ["", "symbolic", "hard", "relative"])
def test_a_file_that_is_spared_is_not_replaced(tmp_path, monkeypatch, link):
    source = target = tmp_path / "source.txt"
    source.write_text("old")
    if link in ("symbolic", "hard"):
        target = tmp_path / "other.txt"
        (target.symlink_to if link == "symbolic" else target.hardlink_to)(source)
    if link == "relative":
        monkeypatch.chdir(tmp_path)
        target = Path("x") / ".." / "source.txt"
        (tmp_path / "x").mkdir()
    said = "from which it would be made; choose another name"
    with protecting([source]), pytest.raises(FileExistsError, match=said), replacing(tmp_path / "fine.txt", target):
        raise AssertionError("nothing is written")
    assert source.read_text() == "old"
    write(tmp_path)
