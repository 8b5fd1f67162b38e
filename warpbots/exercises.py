"""Checks of answers to the exercises of a notebook.

An exercise is a question and two cells: in the first the reader replaces three dots by an answer, the second calls
`check`.
"""

import inspect
from collections.abc import Callable

__all__ = ["WrongAnswer", "check"]


class WrongAnswer(AssertionError):
    """An answer does not pass its check."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [str(self)]


def check(exercise: str, passes: Callable[..., bool], hint: str) -> None:
    """Say whether an exercise is solved.

    Args:
        exercise: Its name.
        passes: Function of the answers, whose parameters have the names of the variables that hold them.
        hint: What to think about if the answer is wrong, as a sentence.

    Raises:
        WrongAnswer: An answer does not pass, cannot be checked, or a cell above has not run.
    """
    answers = {}
    for name in inspect.signature(passes).parameters:
        if name not in passes.__globals__:
            raise WrongAnswer(f"{exercise}: {name} is not defined; run the cells above first")
        answers[name] = passes.__globals__[name]
        if answers[name] is ...:
            print(f"{exercise}: no answer yet; replace the three dots after `{name} =`")
            return
    try:
        right = bool(passes(**answers))
    except NameError as fault:
        raise WrongAnswer(f"{exercise}: {fault.name} is not defined; run the cells above first") from fault
    except Exception as fault:
        raise WrongAnswer(f"{exercise}: the answer raises {type(fault).__name__}: {fault}. {hint}") from fault
    if not right:
        raise WrongAnswer(f"{exercise}: not yet. {hint}")
    print(f"{exercise}: correct")
