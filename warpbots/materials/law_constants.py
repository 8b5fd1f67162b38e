"""Constants of a constitutive law in addition to E and nu: their declaration, and their values in a material."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from warpbots.scene import SceneError

__all__ = ["CONSTANTS", "LawConstant", "constant_values", "with_constants"]

_Definition = TypeVar("_Definition", bound=Callable)


@dataclasses.dataclass(frozen=True)
class LawConstant:
    """A constant of a constitutive law: a key of `Material.constants`, and a parameter of solvers with a gradient.

    Attributes:
        name: Name of the constant, a Python identifier; no other parameter of a solver may have this name.
        symbol: Symbol of the constant in the equations of the law.
        unit: SI unit, as text; "1" for a dimensionless constant.
        doc: Meaning of the constant, in one line.
        lower: Smallest value allowed (exclusive unless `inclusive`).
        upper: Largest value allowed (exclusive).
        inclusive: Whether `lower` itself is allowed.
        default: Value for materials that do not specify the constant; None if every material must specify it.

    Raises:
        ValueError: The name is not an identifier, the range is empty, or the default is outside the range.
    """

    name: str
    symbol: str
    unit: str
    doc: str
    lower: float = -math.inf
    upper: float = math.inf
    inclusive: bool = False
    default: float | None = None

    def __post_init__(self):
        if not self.name.isidentifier():
            raise ValueError(f"LawConstant: name must be a Python identifier, got {self.name!r}")
        if not self.lower < self.upper:
            raise ValueError(
                f"LawConstant {self.name!r}: lower must be below upper, got {self.lower:g}, {self.upper:g}"
            )
        if self.default is not None and not self.allows(self.default):
            raise ValueError(f"LawConstant {self.name!r}: default must be in {self.range}, got {self.default:g}")

    @property
    def range(self) -> str:
        """The values allowed, as text."""
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"{'[' if self.inclusive else '('}{self.lower:g}, {self.upper:g}){unit}"

    def allows(self, value: float) -> bool:
        """Whether a value is in the range of the constant."""
        return (self.lower < value or (self.inclusive and self.lower == value)) and value < self.upper


CONSTANTS: dict[Callable, tuple[LawConstant, ...]] = {}
"""Constants of each law that has any, in the order of the vector c, by value of `LAWS`; see `with_constants`."""


def with_constants(*constants: LawConstant) -> Callable[[_Definition], _Definition]:
    """Decorator that declares the constants of a law.

    The Warp functions that the decorated function returns take a vector c of these constants as their last argument, of
    the type ``wp.types.vector(len(constants), real)``: Psi(F, mu, lambda, c), tau(F, mu, lambda, c) and P(F, mu,
    lambda, c). At small strains mu and lambda must be Lamé's constants of the law, for all values of its constants.

    Args:
        *constants: The constants, in the order of c.

    Raises:
        ValueError: Two constants have the same name.
    """
    names = [constant.name for constant in constants]
    if len({*names}) < len(names):
        raise ValueError(f"with_constants: constants need different names, got {', '.join(names)}")

    def declare(definition: _Definition) -> _Definition:
        CONSTANTS[definition] = constants
        return definition

    return declare


def constant_values(law: str, constants: tuple[LawConstant, ...], given: Mapping[str, float]) -> tuple[float, ...]:
    """The values of the constants of a law in a material, in the order of the vector c.

    Args:
        law: Name of the law.
        constants: The constants of the law.
        given: `Material.constants`.

    Raises:
        SceneError: A constant is unknown, missing, or outside its range.
    """
    names = {constant.name for constant in constants}
    for name, value in given.items():
        if name not in names:
            known = f"has the constants {', '.join(sorted(names))}" if names else "has no constants of its own"
            raise SceneError(f"constants[{name!r}] = {value:g}: law {law!r} {known}; leave {name!r} out")
    for c in constants:
        if given.get(c.name, c.default) is None:
            raise SceneError(
                f"law {law!r} needs {c.name}, {c.symbol} [{c.unit}], {c.doc}: give it as "
                f"Material(..., law={law!r}, constants={{{c.name!r}: ...}}), in {c.range}"
            )
        if not c.allows(value := given.get(c.name, c.default)):
            raise SceneError(f"constants[{c.name!r}] = {value:g}: {c.doc}, must be in {c.range} for law {law!r}")
    return tuple(float(given.get(c.name, c.default)) for c in constants)
