"""The page of the tutorials, from the notebooks: title, a picture that is stored in each, and what it teaches."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[2] / "tutorials"
PICTURES = {
    "04_mpm": 1, "05_projective_dynamics": 7, "07_gradients": 3, "08_identification": 2, "09_codesign": 2,
    "12_hybrid": 6, "13_learning": 3,
}  # fmt: skip
"""Which of a notebook's stored pictures is shown; by default the last one."""
SIZE = (400, 260)  # at most [pixels]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive ``tutorials``."""
    app.add_directive("tutorials", Tutorials)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Tutorials(SphinxDirective):
    """All notebooks whose names begin with a number, in this order."""

    def run(self) -> list[nodes.Node]:
        """A section for each."""
        sections = []
        for path in sorted(FOLDER.glob("[0-9]*.ipynb")):
            self.env.note_dependency(str(path))
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            title, learn, time = introduction("".join(cells[0]["source"]))
            where = f"../tutorials/{path.name}"
            lines = [f"[**{path.stem[:2]} {title}**]({where})", "", f"You will learn {learn}", "", f"*{time}*"]
            picture = nodes.image(uri=thumbnail(cells, PICTURES.get(path.stem, -1)), alt=title)
            text = nodes.container("", *self.parse_text_to_nodes("\n".join(lines)))
            sections.append(nodes.container("", nodes.paragraph("", "", picture), text, classes=["lesson"]))
        return sections


def introduction(text: str) -> tuple[str, str, str]:
    """Title, what one learns and the time of a notebook, from its first cell.

    Raises:
        ValueError: The cell lacks one of them.
    """
    found = [
        re.search(pattern, text, re.M)
        for pattern in (r"^# (.*)", r"^\*\*You will learn\*\* (.*)", r"^\*\*Time:\*\* (.*)")
    ]
    if None in found:
        raise ValueError(
            f"tutorial: its first cell needs a title, 'You will learn' and 'Time', and begins {text[:60]!r}"
        )
    title, learn, time = (match[1] for match in found)
    return title, learn, time[0].upper() + time[1:]


def thumbnail(cells: list[dict], index: int) -> str:
    """A stored picture of a notebook, as an address that contains it."""
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    stored = [data["image/png"] for data in outputs if "image/png" in data]
    with Image.open(io.BytesIO(base64.b64decode("".join(stored[index])))) as picture:
        small = picture.convert("RGB")
    small.thumbnail(SIZE)
    file = io.BytesIO()
    small.save(file, "WEBP", quality=80)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
