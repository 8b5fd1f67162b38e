"""A honeycomb and a re-entrant frame of rigid bars, at rest and pulled sideways."""

import math

import numpy as np
from canvas import Drawing, View

RATIO = 1.7  # length of the vertical bars over the length of the inclined ones
CELLS = (3, 2)


def bars(angle: float) -> np.ndarray:
    """Ends of all bars, shape (bars, 2, 2), for an angle of the inclined bars; the centre is the origin."""
    c, s = math.cos(angle), math.sin(angle)
    ends = []
    for i in range(CELLS[0]):
        for j in range(CELLS[1]):
            x, y, up = 2 * c * i, 2 * (RATIO + s) * j, RATIO + 2 * s
            low, high = (x + c, y + s), (x + c, y + s + RATIO)
            ends.append((low, high))
            for side in (x, x + 2 * c):
                ends += [((side, y), low), (high, (side, y + up))]
                if j + 1 < CELLS[1]:
                    ends.append(((side, y + up), (side, y + 2 * (RATIO + s))))
    found = np.array(ends)
    return found - (found.min(axis=(0, 1)) + found.max(axis=(0, 1))) / 2


def draw() -> Drawing:
    """Both frames, at rest in grey and pulled in colour, and the sizes of a cell."""
    d = Drawing(
        "A honeycomb and a re-entrant frame",
        "Two frames of rigid bars with joints that turn. Left: a honeycomb, with inclined bars that rise; pulled "
        "sideways it becomes lower. Right: a re-entrant frame, with inclined bars that fall; pulled sideways it "
        "becomes higher.",
        330,
    )
    for x, start, pulled, colour, heading, said in (
        (175, 30.0, 17.0, "blue", "honeycomb: θ > 0", "wider along x, lower"),
        (525, -30.0, -17.0, "orange", "re-entrant: θ < 0", "wider along x, and higher"),
    ):
        view = View((x, 168), 33)
        rest, moved = bars(math.radians(start)), bars(math.radians(pulled))
        d.segments(view(rest.reshape(-1, 2)).reshape(-1, 2, 2), "faint", 4)
        d.segments(view(moved.reshape(-1, 2)).reshape(-1, 2, 2), colour, 2.5)
        for p in np.unique(moved.reshape(-1, 2).round(6), axis=0):
            d.circle(view(p), 4, "ink")
        half = moved[..., 0].max()
        for side in (-1, 1):
            d.arrow(view((side * (half + 0.25), 0)), view((side * (half + 1.2), 0)), "purple", 4)
        d.text((x, 30), heading, colour, bold=True)
        d.text((x, 312), said)
    return d
