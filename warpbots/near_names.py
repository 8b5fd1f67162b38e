"""The name that a user probably meant by a wrong one, for the end of messages."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["meant", "names_arguments", "no_parameter", "refuse_arguments"]

T = TypeVar("T", bound=type)

_SYMBOLS = {
    "E": "youngs_modulus", "young": "youngs_modulus", "nu": "poissons_ratio", "poisson": "poissons_ratio",
    "rho": "density", "mu": "friction", "g": "gravity", "x": "position", "v": "velocity", "pos": "position",
    "vel": "velocity", "F": "deformation", "qpos": "q", "qvel": "qd", "time_step": "dt", "timestep": "dt", "h": "dt",
    "frame_dt": "dt", "sim_substeps": "substeps", "num_envs": "worlds", "num_worlds": "worlds", "n_worlds": "worlds",
    "dx": "cell_size", "cell_size": "dx", "grid_size": "dx", "size": "shape", "geometry": "shape",
    "mass": "inertia", "kp": "stiffness", "kd": "damping",
}  # fmt: skip
"""Usual symbols of parameters, fields of states and arguments, and the words of other simulators for them."""

_ARGUMENTS = {
    "start": "state", "initial_state": "state", "state0": "state", "observer": "observe", "observation": "observe",
    "step": "steps", "t": "time", "t0": "time",
}  # fmt: skip
"""Words for arguments of steps, rollouts and readings."""


def no_parameter(name: str, known: Iterable[str]) -> str:
    """Message that a model, which has the `known` parameters, has none of this name."""
    known = tuple(known)
    meaning = f"; did you mean the argument {_ARGUMENTS[name]}=...?" if name in _ARGUMENTS else meant(name, known)
    return f"there is no parameter {name!r}; the model has {', '.join(known)}{meaning}"


def meant(name: str, known: Iterable[str]) -> str:
    """A question with the one of the `known` names that is nearest to a wrong name; "" if none is near."""
    known = tuple(known)
    if _SYMBOLS.get(name) in known:
        return f"; did you mean {_SYMBOLS[name]!r}?"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_arguments(who: str, given: Iterable[str], function: Callable[..., Any]) -> None:
    """Raise a ``TypeError`` that names what was probably meant, if a function does not take one of the arguments.

    Args:
        who: Name of the function in the message.
        given: Names of the arguments.
        function: The function.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]
    for name in given:
        if name not in known:
            raise TypeError(
                f"{who}() got an unexpected keyword argument {name!r}; it takes {', '.join(known)}{meant(name, known)}"
            ) from None


def names_arguments(cls: T) -> T:
    """Class decorator: an unknown argument raises the error of `refuse_arguments`."""
    make = cls.__init__

    @functools.wraps(make)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            make(self, *arguments, **options)
        except TypeError:
            refuse_arguments(type(self).__name__, options, make)
            raise

    cls.__init__ = __init__
    return cls
