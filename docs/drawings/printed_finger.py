"""The finger of the page on printing, from above and from the side, with its axle, its tendon and its range."""

import numpy as np
from canvas import Drawing, View


def block(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    """Corners of a rectangle."""
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


def turned(points: np.ndarray, angle: float) -> np.ndarray:
    """Points turned about the axle."""
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([(c, s), (-s, c)])


def draw() -> Drawing:
    """Two views; lengths in millimetres."""
    d = Drawing(
        "A finger that is printed",
        "Left, from above: a knuckle with two cheeks, a link with an eye between them, the hole of the axle through "
        "all of them, and a channel for the tendon in the link, whose wall to the side is the thinnest. Right, from "
        "the side: the link turns from minus 0.2 to 1.4 radians without touching the knuckle.",
        330,
    )
    top = View((174, 120), 3.9)
    for corners in (block(-40, -10, -12, 10), block(-20, -10, 7, -6), block(-20, 6, 7, 10)):
        d.line(top(corners), "blue", 2, fill="sky", closed=True)
    for corners in (block(-7, -5.7, 7, 5.7), block(7, -5.7, 12, 5.7), block(12, -10, 40, 10)):
        d.line(top(corners), "orange", 2, fill="sand", closed=True)
    d.line(top(block(-1.5, -10, 1.5, 10)), "ink", 1.5, fill="paper", closed=True)
    d.line(top([(0, -15), (0, 15)]), "ink", 1.5, dash="8 4 2 4")
    d.line(top(block(12, 7 - 0.75, 40, 7 + 0.75)), "ink", 1.5, fill="paper", closed=True)
    d.note(top((0, 17)), "axle, 3 mm", "ink")
    d.note(top((27, 14)), "tendon", "ink")
    d.text(top((-26, -18)), "knuckle", "blue").text(top((26, -18)), "link", "orange")
    side = View((524, 120), 3.9)
    t = np.linspace(-np.pi / 2, np.pi / 2, 25)
    half_round = 7 * np.stack([np.cos(t), np.sin(t)], -1)
    link = block(4.9, -5, 40, 5)
    circle = 7 * np.stack([np.cos(2 * t), np.sin(2 * t)], -1)
    for angle, colour, fill in ((-0.2, "faint", "wash"), (1.4, "faint", "wash"), (0.0, "orange", "sand")):
        d.line(side(turned(link, -angle)), colour, 2, fill=fill, closed=True)
        d.line(side(circle), colour, 2, fill=fill, closed=True)
    d.line(side(np.vstack([[(-40, -7)], half_round, [(-40, 7)]])), "blue", 2, fill="sky", closed=True)
    d.circle(side((0, 0)), 1.5 * 3.9, "paper", "ink", 1.5)
    arc = np.linspace(0.2, -1.4, 30)
    d.line(side(36 * np.stack([np.cos(arc), np.sin(arc)], -1)), "ink", 2)
    d.arrow(
        side(36 * np.array([np.cos(arc[-3]), np.sin(arc[-3])])),
        side(36 * np.array([np.cos(-1.4), np.sin(-1.4)])),
        "ink",
        2,
    )
    d.note(side((17, -22)), "1.4 rad", "ink")
    d.text((174, 312), "from above").text((440, 312), "from the side")
    return d
