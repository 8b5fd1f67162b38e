"""Stored tutorials: readable without a kernel, in small steps, with answers to a reader's first questions."""

import base64
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "tutorials"
LONGEST = 15  # lines of a cell that does not describe a robot
LARGEST = 8e6  # all tutorials together [bytes]


@pytest.fixture(params=sorted(path.name for path in FOLDER.glob("*.ipynb")))
def cells(request):
    return json.loads((FOLDER / request.param).read_text(encoding="utf-8"))["cells"]


def text(cell):
    return "".join(cell["source"])


def outputs(cells):
    return [output for cell in cells for output in cell.get("outputs", ())]


def test_the_first_cell_says_what_and_how_long_and_from_where(cells):
    first = text(cells[0])
    assert first.startswith("# ")
    for heading in ("**You will learn**", "**Time:**", "**Needed:**", "**References:**"):
        assert heading in first
    assert sum(bool(re.match("## ", text(cell))) for cell in cells) >= 6


def test_cells_are_short(cells):
    for cell in cells:
        lines = [line for line in text(cell).splitlines() if line.strip()]
        robot = "robot" in cell["metadata"].get("tags", ())
        assert cell["cell_type"] == "markdown" or robot or len(lines) <= LONGEST, text(cell)


def test_exercises_say_their_level(cells):
    """By hand, some lines, or an experiment: one to three stars."""
    questions = [text(cell) for cell in cells if text(cell).startswith("**Exercise")]
    assert questions
    for number, question in enumerate(questions, 1):
        assert re.match(rf"\*\*Exercise {number}\*\* ★{{1,3}} [A-Z`]", question), question


def test_outputs_need_no_kernel_and_no_network(cells):
    """No widget, which every viewer would prefer to the stored output, and no output on stderr."""
    for output in outputs(cells):
        assert output.get("name") != "stderr", output["text"]
        bundle = output.get("data", {})
        assert not [kind for kind in bundle if "widget" in kind or "javascript" in kind]
        page = "".join(bundle.get("text/html", ""))
        assert not re.search(r"""(src|href)\s*=\s*["']https?:""", page)
        assert "<iframe" not in page or "image/png" in bundle


def test_motions_have_pictures_and_the_last_one_a_player(cells):
    motions = [o["data"] for o in outputs(cells) if "".join(o.get("data", {}).get("text/plain", "")).startswith("Traj")]
    assert motions
    assert all("image/png" in bundle for bundle in motions)
    assert ["text/html" in bundle for bundle in motions] == [False] * (len(motions) - 1) + [True]


def test_pictures_have_a_palette(cells):
    """It makes them three times smaller."""
    pictures = [o["data"]["image/png"] for o in outputs(cells) if "image/png" in o.get("data", {})]
    assert {base64.b64decode("".join(picture))[25] for picture in pictures} == {3}  # type of colours in the header


def test_they_are_not_too_large():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.ipynb")) < LARGEST
