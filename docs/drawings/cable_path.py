"""A cable on its route through a finger: it shortens, and pushes on the finger wherever the route turns."""

import numpy as np
from canvas import Drawing, View

LENGTH, HALF, OFFSET, GUIDES = 4.2, 0.42, 0.28, 6
SHORTER = 0.09  # part of the route that is pulled in, per its length


def bent(points: np.ndarray, curvature: float) -> np.ndarray:
    """Points of a straight finger whose axis, y = 0, becomes an arc that bends down."""
    if curvature == 0:
        return points
    angle, radius = points[..., 0] * curvature, 1 / curvature + points[..., 1]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle) - 1 / curvature], -1)


def draw() -> Drawing:
    """The finger straight and bent."""
    d = Drawing(
        "The route of a cable",
        "Left: a cable runs through points of a finger, below its axis, to the end, where it is fixed. Right: the "
        "cable is pulled in, and the finger bends. The tension T is the same everywhere. At each point of the route "
        "the cable pushes with the sum of the tensions on both sides, at the last point with the tension alone. The "
        "length of an arrow is proportional to the square root of the force.",
        340,
    )
    curvature = SHORTER / OFFSET  # at which the route is as long as the cable
    s = np.linspace(0, LENGTH, 50)
    outline = np.vstack([np.stack([s, s * 0 + HALF], -1), np.stack([s[::-1], s * 0 - HALF], -1)])
    route = np.stack([np.linspace(0, LENGTH - 0.2, GUIDES), np.full(GUIDES, -OFFSET)], -1)
    for origin, k in (((56, 120), 0.0), ((390, 120), curvature)):
        view = View(origin, 60 if k == 0 else 66)
        d.line(view(bent(outline, k)), "blue", 2, fill="sky", closed=True)
        d.line(view(bent(np.stack([s, 0 * s], -1), k)), "blue", 1.5, dash="7 6")
        d.line(view([(0, -0.9), (-0.4, -0.9), (-0.4, 0.9), (0, 0.9)]), "grey", 1.5, fill="wash", closed=True)
        points = bent(route, k)
        start = np.array([-0.62 if k == 0 else -0.85, -OFFSET])
        d.line(view([start, *points]), "orange", 3)
        for p in points[1:]:
            d.circle(view(p), 6, "paper", "orange", 2.5)
        if k:
            d.arrow(view(start + (0.02, 0)), view(start - (0.02, 0)), "orange", 3)
            directions = np.diff(points, axis=0)
            directions /= np.linalg.norm(directions, axis=1)[:, None]
            forces = np.vstack([directions[1:] - directions[:-1], -directions[-1:]])
            for p, force in zip(points[1:], forces, strict=True):
                d.arrow(view(p), view(p + 0.65 * np.sqrt(1 / np.linalg.norm(force)) * force), "purple", 3)
    d.text((190, 58), "route")
    d.arrow((190, 66), (190, 126), "grey", 1.5)
    d.text((190, 322), "length of the route: *R*")
    d.text((530, 322), "cable: *L* = *R* (1 − *u*)")
    d.text((356, 168), "*T*", "orange", anchor="end")
    return d
