"""Errors at a prim, which know where they are and why, so that nobody looks for either in their text."""

from pxr import Sdf, Usd

from warpbots.scene import SceneError

__all__ = ["LocatedError", "reason_at"]


class LocatedError(SceneError):
    """Something at one place of a file cannot be simulated.

    Attributes:
        location: Path of the prim, or the file.
        reason: What is wrong there: a sentence, or the error of the class that refused the values of the prim.
    """

    def __init__(self, location: str | Sdf.Path, reason: str | SceneError):
        self.location, self.reason = str(location), reason
        super().__init__(self.location, reason)

    def __str__(self) -> str:
        """The place and the reason on one line."""
        return f"{self.location}: {self.reason}"


def reason_at(prim: Usd.Prim, error: SceneError) -> str:
    """An error in a note on `prim`: the reason alone if it is located there, else the whole sentence."""
    located = isinstance(error, LocatedError) and error.location == str(prim.GetPath())
    return str(error.reason if located else error)
