"""Short tables as text and as HTML."""

import dataclasses
import html
from collections.abc import Sequence

__all__ = ["TableSection", "Table", "size"]


@dataclasses.dataclass(frozen=True)
class TableSection:
    """A heading and rows below it; all rows have the same number of texts.

    Attributes:
        heading: Heading of the rows.
        rows: The texts of each row; the first text is the name of the row.
        most: Largest number of rows that are shown.
    """

    heading: str
    rows: Sequence[Sequence[str]]
    most: int = 12

    @property
    def shown(self) -> list[Sequence[str]]:
        """The rows, at most `most`; if rows are left out, the last one shown gives their number."""
        if len(self.rows) <= self.most:
            return list(self.rows)
        more = f"... and {len(self.rows) - self.most + 1} more", *[""] * (len(self.rows[0]) - 1)
        return [*self.rows[: self.most - 1], more]


@dataclasses.dataclass(frozen=True)
class Table:
    """The table that `print` and notebooks show of a scene or a simulation.

    Attributes:
        title: The first line.
        sections: Its sections; empty sections are not shown.
    """

    title: str
    sections: Sequence[TableSection]

    def text(self) -> str:
        """The table as text, with aligned columns."""
        lines = [self.title]
        for section in self._filled:
            rows = section.shown
            widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
            lines.append(f"  {section.heading}")
            for row in rows:
                cells = (text.ljust(width) for text, width in zip(row, widths, strict=True) if width)
                lines.append("    " + "  ".join(cells).rstrip())
        return "\n".join(lines)

    def html(self) -> str:
        """The table as HTML; its only style is alignment to the left."""
        rows = []
        for section in self._filled:
            for i, row in enumerate(section.shown):
                head = f'<th rowspan="{len(section.shown)}" style="{_LEFT}">{html.escape(section.heading)}</th>'
                cells = "".join(f'<td style="{_LEFT}">{html.escape(text)}</td>' for text in row)
                rows.append(f"<tr>{'' if i else head}{cells}</tr>")
        return f"<table><caption>{html.escape(self.title)}</caption>{''.join(rows)}</table>"

    def mimebundle(self) -> dict[str, str]:
        """Representations for a notebook: data by MIME type."""
        return {"text/plain": self.text(), "text/html": self.html()}

    @property
    def _filled(self) -> list[TableSection]:
        return [section for section in self.sections if section.rows]


_LEFT = "text-align: left; vertical-align: top"


def size(count: float) -> str:
    """A number of bytes as text, rounded, with a unit such as MB."""
    for unit in ("B", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} GB"
