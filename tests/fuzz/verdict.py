"""Whether something went well, was refused on purpose, or failed with an error that nobody wrote for people."""

import dis
import re
import signal
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import warpbots

ON_PURPOSE = (ValueError, TypeError, KeyError, IndexError, OSError, FloatingPointError, RuntimeError, ImportError)
"""Classes of errors, besides their own, in which warpbots says what is wrong."""

_MISSING = re.compile(r"\(\) (missing \d+ required positional argument|got an unexpected keyword argument)")
"""How Python itself names what a caller did not give, or gave too much."""

_PACKAGE = Path(warpbots.__file__).parent


class Hang(BaseException):
    """Something took too long; no handler of errors may take it for one."""


def is_sentence(error: BaseException) -> bool:
    """Whether an error was raised by a ``raise`` statement of warpbots itself: then somebody wrote its message.

    The innermost frame of its traceback has to be one of warpbots, and the instruction at which it stopped has to raise
    and not, say, to format the message.
    """
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raises = dis.opname[code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
    return raises and _PACKAGE in Path(code.co_filename).parents and isinstance(error, ON_PURPOSE)


def verdict(action: Callable[[], str | None], limit: int = 60) -> tuple[str, str]:
    """What became of an action: ``("fine", ...)``, ``("refused", sentence)``, or ``("raw" | "silent" | "hang", ...)``.

    Args:
        action: Returns None if all is well, else what is wrong with its result.
        limit: Seconds of the processor after which it hangs.
    """

    def late(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault = action()
        return ("silent", fault) if fault else ("fine", "")
    except Hang:
        return "hang", traceback.format_exc(limit=-6)
    except Exception as error:
        if is_sentence(error) or _MISSING.search(str(error)):
            return "refused", f"{type(error).__name__}: {error}"
        return "raw", traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
