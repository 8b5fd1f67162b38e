"""Projective dynamics: the local step turns every element into place, the global step joins them."""

import numpy as np
from canvas import Drawing, View

CELLS, STIFFNESS = 5, 40.0


def strip() -> tuple[np.ndarray, np.ndarray]:
    """Nodes (nodes, 2) and triangles (triangles, 3) of a strip of square cells."""
    nodes = np.array([(x, y) for x in range(CELLS + 1) for y in range(2)], float)
    quads = [(2 * k, 2 * k + 2, 2 * k + 3, 2 * k + 1) for k in range(CELLS)]
    return nodes, np.array([t for a, b, c, e in quads for t in ((a, b, c), (a, c, e))])


def turned(rest: np.ndarray, now: np.ndarray) -> np.ndarray:
    """The triangle at rest, turned and moved as close to the present one as it can be."""
    a, b = rest - rest.mean(0), now - now.mean(0)
    U, _, V = np.linalg.svd(b.T @ a)
    return a @ (U @ np.diag([1.0, np.linalg.det(U @ V)]) @ V).T + now.mean(0)


def joined(nodes: np.ndarray, triangles: np.ndarray, targets: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Positions that are closest to the edges of all turned triangles and to `guess`, where inertia leads."""
    matrix, right = np.eye(len(nodes)), guess.copy()
    matrix[:2, :2] *= 1e6
    right[:2] = 1e6 * nodes[:2]
    for triangle, target in zip(triangles, targets, strict=True):
        for i, j in ((0, 1), (1, 2), (2, 0)):
            a, b, edge = triangle[i], triangle[j], target[j] - target[i]
            matrix[[a, b], [a, b]] += STIFFNESS
            matrix[[a, b], [b, a]] -= STIFFNESS
            right[b] += STIFFNESS * edge
            right[a] -= STIFFNESS * edge
    return np.linalg.solve(matrix, right)


def draw() -> Drawing:
    """Inertia, local step, global step."""
    d = Drawing(
        "The local and the global step of projective dynamics",
        "Left: the bar as inertia and gravity alone would deform it. Middle, the local step: every "
        "element by itself returns to its shape at rest, turned but not deformed, so that gaps open between "
        "neighbours. Right, the global step: one linear system with a constant matrix joins the elements again. Both "
        "repeat until nothing changes.",
        306,
    )
    nodes, triangles = strip()
    guess = nodes + np.stack([0.16 * np.sin(1.7 * nodes[:, 0]) * nodes[:, 1], -0.075 * nodes[:, 0] ** 2], -1)
    turns = np.array([turned(nodes[t], guess[t]) for t in triangles])
    after = joined(nodes, triangles, turns, guess)
    views = [View((x, 112), 34) for x in (24, 262, 500)]
    for view, words in zip(views, ("1  inertia", "2  local step", "3  global step"), strict=True):
        d.text((view.origin[0] + 84, 36), words, bold=True)
        wall = [(0, -0.3), (-0.35, -0.3), (-0.35, 1.3), (0, 1.3)]
        d.line(view(wall), "grey", 1.5, fill="wash", closed=True)
    for view, positions, colour, fill in ((views[0], guess, "grey", "wash"), (views[2], after, "blue", "sky")):
        for t in triangles:
            d.line(view(positions[t]), colour, 2, fill=fill, closed=True)
        for p in positions:
            d.circle(view(p), 4.5, "ink")
    for shape in turns:
        middle = shape.mean(0) + 0.3 * (shape.mean(0) - guess.mean(0)) * (0.25, 0.0)
        d.line(views[1](shape - shape.mean(0) + middle), "orange", 2, fill="sand", closed=True)
    d.arrow((588, 232), (356, 232), "ink", 2.5, bend=-0.09)
    d.note((470, 290), "again, until nothing changes")
    d.note((108, 290), "*s* = *x* + *h v* + *h*^{2} *g*")
    return d
