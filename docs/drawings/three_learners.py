"""Three ways to improve a policy: trials, a gradient through the simulator, and short gradients with a critic."""

import numpy as np
from canvas import Drawing, View

STEPS = 6
WINDOW = 3


def draw() -> Drawing:
    """A panel for each way; time runs to the right."""
    d = Drawing(
        "Three ways to improve a policy",
        "PPO: several random trials from one start; actions of trials that were better than expected become more "
        "likely, the others less. Gradient: one trial, and the derivative of its return goes back through every step. "
        "Both: the derivative goes back through a few steps, and a critic stands for the reward after them.",
        318,
    )
    for k, name in enumerate(("trials: PPO", "gradient", "both: SHAC")):
        d.text((122 + 228 * k, 34), name, bold=True)
    _trials(d, View((24, 150), 1.0))
    way = np.stack([np.linspace(0, 196, STEPS + 1), 42 * np.sin(np.linspace(0, 1.4, STEPS + 1))], axis=1)
    _steps(d, View((252, 150), 1.0)(way), range(STEPS))
    _steps(d, View((480, 150), 1.0)(way), range(WINDOW))
    last = View((480, 150), 1.0)(way)[WINDOW]
    d.line([last + (0, -74), last + (0, 62)], "purple", 2, dash="4 5")
    d.text((630, 196), "critic", "purple", bold=True)
    d.note((630, 222), "for the rest", "purple")
    notes = (
        ("compare returns,", "many samples"),
        ("differentiate,", "long: may be rough"),
        ("differentiate,", "short: smooth"),
    )
    for k, lines in enumerate(notes):
        for row, words in enumerate(lines):
            d.note((122 + 228 * k, 270 + 26 * row), words, "ink")
    return d


def _trials(d: Drawing, view: View) -> None:
    """Random ways from one start; the better ones end higher."""
    t = np.linspace(0, 1, 24)
    for end, colour in ((-70, "orange"), (-34, "orange"), (8, "grey"), (44, "blue"), (76, "blue")):
        path = np.stack([150 * t, end * t**1.6 + 7 * np.sin(9 * t + end)], axis=1)
        path[:, 1] -= 7 * np.sin(end)
        d.line(view(path), colour, 2.5)
        d.circle(view(path[-1]), 5, colour, colour)
    d.circle(view((0, 0)), 7, "ink", "ink")
    d.arrow(view((170, -4)), view((170, 72)), "blue", 3)
    d.arrow(view((170, -4)), view((170, -72)), "orange", 3)
    d.note(view((186, 44)), "more", "blue", anchor="start")
    d.note(view((186, -52)), "less", "orange", anchor="start")


def _steps(d: Drawing, at: np.ndarray, back: range) -> None:
    """States of one trial, and the steps through which the derivative goes back."""
    d.line(at, "blue", 2.5)
    for k, place in enumerate(at):
        d.circle(place, 7 if k == 0 else 5, "ink" if k == 0 else "blue", "ink" if k == 0 else "blue")
    for k in back:
        d.arrow(at[k + 1] + (-2, 18), at[k] + (4, 18), "orange", 2.5, bend=-0.25)
