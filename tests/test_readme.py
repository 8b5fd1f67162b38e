"""The README's code runs as it stands, and its commands are those that continuous integration calls."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_python_example_runs(monkeypatch, tmp_path):
    """With fewer steps and iterations, which are all that is changed."""
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    code, steps = re.subn(r"steps=\d+", "steps=6", code)
    code, iterations = re.subn(r"iterations=\d+", "iterations=2", code)
    assert steps >= 2
    assert iterations == 1
    code = code.replace("usd_scenes/", f"{ROOT.as_posix()}/usd_scenes/")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len(names["history"].loss) == 3
    assert (tmp_path / "walk.usda").is_file()


def test_there_are_exactly_two_commands_and_ci_calls_the_second():
    block = re.search(r"```bash\n(.*?)```", README, re.S).group(1)
    commands = [line.split("#")[0].strip() for line in block.strip().splitlines()]
    assert commands == ["python3 run.py train", "python3 run.py test"]
    assert commands[1] in (ROOT / ".ci" / "run").read_text()
    assert "run.py test" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_scenes_are_what_their_functions_say():
    import runpy

    import warpbots as wb

    scenes = runpy.run_path(str(ROOT / "usd_scenes" / "build.py"))["SCENES"]
    files = {p.stem for p in (ROOT / "usd_scenes").glob("*.usda")}
    assert set(scenes) <= files
    for name, make in scenes.items():
        assert wb.usd.read(ROOT / "usd_scenes" / f"{name}.usda") == make(), name


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(link):
    assert link.startswith("http") or (ROOT / link).exists()
