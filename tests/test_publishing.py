"""A dry run of publishing: the package for an index can be installed, and runs the README's program."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OTHERS = [f"3.{minor}" for minor in (11, 12, 13, 14) if minor != sys.version_info.minor]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="publishing is done by a machine of POSIX"),
]


def interpreter(version: str) -> str | None:
    """A program that is this version of Python, on the path or kept by pyenv."""
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python3"))
    for program in filter(None, [shutil.which(f"python{version}"), *map(str, kept)]):
        if subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0:
            return program
    return None


def package(tmp_path, *words):
    command = [sys.executable, str(ROOT / ".ci" / "package"), "--out", str(tmp_path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_source_installs_with_the_lowest_versions(tmp_path):
    """`.ci/package` builds, checks and tries it: commands, the README's program, tests of pictures, files and meshes."""
    said = package(tmp_path, "--lowest", sys.executable)
    assert "runs the README's first program" in said
    assert sorted(path.suffix for path in tmp_path.glob("warpbots-*")) == [".gz", ".whl"]


def test_another_python_installs_the_source(tmp_path):
    """The newest other one that is there. Where PyTorch for it would bring CUDA, what it would install is found alone."""
    there = [(version, found) for version in OTHERS if (found := interpreter(version))]
    if not there:
        pytest.skip("there is no other Python")
    version, python = there[-1]
    subprocess.run([python, "-m", "compileall", "-q", "-f", str(copied(tmp_path))], check=True)
    command = [python, "-m", "venv", str(tmp_path / "venv")]
    subprocess.run(command, check=True)
    pip = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", "--dry-run", "--only-binary", ":all:"]
    report = tmp_path / "report.json"
    words = ["--report", str(report), "-c", str(ROOT / "constraints.txt"), "--no-binary", "warpbots", str(ROOT)]
    found = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    names = {each["metadata"]["name"].lower() for each in json.loads(report.read_text())["install"]}
    assert {"warpbots", "torch", "usd-core", "warp-lang"} <= names
    large = sorted(name for name in names if name.startswith("nvidia-"))
    if large:
        pytest.skip(
            f"all that it needs is there for Python {version}, but its PyTorch brings {len(large)} packages of CUDA"
        )
    assert "runs the README's first program" in package(tmp_path, python)


def copied(tmp_path: Path) -> Path:
    """The package, without files compiled by other Pythons."""
    return shutil.copytree(ROOT / "warpbots", tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
