"""A finger with a chamber of air, at rest and under pressure: air pushes on every wall along its normal."""

import numpy as np
from canvas import Drawing, View

LENGTH, HEIGHT, WALL, BASE = 4.0, 1.0, 0.16, 0.3
CURVATURE = 0.2  # of the stiff base, under pressure


def bent(points: np.ndarray, curvature: float) -> np.ndarray:
    """Points of a straight finger whose base, y = 0, becomes an arc of the same length that bends down."""
    if curvature == 0:
        return points
    angle, radius = points[..., 0] * curvature, 1 / curvature + points[..., 1]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle) - 1 / curvature], -1)


def rectangle(x0: float, y0: float, x1: float, y1: float, pieces: int) -> np.ndarray:
    """The corners and points between them on the sides of a rectangle, clockwise from the lower left corner."""
    t = np.linspace(0, 1, pieces, endpoint=False)
    corners = np.array([(x0, y0), (x0, y1), (x1, y1), (x1, y0), (x0, y0)])
    return np.concatenate([a + t[:, None] * (b - a) for a, b in zip(corners, corners[1:], strict=False)])


def draw() -> Drawing:
    """Section through the finger, twice."""
    d = Drawing(
        "A chamber of air and its pressure",
        "Section through a soft finger with a closed chamber. Left: at rest. Right: compressed air pushes on every "
        "piece of the walls, along its normal and in proportion to its area. The chamber grows, the thin upper wall "
        "stretches, and the finger bends towards its thick base.",
        318,
    )
    outer, inner = rectangle(0, 0, LENGTH, HEIGHT, 40), rectangle(WALL, BASE, LENGTH - WALL, HEIGHT - WALL, 40)
    for origin, curvature, words in (
        ((50, 190), 0.0, "at rest: *p* = *p*_{0}"),
        ((394, 190), CURVATURE, "*p* > *p*_{0}"),
    ):
        view = View(origin, 66)
        d.line(view(bent(outer, curvature)), "blue", 2, fill="sky", closed=True)
        d.line(view(bent(inner, curvature)), "blue", 2, fill="paper", closed=True)
        d.line(view(bent(np.stack([np.linspace(0, LENGTH, 41), np.zeros(41)], -1), curvature)), "ink", 5)
        d.line(view([(0, -0.25), (-0.4, -0.25), (-0.4, 1.25), (0, 1.25)]), "grey", 1.5, fill="wash", closed=True)
        d.text((origin[0] + 140, 300), words)
    view = View((394, 190), 66)
    wall = rectangle(WALL, BASE, LENGTH - WALL, HEIGHT - WALL, 6)
    there, following = bent(wall, CURVATURE), bent(np.roll(wall, -1, axis=0), CURVATURE)
    side = following - there
    normal = np.stack([-side[:, 1], side[:, 0]], -1)  # out of the chamber, as long as the piece of the wall
    for middle, push in zip((there + following) / 2, normal, strict=True):
        if np.linalg.norm(push) > 0.3:
            d.arrow(view(middle - 0.33 * push), view(middle - 0.02 * push), "orange", 2.5)
    for at in (0, 12):  # the short walls at the ends, six pieces each
        push, middle = normal[at : at + 6].sum(0), there[at : at + 6].mean(0) + side[at] / 2
        d.arrow(view(middle - 0.42 * push), view(middle - 0.02 * push), "orange", 2.5)
    d.note((186, 78), "thin wall: it stretches")
    d.arrow((150, 86), (150, 118), "grey", 1.5)
    d.note((186, 238), "base: it bends, but keeps its length")
    d.note((560, 40), "force on a wall: *p A n*", "orange")
    return d
