"""Messages to the user: on stderr, or in a notebook, which would show that as an error, as text below the cell."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from tqdm import tqdm

__all__ = ["in_notebook", "say", "said_when_slow"]


def in_notebook() -> bool:
    """Whether there is a kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def say(line: str) -> None:
    """Write a line above a progress bar, which it does not break."""
    tqdm.write(f"warpbots: {line}", file=sys.stdout if in_notebook() else sys.stderr)


@contextlib.contextmanager
def said_when_slow(text: str, seconds: float = 1.0) -> Iterator[None]:
    """Say `text` if the block takes longer than `seconds`, and its duration at the end."""
    start = time.perf_counter()
    timer = threading.Timer(seconds, say, [f"{text} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    taken = time.perf_counter() - start
    if taken > seconds:
        say(f"... took {taken:.1f} s")
