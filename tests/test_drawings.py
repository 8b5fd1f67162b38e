"""Drawings are what their code makes, can be read on a telephone and by a screen reader, and open the guide."""

import json
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FOLDER = DOCS / "drawings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("canvas", "draw"))
ELSEWHERE = ("index.md", "learn.md", "coming_from.md")  # a start page, a list and a table of names
GUIDE = sorted({*DOCS.glob("*.md"), *(DOCS / "solvers").glob("*.md")} - {DOCS / name for name in ELSEWHERE})
SMALLEST = 19  # text [units of 700 across]: 10 pixels on a page of 390
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def draw(monkeypatch):
    """The command that makes the drawings, as a dictionary of its names."""
    monkeypatch.syspath_prepend(FOLDER)
    return runpy.run_path(str(FOLDER / "draw.py"))


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_the_code_makes(name, draw):
    """If it fails: python docs/drawings/draw.py"""
    text = draw["text"](name)
    for path in draw["files"](name):
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_says_what_it_shows_and_stays_within_its_paper(name):
    root = ElementTree.parse(FOLDER / f"{name}.svg").getroot()
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert len(title.text) > 5 and len(description.text) > 40
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == 700
    for label in root.iter(f"{SVG}text"):
        size, x, y = (float(label.get(key)) for key in ("font-size", "x", "y"))
        assert size >= SMALLEST, "".join(label.itertext())
        long = 0.48 * size * len("".join(label.itertext()))  # about the width of Helvetica and Arial
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[label.get("text-anchor")] * long
        assert left >= 0 and left + long <= width and size <= y + 1 and y <= height - 2, "".join(label.itertext())
    style = root.find(f"{SVG}style").text
    assert "prefers-color-scheme:dark" in style
    assert (FOLDER / f"{name}.svg").stat().st_size < 32_000


def test_every_file_has_its_code_and_is_shown():
    assert sorted(path.stem for path in FOLDER.glob("*.svg")) == NAMES
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    pages += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tutorials").glob("*.ipynb"))
    pages += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tutorials" / "labs").glob("*.py"))
    shown = {name for name in NAMES if f"drawings/{name}.svg)" in pages or f"pictures/{name}.png)" in pages}
    assert set(NAMES) == shown


def test_tutorials_show_drawings_beside_them():
    """With alternative text and a caption; no file is left that none of them shows."""
    shown = set()
    for path in (ROOT / "tutorials").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            pictures = re.findall(r"!\[(.*)\]\(drawings/(\w+)\.svg\)(\n\n\*.+\*$)?", "".join(cell["source"]))
            assert all(len(alternative) > 20 and caption for alternative, _, caption in pictures), path.name
            shown.update(name for _, name, _ in pictures)
    assert len(shown) > 5
    assert shown == {path.stem for path in (ROOT / "tutorials" / "drawings").glob("*")}


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_of_the_guide_opens_with_a_picture_and_its_caption(page):
    opening = re.match(r"# .+\n\n!\[(.+)\]\((.+)\)\n\n\*(.+)\*\n\n", page.read_text(encoding="utf-8"))
    assert opening, "no picture with alternative text and caption after the title"
    alternative, target, caption = opening.groups()
    assert (page.parent / target).is_file() and len(alternative) > 20 and caption.endswith(".")
