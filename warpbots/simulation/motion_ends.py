"""Tables of prescribed motions that end before a rollout does."""

from typing import Any

import numpy as np

from warpbots.scene import Scene
from warpbots.simulation.states import fields_of

__all__ = ["refuse_ended"]

_ROUNDING = 1e-6
"""A time counts as the end of a table if it is later by at most this fraction of a step or of the table."""


def refuse_ended(scene: Scene, state: Any, steps: int, dt: float, substep: float) -> None:
    """Raise if a table of a prescribed motion ends, in all worlds, before a rollout does.

    Worlds may start at different times. If a table ends in some of them only, these worlds are lost when it ends.

    Args:
        scene: The scene.
        state: State at the start of the rollout.
        steps: Number of control intervals.
        dt: Length of a control interval [s].
        substep: Length of a step of the solver [s].

    Raises:
        ValueError: A table ends too early; the message names it and the number of control intervals that it allows.
    """
    moving = {f"{type(p).__name__} {p.name!r}": p.motion for p in (*scene.obstacles, *scene.constraints) if p.motion}
    ends = {name: motion.end for name, motion in moving.items()}
    end, times = min(ends.values(), default=np.inf), fields_of(state).get("time")
    if not np.isfinite(end) or times is None:
        return
    begun, late = float(times.detach().min()), _ROUNDING * max(substep, end)
    if begun + steps * dt > end + late:
        first = min(ends, key=ends.__getitem__)
        most = max(0, int((end - begun + late) / dt))
        raise ValueError(
            f"rollout: the prescribed motion of {first} ends at {end:g} s, and {steps} control intervals of {dt:g} s "
            f"that begin at {begun:g} s end at {begun + steps * dt:g} s; simulate at most {most} of them, give the "
            f"table more poses, or use PrescribedMotion(beyond='hold') or 'repeat'"
        )
