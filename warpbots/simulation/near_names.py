"""The name that a user probably meant by a wrong one, for the end of messages."""

import difflib
from collections.abc import Iterable

__all__ = ["meant", "no_parameter"]

_SYMBOLS = {
    "E": "youngs_modulus", "young": "youngs_modulus", "nu": "poissons_ratio", "poisson": "poissons_ratio",
    "rho": "density", "mu": "friction", "g": "gravity", "x": "position", "v": "velocity", "pos": "position",
    "vel": "velocity", "F": "deformation", "qpos": "q", "qvel": "qd",
}  # fmt: skip
"""Usual symbols and abbreviations of parameters and of fields of states."""

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
