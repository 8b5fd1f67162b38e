"""One finger as the four solvers see it: particles, springs, tetrahedra, joints."""

import numpy as np
from canvas import Drawing, View

LENGTH, HEIGHT, CURVATURE = 3.2, 0.8, 0.28


def bent(points: np.ndarray) -> np.ndarray:
    """Points of a straight finger whose axis, y = 0, becomes an arc that bends down."""
    angle, radius = points[..., 0] * CURVATURE, 1 / CURVATURE + points[..., 1]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle) - 1 / CURVATURE], -1)


def nodes(across: int) -> tuple[np.ndarray, int]:
    """Corners of square cells, of shape (columns, rows, 2), and the number of cells along."""
    along = round(LENGTH / HEIGHT * across)
    x, y = np.meshgrid(np.linspace(0, LENGTH, along + 1), np.linspace(-0.5, 0.5, across + 1) * HEIGHT, indexing="ij")
    return np.stack([x, y], -1), along


def draw() -> Drawing:
    """Four panels."""
    d = Drawing(
        "One finger, four solvers",
        "A bent finger, held at its left end, in four discretisations: particles of the material point method with "
        "the cells of the grid behind them, a lattice of masses and springs, finite elements, and rigid links on "
        "joints.",
        494,
    )
    places = {"MPM: particles and a grid": (52, 60), "springs: a lattice": (402, 60)}
    places |= {"projective dynamics: elements": (52, 314), "articulated: links on joints": (402, 314)}
    for words, (x, y) in places.items():
        d.text((x + 122, y - 24), words, size=19, bold=True)
        d.line([(x, y), (x - 26, y), (x - 26, y + 92), (x, y + 92)], "grey", 1.5, fill="wash", closed=True)
    view = [View((x, y + 46), 80) for x, y in places.values()]
    grid, _ = nodes(4)
    cell = HEIGHT / 4
    k = np.arange(17) * cell
    rows = [[(0, y), (LENGTH, y)] for y in 2 * cell - np.arange(11) * cell]
    d.segments(view[0](np.array(rows + [[(x, 2 * cell), (x, -8 * cell)] for x in k])), "faint", 1)
    quarter = (np.stack(np.meshgrid(np.arange(32), np.arange(8), indexing="ij"), -1).reshape(-1, 2) + 0.5) / 2 * cell
    for p in bent(quarter - (0, HEIGHT / 2)):
        d.circle(view[0](p), 3.2, "blue")
    grid, along = nodes(3)
    x = bent(grid)
    a, b, c, e = x[:-1, :-1], x[1:, :-1], x[:-1, 1:], x[1:, 1:]
    pairs = [x[:-1], x[1:], x[:, :-1], x[:, 1:], a, e, b, c]
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        d.segments(view[1](np.stack([one.reshape(-1, 2), other.reshape(-1, 2)], 1)), "orange", 1.5)
    for p in x.reshape(-1, 2):
        d.circle(view[1](p), 3.5, "ink")
    grid, along = nodes(2)
    x = bent(grid)
    for i in range(along):
        for j in range(2):
            a, b, c, e = x[i, j], x[i + 1, j], x[i + 1, j + 1], x[i, j + 1]
            for triangle in ((a, b, c), (a, c, e)) if (i + j) % 2 else ((a, b, e), (b, c, e)):
                d.line(view[2](np.array(triangle)), "blue", 1.5, fill="sky", closed=True)
    hinges = bent(np.stack([np.linspace(0, LENGTH, 4), np.zeros(4)], -1))
    for a, b in zip(hinges, hinges[1:], strict=False):
        t = (b - a) / np.linalg.norm(b - a)
        side = 0.3 * np.array([-t[1], t[0]])
        d.line(view[3]([a + side, b + side, b - side, a - side]), "green", 2, fill="mint", closed=True)
    for p in hinges[:-1]:
        d.circle(view[3](p), 9, "paper", "ink", 2.5)
    return d
