"""Conversion of fields of dataclasses to their annotated types, and checks that numbers are finite."""

import dataclasses
import functools
import inspect
import numbers
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, ForwardRef, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from warpbots.near_names import refuse_arguments

__all__ = ["Bound", "Pair", "Triple", "checked", "conform", "fitted", "shown", "with_article"]

Bound = Annotated[float, "or infinite"]
"""A number that may be infinite."""

_T = TypeVar("_T")

Pair = Annotated[Sequence[_T], 2]
"""Two values of the same type; a field stores them as a tuple."""

Triple = Annotated[Sequence[_T], 3]
"""Three values of the same type; a field stores them as a tuple."""

_UNIONS = (Union, types.UnionType)


def conform(instance: Any) -> None:
    """Convert the fields of a dataclass to their annotated types, for use in its constructor.

    Raises:
        ValueError: A field has another type, or a seed is negative; the message names the field and the accepted type.
    """
    name = getattr(instance, "name", None)
    name = getattr(instance, "usual_name", None) if name is None else name
    what = type(instance).__name__ + (f" {name!r}" if isinstance(name, str) else "")
    kinds = _kinds(type(instance))
    for field in dataclasses.fields(instance):
        value = fitted(getattr(instance, field.name), kinds[field.name], f"{what}: {field.name}")
        _refuse_seed(field.name, value, what)
        object.__setattr__(instance, field.name, value)


def checked(function: Callable) -> Callable:
    """Decorator of functions that converts their arguments to the annotated types, or raises a ``ValueError``."""
    signature, who = inspect.signature(function), function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            bound, kinds = signature.bind(*args, **options), _kinds(function)
        except TypeError:
            refuse_arguments(who, options, function)
            return function(*args, **options)  # Python's own message names missing arguments
        for name, value in bound.arguments.items():
            if name not in kinds:
                continue
            kind, what = kinds[name], f"{who}: {name}"
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD:
                    found = {n: fitted(v, kind, f"{who}: {n}") for n, v in value.items()}
                case inspect.Parameter.VAR_POSITIONAL:
                    found = tuple(fitted(v, kind, f"{what}[{i}]") for i, v in enumerate(value))
                case _:
                    found = fitted(value, kind, what)
                    _refuse_seed(name, found, who)
            bound.arguments[name] = found
        return function(*bound.args, **bound.kwargs)

    return call


def _refuse_seed(name: str, value: Any, what: str) -> None:
    """Raise an error if the field or argument `name` of `what` is a seed, and NumPy does not accept its value."""
    if name == "seed" and isinstance(value, int) and value < 0:
        raise ValueError(f"{what}: seed must be at least 0, got {value}")


def fitted(value: Any, kind: Any, what: str) -> Any:
    """Convert `value` to `kind`: integers to int, other numbers to float, lists to tuples, arrays to NumPy arrays.

    Torch tensors stay unchanged and keep their gradient.

    Args:
        value: Any object.
        kind: Annotated type: ``float``, ``int``, ``str``, ``bool``, a class, ``np.ndarray``, ``torch.Tensor``, a
            function, a protocol, literals, or a tuple, sequence, mapping or union of these.
        what: Name of the value in messages.

    Raises:
        ValueError: `value` has another type, contains a number that is not finite, or is a tensor that would lose its
            gradient.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        return _any_of(value, kind, what)
    if kind is Any or isinstance(kind, TypeVar | ForwardRef):
        return value
    if kind is np.ndarray:
        return _array(value, what)
    if origin is Literal or origin is Callable or _is_protocol(origin or kind):
        if _fits(value, kind):
            return value
        raise _misfit(value, kind, what)
    if _is_tensor(kind) and isinstance(value, kind):
        return _finite_tensor(value, what)
    if (row := _row_of(kind)) is not None:
        return _tuple(value, row, what)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise _misfit(value, kind, what)
        return {
            fitted(k, parts[0], f"a key of {what}"): fitted(v, parts[1], f"{what}[{k!r}]") for k, v in value.items()
        }
    if kind in (float, int) or kind == Bound:
        return _number(value, kind, what)
    if not isinstance(value, origin or kind):
        raise _misfit(value, kind, what)
    return value


def _row_of(kind: Any) -> Any:
    """The tuple type to which a tuple, sequence, pair or triple type is converted; None for all other types."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated and kind != Bound:
        sequence, count = parts
        return tuple[get_args(sequence) * count]
    if origin is Sequence:
        return tuple[parts[0], ...]
    return kind if origin is tuple else None


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value fits a kind: literals, functions with a number of arguments, or a protocol."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(value is part or (type(value) is type(part) and value == part) for part in parts)
    if origin is not Callable:
        protocol = origin or kind
        if isinstance(value, type):
            return False
        if "__call__" in vars(protocol):
            return callable(value) and _takes(value, len(inspect.signature(protocol.__call__).parameters) - 1)
        return not _is_runtime(protocol) or isinstance(value, protocol)
    return callable(value) and (not parts or not isinstance(parts[0], list) or _takes(value, len(parts[0])))


def _takes(function: Callable, count: int) -> bool:
    """Whether a function can be called with `count` arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # functions written in C may have no signature
        return True
    return True


def _is_protocol(kind: Any) -> bool:
    return isinstance(kind, type) and Protocol in kind.__bases__


def _offers(value: type, protocol: Any) -> bool:
    """Whether instances of the class `value` have all members of a protocol."""
    return _is_protocol(protocol) and _public(protocol) <= set(dir(value))


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def _is_runtime(protocol: type) -> bool:
    """Whether ``isinstance`` accepts a protocol."""
    try:
        isinstance(None, protocol)
    except TypeError:
        return False
    return True


def _is_tensor(kind: Any) -> bool:
    """Whether a kind is `torch.Tensor`; the test does not import torch."""
    return isinstance(kind, type) and (kind.__module__, kind.__name__) == ("torch", "Tensor")


def _finite_tensor(value: Any, what: str) -> Any:
    if value.is_complex():
        raise ValueError(f"{what} must be real, got numbers of type {value.dtype}")
    if not (finite := value.isfinite()).all():
        at = tuple((~finite).nonzero()[0].tolist())
        where = f" at index {at}" if at else ""
        raise ValueError(f"{what} must be finite, got {value[at].item():g}{where}")
    return value


@functools.cache
def _kinds(of: Any) -> dict[str, Any]:
    """Annotated types of the fields or arguments of an object, by name.

    A type that is imported only for type checkers counts as `Any`.
    """
    try:
        return get_type_hints(of, include_extras=True)
    except NameError:
        known = vars(sys.modules[of.__module__])
    found = {}
    for each in reversed(of.__mro__) if isinstance(of, type) else (of,):
        for name, kind in inspect.get_annotations(each).items():
            try:
                found[name] = eval(kind, dict(known)) if isinstance(kind, str) else kind
            except NameError:
                found[name] = Any
    return found


def _any_of(value: Any, kind: Any, what: str) -> Any:
    kinds = [k for k in get_args(kind) if k is not types.NoneType]
    if value is None and len(kinds) < len(get_args(kind)):
        return None
    if len(kinds) == 1:
        return fitted(value, kinds[0], what)
    own = [k for k in kinds if _is_tensor(k) and isinstance(value, k)]  # or a number would lose its gradient
    if own:
        return fitted(value, own[0], what)
    for one in kinds:
        try:
            return fitted(value, one, what)
        except ValueError:
            continue
    raise _misfit(value, kind, what)


def _number(value: Any, kind: Any, what: str) -> float | int:
    if getattr(value, "requires_grad", False):
        raise ValueError(
            f"{what} is a number and would lose the gradient of the tensor {shown(value)}; give its .item() here, and "
            "the tensor to the rollout, as a parameter or in the state at its start"
        )
    number = value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
    if not isinstance(number, numbers.Real) or isinstance(number, bool):
        raise _misfit(value, kind, what)
    if kind is int:
        if isinstance(number, numbers.Integral) or (np.isfinite(number) and number == int(number)):
            return int(number)
        raise _misfit(value, kind, what)
    try:
        number = float(number)
    except OverflowError:
        number = np.inf
    if np.isnan(number) or (np.isinf(number) and kind is float):
        raise _misfit(value, kind, what)
    return number


def _tuple(value: Any, kind: Any, what: str) -> tuple:
    parts = get_args(kind)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping | Set | type):
        raise _misfit(value, kind, what)
    try:
        values = tuple(value)
    except TypeError:  # arrays of dimension zero
        raise _misfit(value, kind, what) from None
    if parts[-1] is Ellipsis:
        parts = parts[:1] * len(values)
    if len(values) != len(parts):
        raise _misfit(value, kind, what)
    values = tuple(fitted(v, p, f"{what}[{i}]") for i, (v, p) in enumerate(zip(values, parts, strict=True)))
    lengths = sorted({len(v) for v in values if isinstance(v, tuple)})
    if len(lengths) > 1:
        raise ValueError(f"{what} must be lists of one length, got some of {lengths[0]} and some of {lengths[-1]}")
    return values


def _array(value: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except Exception:  # lists of different lengths, tensors on a device: foreign classes may raise anything
        raise _misfit(value, np.ndarray, what) from None
    if array.dtype.kind not in "biuf":
        raise _misfit(value, np.ndarray, what)
    if not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} must be finite, got {array[bad]} at index {bad}")
    return array


def _misfit(value: Any, kind: Any, what: str) -> ValueError:
    text = f"{what} must be {_words(kind)}, got {shown(value)}"
    kinds = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
    if any(map(_is_tensor, kinds)) and isinstance(value, np.ndarray):
        text += "; torch.as_tensor(...) makes one of an array"
    elif np.ndarray in kinds and _is_tensor(type(value)):
        text += "; value.detach().cpu().numpy() makes one of a tensor"
    elif isinstance(value, type) and (issubclass(value, _classes(kind)) or any(_offers(value, k) for k in kinds)):
        text += f"; make one with {value.__name__}(...)"
    elif (row := _row_of(kind)) is not None and isinstance(value, _classes(get_args(row)[0])):
        text += "; put it in a list: [...]"
    return ValueError(text)


def _words(kind: Any, many: bool = False) -> str:
    """Words that describe a kind in error messages, in the plural if `many`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        return _joined([_words(p, many) for p in parts])
    if (row := _row_of(kind)) is not None:
        parts = get_args(row)
        count = "" if parts[-1] is Ellipsis else f"{len(parts)} "
        return f"{'lists' if many else 'a list'} of {count}{_words(parts[0], many=True)}"
    if origin is Callable:
        count = len(parts[0]) if parts and isinstance(parts[0], list) else None
        of = {None: "", 0: " of no arguments", 1: " of one argument"}.get(count, f" of {count} arguments")
        return f"functions{of}" if many else f"a function{of}"
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if _is_tensor(kind):
        return "torch tensors" if many else "a torch tensor"
    if isinstance(kind, TypeVar | ForwardRef) or kind is Any:
        return "any objects" if many else "any object"
    if origin is Mapping:
        return f"a dict of {_words(parts[1], many=True)} by name"
    named = {
        float: ("a finite number", "finite numbers"), Bound: ("a number other than nan", "numbers other than nan"),
        int: ("a whole number", "whole numbers"), str: ("a text", "texts"), bool: ("True or False", "True or False"),
        np.ndarray: ("an array of finite numbers", "arrays of finite numbers"), types.NoneType: ("None", "None"),
    }  # fmt: skip
    if kind in named:
        return named[kind][many]
    kind = origin or kind
    if _is_protocol(kind) and len(names := _public(kind)) == 1:
        return f"something with {names.pop()}"
    return kind.__name__ if many else with_article(kind.__name__)


def with_article(name: str) -> str:
    """The name of a class with the article that fits its pronunciation: a Box, a Union, an Axes, an Unknown, an MPM."""
    spelled = name[:2].isupper()  # letter by letter
    vowel = name[0] in ("AEFHILMNORSX" if spelled else "AEIOU") and not name.startswith("Uni")
    return f"{'an' if vowel else 'a'} {name}"


def _joined(words: list[str]) -> str:
    """Join descriptions by "or", without repeating the article between names of classes."""
    bare = [w.removeprefix("a ").removeprefix("an ") for w in words]
    if not any(" " in w for w in bare):
        words = [words[0], *bare[1:]]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _classes(kind: Any) -> tuple[type, ...]:
    """The classes among the alternatives of a kind."""
    kinds = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
    return tuple(k for k in kinds if isinstance(k, type) and dataclasses.is_dataclass(k))


def shown(value: Any) -> str:
    """Text of a value, shortened to one line."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if dataclasses.is_dataclass(value):
        return f"a {type(value).__name__}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the repr of a foreign class may fail
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
