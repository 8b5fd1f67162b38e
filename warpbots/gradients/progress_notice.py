"""Messages about slow operations."""

import contextlib
import html
import sys
import threading
import time
from collections.abc import Iterator

from tqdm import tqdm

from warpbots.notebook_cells import CellLine, in_notebook

__all__ = ["said_when_slow"]


@contextlib.contextmanager
def said_when_slow(text: str, seconds: float = 1.0) -> Iterator[None]:
    """Context that prints `text` if its block of code takes longer than `seconds`, and the duration when it ends.

    In a notebook the message is one line in the output of the cell. Elsewhere the message is printed to stderr, above
    any progress bar.
    """
    in_cell = CellLine() if in_notebook() else None
    lock, over = threading.Lock(), False

    def say(line: str, before: str = "") -> None:
        if in_cell is None:
            tqdm.write(f"warpbots: {line}", file=sys.stderr)
        else:
            in_cell.show(f"<small>warpbots: {html.escape(before + line)}</small>", f"warpbots: {before}{line}")

    def begin() -> None:
        with lock:
            if not over:  # otherwise this line could follow the line of the end
                say(f"{text} ...")

    start = time.perf_counter()
    timer = threading.Timer(seconds, begin)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
    taken = time.perf_counter() - start
    if taken > seconds:
        say(f"... took {taken:.1f} s", before=f"{text} ")
