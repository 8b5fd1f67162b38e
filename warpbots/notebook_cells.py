"""Lines in the output of a notebook's cell that are replaced while the cell runs.

They are HTML, not widgets: a stored notebook shows them without a kernel, where a widget leaves "Error displaying
widget". They are not written to stderr, which notebooks show in red. See docs/design/notebooks.md.
"""

import sys
from typing import Any

__all__ = ["CellLine", "in_notebook"]


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
        """Show the line, or replace what it said.

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
