"""A cantilever of masses and springs under its tip load, in equilibrium, and one of its cells."""

import numpy as np
from canvas import Drawing, View

CELLS, LOAD = (8, 2), 0.0144  # force, per stiffness of an edge and spacing


def springs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses at rest (masses, 2), the ends of springs (springs, 2) and their stiffnesses.

    A cell is isotropic if the springs along its edges are twice as stiff as its diagonals; cells share inner edges.
    """
    nx, ny = CELLS
    rest = np.array([(x, y) for y in range(ny + 1) for x in range(nx + 1)], float)
    stiffness: dict[tuple[int, int], float] = {}
    for x in range(nx):
        for y in range(ny):
            a, b = x + y * (nx + 1), x + (y + 1) * (nx + 1)
            for pair in ((a, a + 1), (b, b + 1), (a, b), (a + 1, b + 1), (a, b + 1), (a + 1, b)):
                stiffness[pair] = stiffness.get(pair, 0.0) + 0.5
    return rest, np.array(list(stiffness)), np.array(list(stiffness.values()))


def equilibrium(rest: np.ndarray, ends: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """Positions at which springs and load balance, by Newton's method; the left end is held."""
    length = np.linalg.norm(np.subtract(*rest[ends.T]), axis=1)
    load = np.zeros_like(rest)
    load[CELLS[0], 1] = -LOAD  # at the lower right corner
    free = np.repeat(rest[:, 0] > 0, 2)
    x = rest.copy()
    for share in (*np.linspace(0.1, 1.0, 10), 1.0, 1.0, 1.0):
        force, matrix = share * load, np.zeros((x.size, x.size))
        for (i, j), k, rest_length in zip(ends, stiffness, length, strict=True):
            d = x[j] - x[i]
            now = np.linalg.norm(d)
            n = d / now
            pull = k * (now - rest_length) * n
            force[i] += pull
            force[j] -= pull
            block = k * np.outer(n, n) + k * (1 - rest_length / now) * (np.eye(2) - np.outer(n, n))
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                matrix[2 * a : 2 * a + 2, 2 * b : 2 * b + 2] += sign * block
        step = np.zeros(x.size)
        step[free] = np.linalg.solve(matrix[np.ix_(free, free)], force.ravel()[free])
        x += step.reshape(-1, 2)
    return x


def draw() -> Drawing:
    """The cantilever and the cell."""
    d = Drawing(
        "A lattice of masses and springs",
        "Left: a cantilever of masses and springs, held at its left end and loaded at its lower right corner, in "
        "equilibrium. Springs above the middle are stretched, those below it are compressed. Right: one cell, with "
        "springs along its edges and diagonals.",
        310,
    )
    rest, ends, stiffness = springs()
    x = equilibrium(rest, ends, stiffness)
    view = View((44, 158), 46)
    lengths = [np.linalg.norm(np.subtract(*p[ends.T]), axis=1) for p in (rest, x)]
    strain = lengths[1] / lengths[0] - 1
    d.line(view([(0, -0.35), (-0.5, -0.35), (-0.5, 2.35), (0, 2.35)]), "grey", 1.5, fill="wash", closed=True)
    for low, high, colour in ((-1.0, -0.003, "blue"), (-0.003, 0.003, "grey"), (0.003, 1.0, "orange")):
        d.segments(view(x[ends[(strain > low) & (strain <= high)]]), colour, 2.5)
    for p in x:
        d.circle(view(p), 5, "ink")
    tip = x[CELLS[0]]
    d.arrow(view(tip + (0.0, -0.15)), view(tip + (0.0, -1.15)), "purple", 4)
    d.text(view(tip + (-0.3, -1.05)), "load", "purple", anchor="end")
    d.text((166, 34), "stretched", "orange", bold=True)
    d.text((128, 216), "compressed", "blue", bold=True)
    cell = View((516, 212), 140)
    corners = np.array([(0, 0), (1, 0), (0, 1), (1, 1)], float)
    for i, j in ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)):
        a, b = cell(corners[[i, j]])
        along, side = (b - a), np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a)
        t = np.linspace(0.16, 0.84, 25)
        coil = a + t[:, None] * along + 6 * ((np.arange(25) % 2) * 2 - 1)[:, None] * side * (t > 0.17)[:, None]
        d.line([a, *coil, b], "grey", 2)
    for p in corners:
        d.circle(cell(p), 11, "ink")
    d.text((586, 44), "a cell", bold=True)
    d.text((586, 262), "edges *k*, diagonals *k*/2")
    d.note((586, 292), "as stiff as a solid")
    return d
