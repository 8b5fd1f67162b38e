"""The site builds strictly, and the code on its pages and in its gallery runs, small."""

import importlib.util
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from PIL import Image

from warpbots import cli

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "design")
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    """Blocks of code of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def small(code: str, most: int) -> str:
    """Code with rollouts of more than `most` control intervals cut to four, and trainings to two iterations."""

    def fewer(found):
        count = int(found[3])
        return f"{found[1]}{found[2]}{min(count, 2) if found[1] == 'iterations' else 4 if count > most else count}"

    return re.sub(r"\b(steps|iterations)( := | = |=)(\d+)", fewer, code)


def test_blocks_of_code_fit_into_the_column_of_the_site():
    """Of 88 characters; blocks of Python are formatted for it. Scripts and notebooks have a column of 120."""
    every = [*DOCS.rglob("*.md")]
    for page in every:
        for language in ("python", "bash"):
            long = [line for block in blocks(page, language) for line in block.splitlines() if len(line) > 88]
            assert not long, page
    words = ["format", "--isolated", "--line-length", "88", "--check", *map(str, every)]
    done = subprocess.run([sys.executable, "-m", "ruff", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_the_tutorials_says_what_each_teaches():
    """From the first cell of each notebook, with one of its stored pictures."""
    pytest.importorskip("sphinx", reason="the site needs Sphinx")
    made = runpy.run_path(str(DOCS / "_extension" / "tutorials.py"))
    notebooks = sorted((ROOT / "tutorials").glob("[0-9]*.ipynb"))
    assert len(notebooks) >= 13 and set(made["PICTURES"]) <= {path.stem for path in notebooks}
    for path in notebooks:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title, learn, time = made["introduction"]("".join(cells[0]["source"]))
        assert title and len(learn) > 40 and "read" in time, path
        assert made["thumbnail"](cells, made["PICTURES"].get(path.stem, -1)).startswith("data:image/webp;base64,")
    with pytest.raises(ValueError, match="You will learn"):
        made["introduction"]("# A title\n\nand nothing else")


def test_films_of_the_start_page_are_those_of_its_script():
    made = runpy.run_path(str(DOCS / "draw_start.py"))
    shown = re.findall(r"_static/start/(\w+\.\w+)", (DOCS / "index.md").read_text())
    assert sorted(shown) == sorted(f"{name}.{kind}" for name in made["FILMS"] for kind in ("png", "webp"))
    assert set(made["FILMS"].values()) <= {script.stem for script in SCRIPTS}
    for name in shown:
        with Image.open(DOCS / "_static" / "start" / name) as film:
            assert film.size == made["SIZE"]
            assert getattr(film, "n_frames", 1) > 20 or name.endswith("png")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs code in an empty folder and returns its names."""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": 0}.items():
        monkeypatch.setenv(name, str(value))  # a group of one process
    monkeypatch.chdir(tmp_path)

    def execute(code, name):
        names, path = {}, tmp_path / f"code_of_{name}.py"  # Warp reads the source of kernels from the file
        path.write_text(code.replace("usd_scenes/", f"{ROOT.as_posix()}/usd_scenes/"))
        exec(compile(path.read_text(), path, "exec"), names)
        return names

    yield execute
    plt.close("all")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # two iterations learn little
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_code_of_a_page_runs(page, run):
    if page.stem == "reinforcement_learning":
        pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    run(small("\n".join(blocks(page, "python")), most=40), page.name)


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # two iterations learn little
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_script_of_the_gallery(script, run, tmp_path):
    """It has at most thirty lines and draws its picture; its motion is finite and not zero."""
    code = script.read_text()
    assert len(code.splitlines()) <= 30
    motion = run(small(code, most=4), script.name)["motion"]
    assert (tmp_path / f"{script.stem}.png").stat().st_size > 1000
    assert (script.parent / "pictures" / f"{script.stem}.png").stat().st_size > 1000
    before, after = (
        np.concatenate([np.ravel(v.detach()) for v in vars(s).values()]) for s in (motion.start, motion.final)
    )
    assert np.isfinite(after).all() and not np.array_equal(before, after)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_loop_of_the_gallery_moves(script):
    """For three seconds, small, and not only in a corner; its still picture has the same size."""
    path = script.parent / "loops" / f"{script.stem}.webp"
    assert path.stat().st_size <= 150_000
    with Image.open(path) as loop:
        frames, duration = [], 0
        for k in range(loop.n_frames):
            loop.seek(k)
            frames.append(np.asarray(loop.convert("L"), dtype=float))
            duration += loop.info["duration"]
    assert duration == 3000
    changed = (np.abs(np.diff(frames[:: len(frames) // 6], axis=0)) > 24).mean(axis=(1, 2))
    assert (changed > 0.004).sum() >= 4, changed  # a plot, or a body at rest, changes nowhere
    with Image.open(script.parent / "thumbnails" / f"{script.stem}.png") as still:
        assert still.size == frames[0].shape[::-1]


def test_pictures_of_the_gallery_are_drawn(monkeypatch, tmp_path):
    """By the command that the README shows."""
    names = re.search(r"docs/draw_gallery.py (.*)", (ROOT / "README.md").read_text())[1].split()
    assert len(names) == 4 and {*names} <= {script.stem for script in SCRIPTS}
    for folder in ("pictures", "thumbnails", "loops"):
        (tmp_path / folder).mkdir()
    short = small((DOCS / "gallery" / "bouncing_balls.py").read_text(), most=4)
    (tmp_path / "bouncing_balls.py").write_text(short)
    main = runpy.run_path(str(DOCS / "draw_gallery.py"))["main"]
    main.__globals__["FOLDER"] = tmp_path
    monkeypatch.setattr(sys, "argv", ["draw_gallery.py", "bouncing_balls"])
    main()
    with Image.open(tmp_path / "thumbnails" / "bouncing_balls.png") as thumbnail:
        assert thumbnail.size == (384, 256)
    with Image.open(tmp_path / "loops" / "bouncing_balls.webp") as loop:
        assert loop.is_animated
    assert (tmp_path / "pictures" / "bouncing_balls.png").stat().st_size > 1000


def test_gallery_shows_every_script():
    (cards,) = ["\n".join(blocks(DOCS / "gallery" / "index.md", "{gallery}"))]
    assert sorted(cards.split()) == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("page", [p for p in PAGES if "warpbots " in "".join(blocks(p, "bash"))], ids=lambda p: p.stem)
def test_commands_of_a_page_are_understood(page):
    commands = [line for block in blocks(page, "bash") for line in block.splitlines() if line.startswith("warpbots ")]
    for line in commands:
        cli.parser().parse_args(shlex.split(line)[1:])


def test_the_site_builds_strictly(tmp_path):
    """A broken link, a formula that cannot be shown and a public name on no page are errors; notebooks are not run."""
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("sphinx is not installed")
    words = ["-W", "--keep-going", "-q", "-c", "docs", "-d", str(tmp_path / "doctrees"), ".", str(tmp_path / "site")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert build.returncode == 0, build.stderr
    site = tmp_path / "site"
    assert "url=docs/index.html" in (site / "index.html").read_text()
    assert "warpbots.Simulation.rollout" in (site / "docs" / "api" / "simulation.html").read_text()
    assert "<math" in (site / "docs" / "solvers" / "mpm.html").read_text()
    assert "url=index.html" in (site / "docs" / "gallery" / "yielding_truss.html").read_text()
    gallery = (site / "docs" / "gallery" / "index.html").read_text()
    cards = re.findall(r'<picture><source media="\(prefers-reduced-motion: no-pref.*? srcset="(.*?)">', gallery)
    assert len(cards) == len(SCRIPTS) and all((site / "docs" / "gallery" / card).is_file() for card in cards)
    assert gallery.count('loading="lazy"') == len(SCRIPTS)
    assert "largest error while falling" in (site / "tutorials" / "00_first_drop.html").read_text()


def test_binder_installs_this_project_and_workflows_run_what_is_there():
    """Its constraints exist, its extras and Python match the project, and every command of a workflow starts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / ".binder" / "requirements.txt").read_text().splitlines()
    (constraint,) = (line.split()[1] for line in lines if line.startswith("--constraint"))
    assert (ROOT / ".binder" / constraint).resolve() == ROOT / "constraints.txt"
    (extras,) = re.findall(r"^\.\[(.*)\]$", "\n".join(lines), re.M)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    version = (ROOT / ".binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Python :: {version}" in "\n".join(project["classifiers"])
    jobs = re.findall(r'"(\w+)": \w+', (ROOT / "run.py").read_text().split("jobs = ")[1])
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for command in re.findall(r"- run: (.*)", workflow.read_text()):
            program, *words = command.split()
            assert (ROOT / program).is_file() if program.startswith(".") else words[1] in jobs, command
