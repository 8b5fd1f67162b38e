"""Initial states of simulations, stored as fields of the scene."""

from collections.abc import Iterable, Mapping

import numpy as np

from warpbots.scene import Field, SceneError

__all__ = ["PREFIX", "initial_state", "state_fields"]

PREFIX = "initial_"
"""Prefix of the names of scene fields that belong to an initial state, such as ``"initial_position"``."""

_AGREE = 1e-6
"""Largest relative difference between states at rest that count as equal; rounding differs between machines."""


def state_fields(state: Mapping[str, np.ndarray], rest: Mapping[str, np.ndarray]) -> list[Field]:
    """Scene fields for the arrays of `state` that differ from `rest`.

    Args:
        state: Arrays of the initial state by name, each of shape (...) as in one world.
        rest: Arrays of the state at rest, in the same form.
    """
    moved = (name for name, value in state.items() if value.tobytes() != rest[name].tobytes())
    return [Field(PREFIX + name, state[name], recorded=rest[name]) for name in moved]


def initial_state(fields: Iterable[Field], rest: Mapping[str, np.ndarray], who: str) -> dict[str, np.ndarray]:
    """Arrays of an initial state from the fields of a scene, by name, each of shape (...) as in one world.

    Args:
        fields: Fields of the scene whose names begin with `PREFIX`.
        rest: Arrays of the state at rest, by name, each of shape (...) as in one world.
        who: Name of the solver, for messages.

    Raises:
        SceneError: A state of the solver has no such array, or the initial state belongs to other elements.
    """
    found = {}
    for field in fields:
        name = field.name.removeprefix(PREFIX)
        if name not in rest:
            raise SceneError(
                f"Field {field.name!r}: a state of {who} has no {name!r} for this scene, but {', '.join(rest)}; leave "
                f"it out of Scene.fields"
            )
        if field.recorded is None or not _agree(field.recorded, rest[name]):
            raise SceneError(
                f"Field {field.name!r}: it belongs to another mesh, lattice or set of particles, or the bodies have "
                f"been changed since; use the solver and the resolution that it was made with "
                f"(Simulation.scene_with), or leave it out of Scene.fields"
            )
        found[name] = field.values
    return found


def _agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same shape, and the same values up to rounding."""
    return a.shape == b.shape and np.allclose(a, b, rtol=_AGREE, atol=_AGREE * np.abs(a).max(initial=0.0))
