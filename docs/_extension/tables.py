"""Sentences in tables: their columns stay wide enough to be read, and a table that does not fit is scrolled."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_LONG = 60  # characters from which a cell is a sentence


def mark(_: Sphinx, document: nodes.document) -> None:
    """Give cells with sentences the class ``sentence``, to which the style sheet gives a smallest width."""
    for cell in document.findall(nodes.entry):
        if len(cell.astext()) >= _LONG:
            cell["classes"].append("sentence")


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark the tables of each page when it was read."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
