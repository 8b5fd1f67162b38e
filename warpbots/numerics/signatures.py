"""Arguments of Warp functions that come from outside, checked before kernels are made of them."""

from typing import Any

import warp as wp

__all__ = ["wrong_arguments"]


def wrong_arguments(function: Any, **expected: type) -> str:
    """Text that says what `function` is or takes instead of the expected arguments, or "" if it takes them.

    Args:
        function: A Warp function. An argument whose type is `Any` takes every type, and names do not matter.
        **expected: Types of the arguments by name, in order.
    """
    if not isinstance(function, wp.Function):
        return f"must be a Warp function (@wp.func), got {function!r}"
    found = {name: wp.float32 if kind is float else kind for name, kind in function.input_types.items()}
    if len(found) == len(expected) and all(
        kind is Any or wp.types.types_equal(kind, right)
        for kind, right in zip(found.values(), expected.values(), strict=True)
    ):
        return ""
    return f"must take ({_text(expected)}), it takes ({_text(found)})"


def _text(arguments: dict[str, type]) -> str:
    return ", ".join(f"{name}: {wp.types.type_repr(kind)}" for name, kind in arguments.items())
