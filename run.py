"""Everything from a fresh clone with nothing but Python: set up an environment in .venv and do one job in it.

    python run.py train    read a robot from USD, train it to walk, leave the results in output/walker, here
    python run.py test     run all checks and tests
    python run.py slow     run the tests that `test` leaves out because they take long
    python run.py docs     build the documentation site, strictly, into build/site

The environment is made once and again whenever its recipe changes.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
RECIPE = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]


def run(*words: str, folder: Path = ROOT, **environment: str) -> None:
    """Run a command in the environment, with `folder` as working directory; end this program if it fails."""
    variables = {"OMP_NUM_THREADS": "1"} | os.environ | environment  # torch's operations are small here
    result = subprocess.run([str(PYTHON), *words], cwd=folder, env=variables, check=False)
    if result.returncode:
        sys.exit(result.returncode)


def set_up(extras: str = "") -> None:
    """Make .venv with warpbots and `extras` in the versions of constraints.txt, unless it is there already."""
    recipe = hashlib.sha256(b"".join(path.read_bytes() for path in RECIPE)).hexdigest()
    stamp = ENVIRONMENT / "warpbots-recipe"
    done = stamp.read_text().split() if stamp.is_file() else []
    if done[:1] == [recipe] and (not extras or extras in done):
        return
    print("setting up .venv (once; a few minutes) ...", flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=done[:1] != [recipe])
    run("-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "--editable", f".{extras}")
    stamp.write_text(f"{recipe} {extras}")


def train(*options: str) -> None:
    """The main job: train the walker; options go to ``warpbots train``, and their paths are relative to the caller."""
    set_up()
    run("-m", "warpbots", "train", str(ROOT / "usd_scenes" / "walker.usda"), *options, folder=Path.cwd())


def tests(*options: str, **environment: str) -> None:
    """Run pytest with a worker per core; it ends with its slowest tests."""
    run("-m", "pytest", "-n", "auto", "--dist", "worksteal", "--durations", "20", *options, **environment)


def test(*options: str) -> None:
    """All checks: style, import borders, tests in both precisions; options go to the first pytest."""
    set_up("[test,notebook,docs]")
    run("-m", "ruff", "check")
    run("-m", "ruff", "format", "--check")
    run("-c", "import importlinter.cli, sys; sys.exit(importlinter.cli.lint_imports())")
    tests(*options)
    tests("-m", "verification", WARPBOTS_PRECISION="float64")


def slow(*options: str) -> None:
    """The tests marked slow, in both precisions; options go to both."""
    set_up("[test,notebook,docs]")
    # Tests of one file share what takes long. Files run in the order of `tests/conftest.py`, the longest one first.
    whole = ("--dist", "loadfile", "--no-loadscope-reorder")
    tests(*whole, "-m", "slow and verification", *options, WARPBOTS_PRECISION="float64")
    tests(*whole, "-m", "slow", *options)


def docs(*options: str) -> None:
    """Build the site; a warning is an error. Options go to sphinx-build."""
    set_up("[test,notebook,docs]")
    run("-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-d", "build/doctrees", *options, ".", "build/site")
    print(f"the site is in build/site: open {ROOT / 'build' / 'site' / 'index.html'}")


if __name__ == "__main__":
    jobs = {"train": train, "test": test, "slow": slow, "docs": docs}
    if len(sys.argv) < 2 or sys.argv[1] not in jobs:
        sys.exit(__doc__)
    jobs[sys.argv[1]](*sys.argv[2:])
