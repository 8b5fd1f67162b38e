"""A batch of worlds over two processes: the same as in one."""

import csv
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from two_processes import DATA, METHODS, robot, solve, the_page_on_optimisation, turned_back, worlds_of_a_robot

from warpbots import cli, usd

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Results of each of the two processes."""
    folder = tmp_path_factory.mktemp("processes")
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run += [HERE / "two_processes.py", folder]
    done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) | {"folder": folder} for rank in (0, 1)]


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # too short on purpose
@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_as_in_one_process(found, name):
    x, loss, episodes = solve(name, DATA)
    assert found[0][name] == found[1][name]
    assert found[0][name][0] == pytest.approx(x, rel=1e-6, abs=1e-8)
    assert found[0][name][1] == pytest.approx(loss, rel=1e-6, abs=1e-8)
    assert found[0][name][2] == episodes


def test_a_gradient_that_fails_in_one_process_turns_all_of_them_back(found):
    alone = turned_back(None, 3.1)
    assert found[0]["turned back"] == found[1]["turned back"] == alone
    assert alone[0] == pytest.approx([3.0, 3.0], abs=1e-2) and alone[2] > 0


def test_worlds_of_a_robot_are_divided(found):
    assert found[0]["robot"] == found[1]["robot"]
    assert found[0]["robot"] == pytest.approx(worlds_of_a_robot(None, 0), rel=1e-4)


def test_the_example_of_the_page(found):
    assert found[0]["page"] == found[1]["page"] == pytest.approx(the_page_on_optimisation(), rel=1e-3)
    assert found[0]["page"] != pytest.approx([0.3] * 20, rel=0.1)


def losses(folder: Path) -> list[float]:
    return [float(row["loss"]) for row in csv.DictReader((folder / "loss.csv").read_text().splitlines())]


def test_the_command_line_divides_its_worlds(found, tmp_path):
    """Losses are those of all worlds in one process, and one process writes."""
    usd.write(tmp_path / "robot.usda", robot())
    words = ["train", str(tmp_path / "robot.usda"), "--worlds", "2", "--iterations", "2"]
    assert cli.main([*words, "--out", str(tmp_path / "one")]) == 0
    assert found[0]["refused"] == found[1]["refused"] == 2  # three worlds
    out = found[0]["folder"] / "out"
    assert losses(out) == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    names = {"checkpoint.pt", "controller.pt", "loss.csv", "loss.png", "motion.gif", "motion.usda"}
    assert names <= {path.name for path in out.iterdir()}
    assert cli.main([*words, "--out", str(tmp_path / "one"), "--resume", "--vary", "0.2"]) == 2
    assert cli.main([*words[:2], "--iterations", "2", "--out", str(tmp_path / "nominal")]) == 0
    assert losses(tmp_path / "nominal") != pytest.approx(losses(out), rel=1e-3)


def test_random_losses_resume_to_the_same_bits_in_each_process(found):
    for one in found:
        whole, resumed = one["resumed"]
        assert resumed == whole
    assert found[0]["resumed"] == found[1]["resumed"]


def test_the_first_process_reports_and_decides(found):
    assert found[0]["stopped"][0] == found[1]["stopped"][0] == 2
    assert found[0]["stopped"][1].count("callback") == 2
    assert found[1]["stopped"][1] == []


def test_processes_that_are_apart_are_refused(found):
    assert all("the processes of the group evaluate the loss at different unknowns" in one["apart"] for one in found)


LOST = """
import os, signal, sys, torch, torch.distributed as dist, warpbots as wb
dist.init_process_group("gloo")
rank, x, calls = dist.get_rank(), torch.ones(3, requires_grad=True), 0
def loss():
    global calls
    calls += 1
    if calls == 4 and rank == {}:
        os.kill(os.getpid(), signal.SIGKILL)
    return x.square().sum()
try:
    wb.fit([x], loss, iterations=1000, progress=False, group=dist.group.WORLD, checkpoint=sys.argv[1])
except RuntimeError as fault:
    sys.exit(str(fault))
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_others_in_a_sentence(tmp_path, killed):
    """They end soon, and the checkpoint of the first process can be resumed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", LOST.format(killed), tmp_path / "run.pt"]
    runs = [
        subprocess.Popen(program, env=os.environ | group | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    try:
        said = [run.communicate(timeout=120)[1] for run in runs]
    finally:
        for run in runs:
            run.kill()
    assert [run.returncode for run in runs] == [(-9 if rank == killed else 1) for rank in (0, 1)]
    other = said[1 - killed]
    assert f"minimize: process {1 - killed} of 2 has lost another one of its group, which was killed" in other
    assert "resume=True (--resume on the command line)" in other and "Traceback" not in other
    assert (tmp_path / "run.pt").is_file()
