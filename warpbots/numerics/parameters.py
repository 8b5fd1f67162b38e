"""Parameters of models, each declared once: by the field that holds its array.

    @parametric
    class LatticeConstants(Generic[Array]):
        '''Constants of masses and springs.'''

        stiffness: Array = parameter("N/m", POSITIVE, "spring", "spring constant")
        youngs_modulus: Array = shared(YOUNGS_MODULUS, "spring")

`parameters_of` returns the declarations of a class, and `parametric` lists them in its docstring. A quantity that
several classes have is one `Parameter`, to which the field of each class refers by `shared`.
"""

import dataclasses
import functools
import inspect
import math
import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

__all__ = ["ANY", "NOT_NEGATIVE", "POSITIVE", "Parameter", "parameter", "parameters_of", "parametric", "shared"]

ANY, POSITIVE, NOT_NEGATIVE = (-math.inf, math.inf, False), (0.0, math.inf, False), (0.0, math.inf, True)
"""Ranges: lower bound, upper bound (exclusive), and whether the lower bound itself is allowed."""

_Class, _KEY = TypeVar("_Class"), "parameter"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of a model that can be differentiated and replaced.

    Attributes:
        unit: SI unit, as text.
        lower: Smallest value allowed (exclusive unless `inclusive`).
        upper: Largest value allowed (exclusive).
        per: Kind of element to which the entries along the second axis of the array belong, such as ``"particle"``,
            ``"spring"``, ``"obstacle"`` or ``"component"``; in a model, each word means one kind of element.
        doc: Meaning of the parameter, in one line.
        inclusive: Whether `lower` itself is allowed.
        intensive: Whether the parameter is a property of the material at a place, such as the density, so that it has
            the same value for any element at this place. A parameter that depends on the size of an element, such as a
            mass, is not intensive.
        neutral: Value of an element to which the parameter does not apply, without effect; None if it applies to all.
        axes: Names of the axes after the axis of the worlds, separated by commas; None for one entry per element.
        entry: Type of an entry: ``"scalar"``, ``"vector"``, ``"direction"`` (a vector whose length has no effect),
            ``"inertia"`` (a matrix) or ``"quaternion"``.
        meaning: Meaning for the documentation, with a remark after a semicolon; None if `doc` says it all.
    """

    unit: str
    lower: float
    upper: float
    per: str
    doc: str
    inclusive: bool = False
    intensive: bool = False
    neutral: float | None = None
    axes: str | None = None
    entry: str = "scalar"
    meaning: str | None = None

    def suffix(self, dim: int) -> str:
        """The unit in a scene of dimension `dim` with a blank before it, as after a number; empty for pure numbers."""
        return "" if self.unit == "1" else f" {self.unit.replace('dim', str(dim))}"

    def span(self, dim: int) -> str:
        """The range with its unit in a scene of dimension `dim`, such as "[0, inf) s"."""
        return f"{'[' if self.inclusive else '('}{self.lower:g}, {self.upper:g}){self.suffix(dim)}"

    def documentation(self, worlds: bool) -> str:
        """Meaning, unit and shape, as in a docstring.

        Args:
            worlds: Whether the array is a Warp array whose first axis counts the worlds; else it is a NumPy array.
        """
        meaning, _, remark = (self.meaning or self.doc).partition("; ")
        axes = [f"n_{_plural(self.per)}" if self.axes is None else self.axes]
        components = ["dim"] if self.entry in ("vector", "direction") and not worlds else []
        axes = ["worlds"] * worlds + [a for a in axes if a] + components
        shape = ", ".join(axes)
        text = f"{meaning[0].upper()}{meaning[1:]} [{self.unit}], shape ({shape}{'' if ',' in shape else ','})"
        entry = {"inertia": "matrix", "direction": "vector"}.get(self.entry, self.entry)
        text += f", {entry}" if worlds and entry != "scalar" else ""
        return f"{text}; {remark}." if remark else f"{text}."


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith("s") else f"{word}s"


def parameter(unit: str, bounds: tuple[float, float, bool], per: str, doc: str, **more: Any) -> Any:
    """A field of a `parametric` class that holds the array of a parameter.

    Args:
        unit: SI unit, as text.
        bounds: Range of the values, such as `POSITIVE`.
        per: Kind of element, as `Parameter.per`.
        doc: Meaning, in one line.
        **more: Other attributes of the `Parameter`.
    """
    lower, upper, inclusive = bounds
    return shared(Parameter(unit, lower, upper, per, doc, inclusive, **more))


def shared(declared: Parameter, per: str | None = None, **changes: Any) -> Any:
    """A field as `parameter`, for a quantity that is declared elsewhere.

    Args:
        declared: The quantity.
        per: Kind of element in this class; None for the kind that is declared.
        **changes: Attributes of the `Parameter` that differ in this class.
    """
    return dataclasses.field(metadata={_KEY: dataclasses.replace(declared, per=per or declared.per, **changes)})


@functools.cache
def parameters_of(cls: type) -> Mapping[str, Parameter]:
    """The parameters that a class and its bases declare, by name of the field."""
    return MappingProxyType({f.name: f.metadata[_KEY] for f in dataclasses.fields(cls) if _KEY in f.metadata})


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, parameter, shared))
def parametric(cls: type[_Class]) -> type[_Class]:
    """Make `cls` a frozen dataclass, and list its parameters under the attributes in its docstring.

    In a class with a field `worlds`, arrays have a leading axis for the worlds.
    """
    made = dataclasses.dataclass(frozen=True)(cls)
    worlds = any(f.name == "worlds" for f in dataclasses.fields(made))
    doc = inspect.cleandoc(cls.__doc__)
    if "\nAttributes:\n" not in doc:
        doc += "\n\nAttributes:"
    for name, spec in parameters_of(made).items():
        doc += "\n" + textwrap.fill(f"    {name}: {spec.documentation(worlds)}", 120, subsequent_indent=" " * 8)
    made.__doc__ = f"{doc}\n"
    return made
