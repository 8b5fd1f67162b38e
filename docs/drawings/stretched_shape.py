"""A map of space and a body: the part between two planes is stretched, and what lies beyond moves along."""

import numpy as np
from canvas import Drawing, View

START, END, FACTOR = 0.6, 2.4, 1.7


def stretched(points: np.ndarray) -> np.ndarray:
    """The map `Stretch` along x."""
    x = points[..., 0]
    new = np.where(
        x < START, x, np.where(x > END, START + FACTOR * (END - START) + x - END, START + FACTOR * (x - START))
    )
    return np.stack([new, points[..., 1]], -1)


def draw() -> Drawing:
    """The body and its mesh before and after."""
    d = Drawing(
        "A map of space changes a shape",
        "Above: a hammer-shaped body with its mesh. Below: the same body after a map has stretched the handle between "
        "two planes by a factor of 1.7; the head beyond the second plane moves along and keeps its shape. Nodes, "
        "masses and rest shapes follow the map, and so do gradients.",
        374,
    )
    k = np.arange(0, 3.61, 0.3)
    cells = [(x, y) for x in k[:-1] for y in np.arange(-0.9, 0.9, 0.3) if abs(y + 0.15) < 0.4 or x > 2.35]
    square = np.array([(0, 0), (0.3, 0), (0.3, 0.3), (0, 0.3)])
    for origin, map_, colour, fill in (((36, 92), lambda p: p, "grey", "wash"), ((36, 280), stretched, "blue", "sky")):
        view = View(origin, 126)
        for cell in cells:
            inside = START - 1e-9 <= cell[0] < END - 1e-9
            d.line(
                view(map_(np.array(cell) + square) * (1, 0.62)),
                colour,
                1.5,
                fill=fill if inside else "paper",
                closed=True,
            )
        for x in (START, END):
            edge = map_(np.array([(x, 0.0)]))[0, 0]
            d.line(view([(edge, 0.66), (edge, -0.66)]), "orange", 2.5, dash="7 6")
    first, second = View((36, 92), 126), View((36, 280), 126)
    d.text(first((START, 0.0)) + (-6, -62), "start", "orange", 19, "end")
    d.text(first((END, 0.0)) + (-8, -62), "end", "orange", 19, "end")
    a, b = second((START, 0.42)), second((stretched(np.array([END, 0.0]))[0], 0.42))
    d.arrow((a + b) / 2, a, "orange", 2.5).arrow((a + b) / 2, b, "orange", 2.5)
    d.text((a + b) / 2 + (0, -12), "factor", "orange")
    return d
