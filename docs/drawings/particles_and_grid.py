"""Transfer between particles and the nodes of their grid, with the weights of quadratic B-splines."""

import numpy as np
from canvas import Drawing, View


def spline(distance: np.ndarray) -> np.ndarray:
    """Weight of a node at a distance in cells."""
    d = np.abs(distance)
    return np.where(d < 0.5, 0.75 - d**2, np.where(d < 1.5, 0.5 * (1.5 - d) ** 2, 0.0))


def grid(d: Drawing, view: View, cells: int) -> np.ndarray:
    """The lines of a grid and its nodes, of shape (nodes, 2)."""
    k = np.arange(cells + 1.0)
    rows = [[(0, y), (cells, y)] for y in k]
    d.segments(view(np.array(rows + [[(x, 0), (x, cells)] for x in k])), "faint", 1.5)
    return np.stack(np.meshgrid(k, k), -1).reshape(-1, 2)


def draw() -> Drawing:
    """Three panels: particles to nodes, the nodes alone, nodes to particles."""
    d = Drawing(
        "Particles and their grid",
        "Left: a particle gives mass and momentum to the nine nodes around it; the area of a disc is the weight of its "
        "node. Middle: gravity and contact change the velocities of the nodes. Right: the particle takes its new "
        "velocity from the same nodes with the same weights, and moves.",
        318,
    )
    rng = np.random.default_rng(7)
    particle = np.array([1.82, 1.72])
    spots = (np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2) + 0.5) / 2
    others = (spots + rng.uniform(-0.12, 0.12, spots.shape))[np.hypot(*(spots - particle).T) > 0.45]
    views = [View((x, 250), 58) for x in (24, 263, 502)]
    headings = ("particles → nodes", "on the nodes", "nodes → particles")
    for view, words in zip(views, headings, strict=True):
        d.text((view.origin[0] + 87, 38), words, bold=True)
    for view in (views[0], views[2]):
        nodes = grid(d, view, 3)
        weight = spline(nodes[:, 0] - particle[0]) * spline(nodes[:, 1] - particle[1])
        for p in others:
            d.circle(view(p), 4, "sky")
        for node, w in zip(nodes, weight, strict=True):
            if w > 0:
                ends = (view(particle), view(node)) if view is views[0] else (view(node), view(particle))
                d.line(ends, "orange", 1.5)
        for node, w in zip(nodes, weight, strict=True):
            d.circle(view(node), 28 * np.sqrt(w) if w > 0 else 2.5, "orange" if w > 0 else "grey")
        d.circle(view(particle), 8, "blue", "paper")
    d.arrow(views[2](particle), views[2](particle + (0.28, -0.72)), "blue", 4)
    nodes = grid(d, views[1], 3)
    floor = views[1]([(-0.1, 0.0), (3.1, 0.0), (3.1, -0.22), (-0.1, -0.22)])
    d.line(floor, "grey", 1.5, fill="wash", closed=True)
    for node in nodes:
        velocity = np.array([0.28, -0.52]) if node[1] > 0.5 else np.array([0.28, 0.0])  # contact removes the approach
        d.circle(views[1](node), 4, "orange")
        if node[0] < 2.5:
            d.arrow(views[1](node), views[1](node + velocity), "orange", 2)
    d.text((111, 302), "*m*_{i} = Σ *w*_{ip} *m*_{p}")
    d.text((350, 302), "gravity, contact")
    d.text((589, 302), "*v*_{p} = Σ *w*_{ip} *v*_{i}")
    return d
