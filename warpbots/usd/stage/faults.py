"""Errors in files: each has a location and a reason, and all errors of a file are raised together.

Unexpected errors of USD and NumPy become sentences.

Code takes location and reason from the attributes of an error and never searches its text.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from pxr import Sdf, Tf, Usd

from warpbots.scene import SceneError

__all__ = ["Faults", "LocatedError", "attempt", "explained", "reason_at", "reason_of", "refuse"]

Faults = list[SceneError]
"""Errors that are raised together."""

_LONG = 600
"""Largest number of characters quoted from messages of USD."""


class LocatedError(SceneError):
    """Raised if something at one location of a file cannot be simulated.

    Attributes:
        location: Path of the prim, or the file.
        reason: What is wrong at this location: a sentence, or the error raised by the class that refused the values of
            the prim.
    """

    def __init__(self, location: str | Sdf.Path, reason: str | SceneError):
        self.location, self.reason = str(location), reason
        super().__init__(self.location, reason)

    def __str__(self) -> str:
        """The location and the reason on one line."""
        return f"{self.location}: {self.reason}"


def reason_at(prim: Usd.Prim, error: SceneError) -> str:
    """Text of `error` for a note on `prim`: the reason alone if it is located at `prim`, else the whole text."""
    located = isinstance(error, LocatedError) and error.location == str(prim.GetPath())
    return str(error.reason if located else error)


@contextlib.contextmanager
def explained(location: str | os.PathLike | Sdf.Path, prim: Usd.Prim | None = None) -> Iterator[None]:
    """Turn unexpected errors while reading a file into sentences.

    USD and NumPy raise such errors if the type of an attribute differs from its type in the schema, or if its value is
    invalid text.

    Args:
        location: The file or the path of the prim, for the message.
        prim: The prim at and below which attributes of the wrong type are searched for; None for no search.

    Raises:
        LocatedError: An unexpected error was raised; it is the `__cause__` of this error.
    """
    try:
        yield
    except (SceneError, OSError):
        raise
    except (Tf.ErrorException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        odd = "; ".join(_odd_types(prim)) if prim else ""
        reason = odd or f"{type(error).__name__}: {reason_of(error)}"
        raise LocatedError(location, f"it has invalid content ({reason}); correct the file") from error


def attempt(faults: Faults, reader: Callable, *args: Any, **values: Any) -> Any:
    """Result of `reader`, or None if `reader` fails; its error is then added to `faults`.

    If the first argument of `reader` is a prim, the message of an unexpected error names this prim.
    """
    prim = args[0] if args and isinstance(args[0], Usd.Prim) else None
    try:
        with explained(prim.GetPath(), prim) if prim else contextlib.nullcontext():
            return reader(*args, **values)
    except SceneError as error:
        faults.append(error)
        return None


def refuse(faults: Faults, file: str = "") -> None:
    """If there are `faults`, raise one error with the name of `file`, followed by one line for each fault."""
    if faults:
        lines = "\n  ".join(map(str, faults))
        raise SceneError(f"{file}: {lines}" if file else lines)


def _odd_types(prim: Usd.Prim) -> Iterator[str]:
    """Sentences on the attributes at and below `prim` whose type is unknown or differs from the type in the schema."""
    for part in Usd.PrimRange(prim):
        schema = part.GetPrimDefinition()
        for attribute in part.GetAuthoredAttributes():
            said = attribute.GetPropertyStack()[0].typeName  # the attribute itself reports the type of its schema
            known = schema.GetAttributeDefinition(attribute.GetName())
            if not Sdf.ValueTypeNames.Find(str(said)):
                yield f"{attribute.GetPath()} is of type {said}, which USD does not know"
            elif known and known.GetTypeName().type != said.type:
                yield f"{attribute.GetPath()} is of type {said}, it should be {known.GetTypeName()}"


def _short(text: str) -> str:
    """The text, shortened in the middle if it is long."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} ... {text[-_LONG // 2 :]}"


def reason_of(error: Exception) -> str:
    """The message of an error of USD, without the lines of USD source code that it quotes."""
    try:
        if not isinstance(error, Tf.ErrorException):
            return str(error)
        texts = [str(e.commentary) for e in error.args if isinstance(e, Tf.Error)]
        said = _short(texts[0] if texts else str(error).strip().rpartition(" : ")[2].strip("'"))
        return " ".join(said.split())
    except UnicodeDecodeError:
        return "its message is not valid UTF-8"
