"""The progress bar of a training: a line of text in a terminal, a bar of HTML in a notebook."""

import html
from typing import Any

from tqdm import tqdm

from warpbots.notebook_cells import CellLine, in_notebook

__all__ = ["progress_bar"]

_TEXT = "{desc}: {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"


class _CellBar(tqdm):
    """A bar in the output of a notebook cell; the bar of `tqdm.notebook` is a widget, which is lost with its kernel."""

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
        """There is nothing to clear: messages of others are printed elsewhere."""

    def close(self) -> None:
        """Show the final state."""
        if not self.disable:
            self.display()
        super().close()


def progress_bar(**options: Any) -> tqdm:
    """A progress bar of tqdm for where this process runs.

    Args:
        options: Options of `tqdm.tqdm` by name.
    """
    return _CellBar(**options) if in_notebook() else tqdm(**options)
