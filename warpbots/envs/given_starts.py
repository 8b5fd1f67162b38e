"""Starts that a user gives to a reset instead of random ones, checked before anything is changed."""

from collections.abc import Mapping
from typing import Any

import torch

from warpbots.scene.field_types import shown
from warpbots.simulation import Simulation

__all__ = ["given_options", "given_state", "given_values"]

_OPTIONS = ("reset_mask", "state", "parameters", "goals")


def given_options(options: Any) -> dict[str, Any]:
    """The options of a reset by name.

    Raises:
        ValueError: `options`, its ``parameters`` or its ``goals`` are no mapping, or there is no such option.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"reset: options must be a dict with any of {', '.join(_OPTIONS)}, got {shown(options)}")
    found = dict(options or {})
    unknown = found.keys() - set(_OPTIONS)
    if unknown:
        raise ValueError(f"reset: there is no option {sorted(map(str, unknown))[0]!r}; there are {', '.join(_OPTIONS)}")
    for name in ("parameters", "goals"):
        if not isinstance(found.get(name, {}), Mapping):
            raise ValueError(f"reset: option {name} must be a dict of tensors by name, got {shown(found[name])}")
    return found


def given_state(state: Any, simulation: Simulation[Any], worlds: torch.Tensor) -> Any:
    """A state from which worlds start.

    Args:
        state: The state.
        simulation: The simulation.
        worlds: Mask of the worlds that start, shape (worlds,), bool.

    Raises:
        ValueError: `state` is no state of the solver, or a field is not finite in one of the worlds.
    """
    rest = simulation.state()
    if type(state) is not type(rest):
        raise ValueError(
            f"reset: option state must be a {type(rest).__name__}, as simulation.state(...) returns it, got "
            f"{shown(state)}"
        )
    for name, field in vars(state).items():
        wrong = torch.nonzero(~torch.isfinite(field.detach()))
        for at in map(tuple, wrong.tolist()):
            if len(field) != len(worlds) or worlds[at[0]]:
                raise ValueError(
                    f"reset: option state has {field[at].item():g} in field {name!r} at index {list(at)}, and must be "
                    f"finite; give a state of a motion that has not diverged"
                )
    return state


def given_values(value: Any, own: torch.Tensor, what: str) -> torch.Tensor:
    """Values of a parameter or a goal, of the type, shape and device of the environment's own.

    Args:
        value: A tensor, an array or a number.
        own: The parameter of the model, or a goal, shape (worlds, ...).
        what: Name of the option and its entry.

    Raises:
        ValueError: `value` does not consist of finite real numbers, or does not broadcast to the shape.
    """
    try:
        given = torch.as_tensor(value)
        if given.is_complex():
            raise TypeError
        given = given.to(own).expand(own.shape)
    except (TypeError, ValueError, RuntimeError):
        got = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else shown(value)
        raise ValueError(
            f"reset: option {what} must be real numbers that broadcast to shape {tuple(own.shape)}, got {got}"
        ) from None
    wrong = torch.nonzero(~torch.isfinite(given.detach()))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise ValueError(f"reset: option {what} is {given[at].item():g} at index {list(at)}, and must be finite")
    return given
