"""Progress bars: a line of text in a terminal, a bar of HTML in a notebook."""

import html
from typing import Any

from tqdm import tqdm

from warpbots.notebook_cells import CellLine, in_notebook

__all__ = ["progress_bar"]

_TEXT = "{desc}: {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"


class _CellBar(tqdm):
    """A progress bar in HTML in the output of a notebook cell.

    Unlike the widget of `tqdm.notebook`, the bar is saved in the file of the notebook.
    """

    def __init__(self, **options: Any):
        self._line = CellLine()
        super().__init__(gui=True, **options)  # it prints nothing by itself
        if not self.disable:
            self.display()

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Show the state of the bar."""
        text = msg or self.format_meter(**self.format_dict | {"bar_format": _TEXT})
        bar = f'<progress value="{self.n}" max="{self.total}" style="width:14em"></progress>'
        self._line.show(f"{bar} {html.escape(text)}", text)

    def clear(self, *_: Any, **__: Any) -> None:
        """Do nothing: other messages do not overwrite the bar, so the bar need not be cleared before them."""

    def close(self) -> None:
        """Show the final state."""
        if not self.disable:
            self.display()
        super().close()


def progress_bar(**options: Any) -> tqdm:
    """Make a tqdm progress bar, for a notebook if this process runs in a notebook, otherwise for a terminal.

    Args:
        options: Options of `tqdm.tqdm` by name.
    """
    return _CellBar(**options) if in_notebook() else tqdm(**options)
