"""A step of projective dynamics with a soft and a rigid body: nodes, joints and contact forces in one system."""

import numpy as np
from canvas import Drawing, View

COLUMNS, ROWS, RADIUS, DENT = 7, 3, 1.1, 0.5


def mat() -> np.ndarray:
    """Nodes of a mat with a dent in the middle, shape (rows, columns, 2)."""
    x, y = np.meshgrid(np.arange(COLUMNS) - 3.0, np.arange(ROWS, dtype=float))
    return np.stack([x, y - DENT * np.exp(-(x**2) / 1.5) * y / (ROWS - 1)], -1)


def draw() -> Drawing:
    """The bodies with their forces, and the system."""
    d = Drawing(
        "One system for a soft and a rigid body",
        "Left: a ball on a vertical rail rests in the dent of a soft mat; at three nodes the ball pushes on the mat, "
        "and the mat on the ball, with opposite forces lambda. Right: the matrix of one step. Nodes and joint "
        "coordinates have blocks of their own on the diagonal, and every contact joins them in its rows and columns.",
        360,
    )
    view, nodes = View((185, 292), 50), mat()
    ball = np.array([0.0, ROWS - 1 - DENT + RADIUS + 0.02])
    d.line(view([(0, 0.2 + ball[1]), (0, 5.2)]), "grey", 2, dash="7 6")
    d.circle(view(ball), RADIUS * 50, "sky", "blue", 2.5)
    for strip in (*nodes, *nodes.transpose(1, 0, 2)):
        d.line(view(strip), "green", 2)
    for low, high in zip(nodes[:-1], nodes[1:], strict=True):
        for a, b in zip(low[:-1], high[1:], strict=True):
            d.line(view([a, b]), "green", 2)
    for node in nodes[-1, 2:5]:
        normal = (ball - node) / np.linalg.norm(ball - node)
        d.arrow(view(node), view(node + 0.85 * normal), "purple", 4)
        d.arrow(view(node), view(node - 0.85 * normal), "orange", 4)
        d.circle(view(node), 5, "ink")
    d.text(view((1.55, 2.72)), "*λ*", "purple", 25, "start", bold=True)
    d.circle(view((1.98, 0.72)), 20, "paper").text(view((1.98, 0.55)), "−*λ*", "orange", 25, bold=True)
    d.arrow(view((1.5, 3.6)), view((1.5, 4.6)), "blue", 3)
    d.text(view((1.72, 4.0)), "*q*", "blue", 25, "start")
    d.text(view((-2.9, 2.25)), "*x*", "green", 25)
    edges, corner = np.array([0.0, 110.0, 160.0, 210.0]), np.array([365.0, 70.0])
    colours = (("mint", "", "sand"), ("", "sky", "sand"), ("sand", "sand", ""))
    for i, row in enumerate(colours):
        for j, colour in enumerate(row):
            (x0, x1), (y0, y1) = edges[j : j + 2], edges[i : i + 2]
            square = corner + [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
            d.line(square, "faint", 1.5, fill=colour or "paper", closed=True)
    for k, (words, colour) in enumerate((("nodes *x*", "green"), ("*q*", "blue"), ("*λ*", "purple"))):
        middle = edges[k : k + 2].mean()
        d.text((corner[0] + middle, corner[1] - 14), words, colour)
        d.text((corner[0] + 222, corner[1] + middle + 7), ("elasticity", "joints", "contacts")[k], "grey", 19, "start")
    d.text((185, 340), "what a step has to find")
    d.text((470, 340), "one system for all of it")
    return d
