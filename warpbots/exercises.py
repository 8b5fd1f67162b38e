"""Checks answers to the exercises of a notebook.

An exercise is a question and two cells. In the first cell the reader replaces three dots by an answer; the second cell
calls `check`. Graders such as nbgrader give a cell its points unless the cell raises or writes to stderr. Therefore
`check` raises unless the answer is right, and all messages during the check, including warnings, go to stdout.
"""

import ast
import contextlib
import dis
import inspect
import io
import logging
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import warp as wp

from warpbots.numerics import native_messages

__all__ = ["WrongAnswer", "check"]

SEVERAL_VALUES = ("ambiguous", "one element tensors", "0-dimensional arrays")
"""Words in errors of NumPy and PyTorch about several values where one is expected."""


class WrongAnswer(AssertionError):
    """Raised if an answer does not pass its check."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [str(self)]


def check(exercise: str, passes: Callable[..., bool], hint: str) -> None:
    """Print that an exercise is solved, or raise `WrongAnswer`; nothing goes to stderr.

    Args:
        exercise: Name of the exercise.
        passes: Function that returns whether the answers are right; its parameters have the names of the variables that
            hold the answers.
        hint: Hint that is shown after a wrong answer, as a sentence.

    Raises:
        WrongAnswer: There is no answer yet, the answer is wrong or cannot be checked, or a cell above has not been run.
        ValueError: `passes` is not a function whose parameters are the answers.
    """
    answers = _answers(exercise, passes)
    try:
        with _on_stdout(exercise):
            right = bool(passes(**answers))
    except NameError as fault:
        raise WrongAnswer(f"{exercise}: {fault.name} is not defined; run the cells above first") from fault
    except Exception as fault:
        raise WrongAnswer(f"{exercise}: {_trouble(fault, answers)}. {hint}") from fault
    if not right:
        raise WrongAnswer(f"{exercise}: not yet. {hint}")
    print(f"{exercise}: correct")


def _answers(exercise: str, passes: Callable[..., bool]) -> dict[str, Any]:
    """The variables that hold the answers, by name."""
    if not isinstance(passes, types.FunctionType) or not inspect.signature(passes).parameters:
        raise ValueError(
            f"check of {exercise!r}: passes must be a function whose parameters have the names of the answers, such as "
            f"`lambda mass: abs(mass - 2.5) < 0.1`, got {passes!r}"
        )
    answers = {}
    for name, parameter in inspect.signature(passes).parameters.items():
        if name in passes.__globals__:
            answers[name] = _without_brackets(passes.__globals__[name])
        elif parameter.default is inspect.Parameter.empty:
            raise WrongAnswer(f"{exercise}: {name} is not defined; run the cells above first")
        if _is_open(answers.get(name, 0)):
            written = isinstance(answers[name], wp.Kernel | types.FunctionType)
            where = f"in `{name}`" if written else f"after `{name} =`"
            raise WrongAnswer(f"{exercise}: no answer yet; replace the three dots {where}")
        if _is_quoted_number(answers.get(name)):
            raise WrongAnswer(f"{exercise}: `{name}` is a text; write the number without quotes")
    return answers


def _is_open(answer: Any) -> bool:
    """Whether an answer is a placeholder: dots, None, a list or a kernel with dots, or a function without a body."""
    match answer:
        case None | types.EllipsisType():
            return True
        case str():
            return answer.strip() in ("", "...")
        case list() | tuple():
            return any(part is ... for part in answer)
        case types.FunctionType():
            steps = [step for step in dis.get_instructions(answer) if step.opname not in ("RESUME", "NOP")]
            nothing = (None, ...)
            return all(s.opname.startswith(("LOAD_CONST", "RETURN")) and s.argval in nothing for s in steps)
        case wp.Kernel():  # Warp cannot compile dots
            return any(isinstance(n, ast.Constant) and n.value is ... for n in ast.walk(answer.adj.tree))
    return False


def _without_brackets(answer: Any) -> Any:
    """An answer, as a number or a tensor of shape () if it is an array or a tensor of one value."""
    one = isinstance(answer, np.ndarray | torch.Tensor) and math.prod(answer.shape) == 1
    return answer.reshape(())[()] if one else answer


def _is_quoted_number(answer: Any) -> bool:
    """Whether an answer is a text such as "3e6", which `float` and files would take for a number."""
    try:
        return isinstance(answer, str) and math.isfinite(float(answer))
    except ValueError:
        return False


def _trouble(fault: Exception, answers: dict[str, Any]) -> str:
    """What an error in a check says about the answers: several values, a wrong type, or its own words."""
    for name, answer in answers.items():
        count = math.prod(answer.shape) if isinstance(answer, np.ndarray | torch.Tensor) else 1
        count = len(answer) if isinstance(answer, list | tuple) else count
        if count != 1 and any(word in str(fault) for word in SEVERAL_VALUES):
            return f"`{name}` has {count} values, and one is asked for"
        if isinstance(answer, str | list | tuple | dict | set) and isinstance(fault, TypeError | AttributeError):
            return f"`{name}` is a {type(answer).__name__}, which this check cannot use ({fault})"
    return f"the answer raises {type(fault).__name__}: {fault}"


@contextlib.contextmanager
def _on_stdout(exercise: str) -> Iterator[None]:
    """Redirect everything that the block writes to stderr to stdout: warnings, log records, output of compiled code."""
    said, loggers = io.StringIO(), logging.getLogger().handlers
    logs = [log for log in loggers if isinstance(log, logging.StreamHandler) and log.stream is sys.stderr]
    with contextlib.ExitStack() as kept:
        warned = kept.enter_context(warnings.catch_warnings(record=True))
        native = kept.enter_context(native_messages())
        kept.enter_context(contextlib.redirect_stderr(said))
        for log in logs:
            kept.callback(log.setStream, log.setStream(said))
        try:
            yield
        finally:
            kept.close()
            lines = [f"{w.category.__name__}: {w.message}" for w in warned] + native
            lines += [line.rsplit("\r", 1)[-1].strip() for line in said.getvalue().splitlines()]
            for line in filter(None, lines):
                print(f"{exercise}: {line}")
