"""Messages about slow operations."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from tqdm import tqdm

__all__ = ["said_when_slow"]


@contextlib.contextmanager
def said_when_slow(text: str, seconds: float = 1.0) -> Iterator[None]:
    """Print `text` to stderr if the block takes longer than `seconds`, and its duration at the end.

    The text appears above a progress bar and does not break it.
    """

    def say(line: str) -> None:
        tqdm.write(f"warpbots: {line}", file=sys.stderr)

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
