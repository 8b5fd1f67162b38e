"""Lines in the output of a notebook's cell, which may be replaced while the cell runs.

They are HTML, not widgets: a stored notebook shows them without a kernel, where a widget leaves "Error displaying
widget". They are not written to stderr, which notebooks show in red. See docs/design/notebooks.md.
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
    """A line in the output of the cell that runs when it is first shown; only in a notebook."""

    def __init__(self):
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show the line, or replace its text.

        Args:
            html: For notebooks.
            text: For readers without HTML.
        """
        from IPython.display import display

        bundle = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def say(line: str) -> None:
    """Tell the user something: below the cell, or on stderr above a progress bar, which it does not break."""
    if in_notebook():
        CellLine().show(f"<small>warpbots: {html_text.escape(line)}</small>", f"warpbots: {line}")
    else:
        tqdm.write(f"warpbots: {line}", file=sys.stderr)
