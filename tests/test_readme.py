"""The README's code runs as it stands, its commands are those of continuous integration, and documents name real files."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import warpbots as wb

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "warpbots" / "CONVENTIONS.md",
             *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]  # fmt: skip
PARTS = ["warpbots", "tests", "benchmarks", "tutorials", "usd_scenes", "docs"]


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # two iterations learn little
def test_python_examples_run(monkeypatch, tmp_path):
    """Only the numbers of steps and iterations are reduced."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.S))
    code, steps = re.subn(r"steps=\d+", "steps=6", code)
    code, iterations = re.subn(r"iterations=\d+", "iterations=2", code)
    assert steps >= 3
    assert iterations == 2
    code = code.replace("usd_scenes/", f"{ROOT.as_posix()}/usd_scenes/")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len(names["history"].loss) == 3
    assert abs(names["history"].loss[0]) < 0.01  # like that of the command: minus the distance travelled, at first none
    assert (tmp_path / "walk.usda").is_file()
    kept = wb.Simulation(wb.usd.read("designed.usdz"), wb.MPM(dx=1 / 80), dt=5e-3, substeps=5)
    E = kept.parameter("youngs_modulus")
    assert torch.equal(E, names["E"]) and E.std() > 0.0


def test_there_are_exactly_two_commands_and_ci_calls_the_second():
    block = re.search(r"```bash\n(.*?)```", README, re.S).group(1)
    commands = [line.split("#")[0].strip() for line in block.strip().splitlines()]
    assert commands == ["python3 run.py train", "python3 run.py test"]
    assert commands[1] in (ROOT / ".ci" / "run").read_text()
    assert "run.py test" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_a_training_leaves_its_results_where_it_was_started(monkeypatch, tmp_path):
    """From another folder, too: they went to the clone, and the path that was printed did not say so."""
    import runpy

    job = runpy.run_path(str(ROOT / "run.py"))["train"]
    started = []
    monkeypatch.setitem(job.__globals__, "set_up", lambda: None)
    monkeypatch.setitem(job.__globals__, "run", lambda *words, folder: started.append((words, folder)))
    monkeypatch.chdir(tmp_path)
    job("--iterations", "3")
    ((words, folder),) = started
    assert folder == Path.cwd()
    assert words == ("-m", "warpbots", "train", str(ROOT / "usd_scenes" / "walker.usda"), "--iterations", "3")


def test_numbers_of_examples_and_notebooks_are_right():
    examples = int(re.search(r"of (\d+) examples of at most", README).group(1))
    assert examples == len(list((ROOT / "docs" / "gallery").glob("*.py")))
    for notebook in (ROOT / "tutorials").glob("*.ipynb"):
        assert f"(tutorials/{notebook.name})" in README


def test_scenes_are_what_their_functions_say():
    import runpy

    scenes = runpy.run_path(str(ROOT / "usd_scenes" / "build.py"))["SCENES"]
    files = {p.stem for p in (ROOT / "usd_scenes").glob("*.usda")}
    assert set(scenes) <= files
    for name, make in scenes.items():
        found, made = wb.usd.read(ROOT / "usd_scenes" / f"{name}.usda"), make()
        assert_same(found, made, name)


def assert_same(a, b, name):
    """Meshes of assemblies are computed, and their last bits may depend on the processor; all else is equal."""
    assert type(a) is type(b), name
    if dataclasses.is_dataclass(a):
        for field in (field for field in dataclasses.fields(a) if field.compare):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{name}.{field.name}")
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), name
        for i, pair in enumerate(zip(a, b, strict=True)):
            assert_same(*pair, f"{name}[{i}]")
    elif isinstance(a, np.ndarray | float):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15, err_msg=name)
    else:
        assert a == b, name


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(link):
    assert link.startswith("http") or (ROOT / link).exists()


def paths() -> list[str]:
    """Files and folders of the repository, each with a slash in front; folders with one at the end, too."""
    found = [p for part in PARTS for p in [ROOT / part, *(ROOT / part).rglob("*")] if "__pycache__" not in p.parts]
    found += [p for p in ROOT.iterdir() if p.is_file()]
    return [f"/{p.relative_to(ROOT).as_posix()}" + "/" * p.is_dir() for p in found]


def named_paths(text: str) -> set[str]:
    """Every name of a Python file, notebook or document in a text, and every folder between backquotes."""
    text = re.sub(r"https?://\S+", "", text)
    names = re.findall(r"[\w./-]*\w\.(?:py|ipynb|md)\b", text) + re.findall(r"`([\w./-]+/)`", text)
    return {re.sub(r"^(\.{1,2}/)+", "", name) for name in names}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_documents_name_existing_files(document):
    """A name may leave out the folders above it: ``contact/volume.py`` is ``warpbots/contact/volume.py``."""
    known = paths()
    stale = [
        name for name in sorted(named_paths(document.read_text())) if not any(p.endswith(f"/{name}") for p in known)
    ]
    assert not stale


def test_stale_names_are_found():
    assert named_paths("`math/types.py`, see ../x/y.md and `math/`; https://a.b/c.py") == {
        "math/types.py",
        "x/y.md",
        "math/",
    }


def test_tree_of_folders_is_complete():
    """The tree in CONTRIBUTING.md has one line for each folder that holds code, and no other."""
    tree = re.search(r"\n    warpbots/\n(.*?)\n\n", (ROOT / "CONTRIBUTING.md").read_text(), re.S).group()
    listed, above = set(), []
    for indent, name in re.findall(r"^( +)([\w/]+)/(?: |$)", tree, re.M):
        above = [*above[: len(indent) // 2 - 2], name]
        listed.add("/".join(above))
    packages = {p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "warpbots").rglob("__init__.py")}
    assert packages <= listed
    assert all((ROOT / folder).is_dir() for folder in listed)
