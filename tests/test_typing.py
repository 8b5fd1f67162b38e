"""Type checkers see the package as a user has it: solvers are solvers, states have their fields, lists are accepted."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typing"
CHECKERS = {"mypy": ("mypy", "--strict"), "pyright": ("pyright", "--pythonpath", sys.executable)}


def check(checker: str, program: str) -> subprocess.CompletedProcess:
    """Output of a type checker for a program."""
    command = [sys.executable, "-m", *CHECKERS[checker], str(HERE / program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_program_of_a_user_is_right(checker):
    run = check(checker, "user_program.py")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_is_wrong_is_found(checker):
    """A field that the state does not have, a number for a solver and a text for a length."""
    run = check(checker, "wrong_program.py")
    wrong = {int(line.split(":")[1]) for line in run.stdout.splitlines() if "error:" in line or " - error" in line}
    assert wrong == {6, 7, 8}, run.stdout
