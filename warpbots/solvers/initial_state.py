"""States from which the simulations of a scene begin, as fields of that scene."""

from collections.abc import Iterable, Mapping

import numpy as np

from warpbots.scene import Field, SceneError

__all__ = ["PREFIX", "initial_state", "state_fields"]

PREFIX = "initial_"
"""What names of fields of a scene begin with that belong to a state, such as ``"initial_position"``."""

_AGREE = 1e-6
"""Part of the size of a field by which the state at rest may differ, which rounding moves on other machines."""


def state_fields(state: Mapping[str, np.ndarray], rest: Mapping[str, np.ndarray]) -> list[Field]:
    """Fields for what of a state is not as it is at rest; both by name, each of shape (...) as in one world."""
    moved = (name for name, value in state.items() if value.tobytes() != rest[name].tobytes())
    return [Field(PREFIX + name, state[name], recorded=rest[name]) for name in moved]


def initial_state(fields: Iterable[Field], rest: Mapping[str, np.ndarray], who: str) -> dict[str, np.ndarray]:
    """What of a state the fields of a scene say, by name, each of shape (...) as in one world.

    Args:
        fields: Those of the scene whose names begin with `PREFIX`.
        rest: The state that the scene has without them.
        who: Name of the solver, for messages.

    Raises:
        SceneError: The solver has no such state, or its elements are others than those that the state belongs to.
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
    """Whether two arrays have one shape, and the same values up to rounding."""
    return a.shape == b.shape and np.allclose(a, b, rtol=_AGREE, atol=_AGREE * np.abs(a).max(initial=0.0))
