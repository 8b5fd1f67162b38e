"""The page of all attributes of files, from the table that reads and writes them."""

import itertools
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from warpbots.usd.stage.schema import TABLE, Row

_HEAD = ("attribute", "type", "unit", "sets", "default", "on", "name from", "written by")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive ``usd-attributes``."""
    app.add_directive("usd-attributes", Attributes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Attributes(SphinxDirective):
    """All attributes, by the modules that read them."""

    def run(self) -> list[nodes.Node]:
        """A heading and a table for each module."""
        return self.parse_text_to_nodes("\n".join(markdown()), allow_section_headings=True)


def markdown() -> list[str]:
    """Lines of Markdown: for each module, what it reads."""
    found = []
    for reader, rows in itertools.groupby(sorted(TABLE, key=lambda row: row.reader), key=lambda row: row.reader):
        found += [f"## Read by `{reader}`", "", _line(_HEAD), _line(["---"] * len(_HEAD))]
        found += [*map(_row, rows), ""]
    return found


def _row(row: Row) -> str:
    values = row.type, row.unit, row.sets, _default(row.default), row.prim, row.origin, row.writer or "nobody"
    return _line([f"`{row.name}`", *values])


def _default(value: Any) -> str:
    if value is ...:
        return "must be given"
    return "none" if value is None else f"`{value!r}`"


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
