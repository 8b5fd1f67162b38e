"""Lines in the output of a notebook cell; their text can be replaced while the cell runs.

The lines are HTML, not widgets: a stored notebook shows HTML without a kernel, but shows "Error displaying widget" for
a widget. The lines are not written to stderr, because notebooks show stderr in red. See docs/design/notebooks.md.
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
    """A line in the output of the notebook cell that runs when the line is first shown."""

    def __init__(self):
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show the line, or replace its text.

        Args:
            html: The text as HTML, for viewers that show HTML.
            text: The text without HTML, for all other viewers.
        """
        from IPython.display import display

        bundle = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def say(line: str) -> None:
    """Show a line to the user: below the notebook cell, else on stderr, above a progress bar if there is one."""
    if in_notebook():
        CellLine().show(f"<small>warpbots: {html_text.escape(line)}</small>", f"warpbots: {line}")
    else:
        tqdm.write(f"warpbots: {line}", file=sys.stderr)
