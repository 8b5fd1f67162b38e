"""The throw of the first page: steps of the ball, and how its end follows the initial velocity."""

import numpy as np
from canvas import Drawing, View

GRAVITY, STEP, STEPS = 9.81, 0.05, 6
START, VELOCITY, FASTER = np.array([0.25, 0.3]), np.array([1.0, 1.0]), 0.5


def positions(velocity: np.ndarray) -> np.ndarray:
    """Centres of the ball after each step of symplectic Euler, of shape (STEPS + 1, 2)."""
    t = STEP * np.arange(STEPS + 1)
    return START + t[:, None] * velocity - 0.5 * GRAVITY * (t * (t + STEP))[:, None] * (0.0, 1.0)


def draw() -> Drawing:
    """Two throws."""
    d = Drawing(
        "A ball, its steps and a derivative",
        f"A ball is thrown and followed for {STEPS * STEP:.2f} s, twice: the second time {FASTER} m/s faster upwards. "
        "Its height at the end rises by the change of velocity times the time; this time is the derivative that the "
        "simulation computes.",
        362,
    )
    view = View((30, 322), 560)
    d.line(view([(0, 0.0), (1.04, 0.0)]), "grey", 3)
    slow, fast = positions(VELOCITY), positions(VELOCITY + (0.0, FASTER))
    for path, colour, fill in ((fast, "green", "mint"), (slow, "blue", "sky")):
        for p in path:
            d.circle(view(p), 0.05 * 560, fill, colour)
    a, b = view(slow[-1]), view(fast[-1])
    d.arrow(a, b, "orange", 4)
    d.text((a + b) / 2 + (40, 4), "*t* Δ*v*", "orange", anchor="start", size=25)
    d.arrow(view(START), view(START + 0.11 * VELOCITY), "blue", 4)
    d.arrow(view(START), view(START + 0.11 * (VELOCITY + (0.0, FASTER))), "green", 4)
    d.text((470, 112), "∂*y*/∂*v*_{y} = *t*", "orange", size=25, anchor="start")
    d.text(view(START) - (42, -6), "start", anchor="end")
    d.note((24, 350), "floor", anchor="start")
    return d
