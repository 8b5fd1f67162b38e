"""Lines in the output of a notebook cell, whose text can be replaced while the cell runs.

They are HTML, not widgets: a stored notebook shows HTML without a kernel, but shows "Error displaying widget" for a
widget. They are not written to stderr, which notebooks show in red. See docs/design/notebooks.md.
"""

import html as html_text
import sys
from typing import Any

from tqdm import tqdm

__all__ = ["CellLine", "in_notebook", "say"]


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class CellLine:
    """A line in the output of a notebook cell: the cell that runs when the line is first shown."""

    def __init__(self):
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show the line, or replace its text.

        Args:
            html: The text for viewers with HTML.
            text: The text for viewers without HTML.
        """
        from IPython.display import display

        bundle = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def say(line: str) -> None:
    """Show a line to the user: below the notebook cell, or on stderr, above a progress bar if there is one."""
    if in_notebook():
        CellLine().show(f"<small>warpbots: {html_text.escape(line)}</small>", f"warpbots: {line}")
    else:
        tqdm.write(f"warpbots: {line}", file=sys.stderr)
