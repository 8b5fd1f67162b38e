"""A search under a constraint: level lines of a loss, the curve on which a constraint holds, and iterates."""

import numpy as np
from canvas import Drawing, View

MATRIX, MINIMUM = np.array([(1.0, 0.35), (0.35, 0.6)]), np.array([2.6, 0.55])


def constraint(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Its value and gradient: zero on an ellipse about the origin."""
    return x[0] ** 2 / 3.0 + x[1] ** 2 / 1.7 - 1.0, np.array([2 * x[0] / 3.0, 2 * x[1] / 1.7])


def iterates() -> np.ndarray:
    """Sequential quadratic programming with full steps, of shape (iterates, 2)."""
    x, multiplier, path = np.array([0.45, 1.9]), 0.0, [np.array([0.45, 1.9])]
    for _ in range(7):
        value, slope = constraint(x)
        curvature = 2 * MATRIX + multiplier * np.diag((2 / 3.0, 2 / 1.7))
        system = np.block([[curvature, slope[:, None]], [slope[None, :], np.zeros((1, 1))]])
        step = np.linalg.solve(system, [*(-2 * MATRIX @ (x - MINIMUM)), -value])
        x, multiplier = x + step[:2], step[2]
        path.append(x)
    return np.array(path)


def draw() -> Drawing:
    """Level lines, constraint, path."""
    d = Drawing(
        "A search under a constraint",
        "Level lines of a loss, its free minimum, the curve on which a constraint holds, and the iterates of "
        "sequential quadratic programming: they end on the curve where it touches a level line.",
        400,
    )
    view = View((200, 246), 108)
    path = iterates()
    best = (path[-1] - MINIMUM) @ MATRIX @ (path[-1] - MINIMUM)
    t = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(t), np.sin(t)], -1)
    shape = np.linalg.inv(np.linalg.cholesky(MATRIX)).T
    for level in best * np.array([1.0, 1.8, 2.9]):
        d.line(view(MINIMUM + np.sqrt(level) * circle @ shape.T), "blue" if level == best else "faint", 2.0)
    d.line(view(circle * np.sqrt((3.0, 1.7))), "green", 3.5)
    d.line(view(path), "orange", 3)
    for p in path:
        d.circle(view(p), 7, "orange", "paper")
    d.circle(view(MINIMUM), 6, "grey")
    d.text(view(MINIMUM) + (14, 7), "minimum", "grey", anchor="start")
    d.text(view(path[0]) + (0, -16), "start", "orange")
    d.text(view(path[-1]) + (-16, 8), "optimum", "orange", anchor="end", bold=True)
    d.text(view((-0.62, -0.45)), "constraint = 0", "green", anchor="start")
    d.note((20, 34), "level lines of the loss", "grey", "start")
    return d
