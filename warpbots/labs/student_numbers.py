"""Numbers of a lab that differ from student to student."""

import hashlib
import math
import os
import unicodedata
from pathlib import Path

__all__ = ["Numbers", "WrongName", "handed_in_by", "normalised"]


class WrongName(ValueError):
    """Raised if a notebook has no name, or the name of another student than the one who handed it in."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [str(self)]


class Numbers:
    """The numbers of one student in one lab: drawn from ranges, and always the same for the same name.

    Args:
        student: Name of the student, as the lecturer's list has it. Case, accents and spaces do not matter.
        lab: Name of the lab.

    Raises:
        WrongName: The name is empty. Or, while grading: the name in the notebook is not the name of the student
            who handed it in.

    A grader knows who handed a notebook in: from the environment variable ``WARPBOTS_STUDENT``, or, under nbgrader,
    from the name of the folder. A notebook with a neighbour's name is then refused instead of graded with the
    neighbour's numbers.
    """

    def __init__(self, student: str, lab: str):
        self.student, self.lab = normalised(student), lab
        if not self.student:
            raise WrongName(
                f"lab {lab!r}: the name of the student is {student!r}; write your name between the quotes in the cell "
                "that begins with `student =`: your numbers follow from it"
            )
        by = handed_in_by()
        if by not in (None, self.student):
            raise WrongName(
                f"lab {lab!r}: this notebook has the name {student!r}, but {by!r} handed it in; write the name under "
                "which it is handed in"
            )

    def number(self, name: str, low: float, high: float, digits: int = 2) -> float:
        """A number between `low` and `high` that belongs to the student, rounded to `digits` significant digits.

        It depends on the student, the lab, and `name`, and on nothing else: adding a question does not change it.

        Args:
            name: Name of the number, such as "mass".
            low: Lower bound, in the unit of the number.
            high: Upper bound.
            digits: Significant digits. Both bounds have at most as many.

        Raises:
            ValueError: `low` is not below `high`, or a bound has more than `digits` significant digits.
        """
        if not low < high or digits < 1:
            raise ValueError(f"number {name!r}: low must be below high, digits at least 1; got {low}, {high}, {digits}")
        for bound in (low, high):
            if _rounded(bound, digits) != bound:
                raise ValueError(f"number {name!r}: {bound} has more than {digits} significant digits; raise digits")
        return _rounded(low + (high - low) * self.fraction(name), digits)

    def fraction(self, name: str) -> float:
        """A number in [0, 1) that belongs to the student, the lab, and `name`."""
        return self.seed(name) / 2**48

    def seed(self, name: str) -> int:
        """An integer in [0, 2^48) that belongs to the student, the lab, and `name`; a seed of random numbers."""
        words = "\n".join((self.lab, self.student, name))
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:6], "big")


def normalised(student: str) -> str:
    """A name in lower case without accents; each run of characters other than letters and digits becomes a hyphen."""
    plain = unicodedata.normalize("NFKD", student).casefold()
    kept = "".join(c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return "-".join(kept.split())


def handed_in_by() -> str | None:
    """The student whose notebook is being graded, normalised; None if nothing is being graded."""
    if "WARPBOTS_STUDENT" in os.environ:
        return normalised(os.environ["WARPBOTS_STUDENT"])
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        return normalised(Path.cwd().parent.name)  # autograded/STUDENT/LAB
    return None


def _rounded(value: float, digits: int) -> float:
    """A number rounded to significant digits."""
    if value == 0.0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))
