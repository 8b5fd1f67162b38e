"""A gripper on a slide as a tree of joints: each body hangs from its parent by coordinates of its own."""

import numpy as np
from canvas import Drawing, View

LENGTHS = (0.9, 0.75)
COORDINATES = {"q_{1}": 0.55, "q_{2}": 0.55, "q_{3}": -0.95, "q_{4}": -0.35, "q_{5}": -0.75}


def finger(base: np.ndarray, heading: float, angles: tuple[float, float]) -> np.ndarray:
    """Joints and end of a finger of two links, of shape (3, 2)."""
    points, turn = [base], heading
    for angle, length in zip(angles, LENGTHS, strict=True):
        turn += angle
        points.append(points[-1] + length * np.array([np.cos(turn), np.sin(turn)]))
    return np.array(points)


def link(d: Drawing, view: View, a: np.ndarray, b: np.ndarray, half: float = 0.1) -> None:
    """A link with round ends."""
    heading = np.arctan2(*(b - a)[::-1])
    t = np.linspace(np.pi / 2, 3 * np.pi / 2, 15) + heading
    ends = [p + half * np.stack([np.cos(t + s), np.sin(t + s)], -1) for p, s in ((a, 0.0), (b, np.pi))]
    d.line(view(np.vstack(ends)), "blue", 2, fill="sky", closed=True)


def draw() -> Drawing:
    """The gripper and its tree."""
    q = list(COORDINATES.values())
    d = Drawing(
        "A tree of joints and its coordinates",
        "Left: a gripper whose palm slides on a rail; two fingers of two links hang from it by hinges. Right: the same "
        "as a tree of bodies. Each edge is a joint with its coordinate: a length for the slide, angles for the hinges. "
        "All poses are computed from the root to the leaves.",
        390,
    )
    view = View((60, 96), 140)
    palm = np.array([0.45 + q[0], 0.0])
    d.line(view([(-0.25, 0.34), (1.95, 0.34)]), "grey", 5)
    d.segments(view([[(x, 0.34), (x - 0.09, 0.45)] for x in np.arange(-0.15, 2.0, 0.15)]), "grey", 1.5)
    d.box(view(palm + (-0.42, 0.3)), (0.84 * 140, 0.36 * 140), "sky", "blue")
    d.arrow(view((0.02, 0.14)), view((palm[0] - 0.45, 0.14)), "orange", 3)
    d.line(view([(0.0, 0.3), (0.0, -0.02)]), "orange", 2)
    d.text(view((0.24, -0.06)), "*q*_{1}", "orange")
    down = -np.pi / 2
    for x, angles, names in ((-0.3, q[1:3], "23"), (0.3, q[3:5], "45")):
        side = np.sign(x)
        points = finger(palm + (x, -0.06), down, (side * abs(angles[0]), -side * abs(angles[1])))
        for a, b in zip(points, points[1:], strict=False):
            link(d, view, a, b)
        before = down
        for k, (p, name) in enumerate(zip(points, names, strict=False)):
            heading = np.arctan2(*(points[k + 1] - p)[::-1])
            along = np.array([np.cos(before), np.sin(before)])
            d.line(view([p, p + 0.5 * along]), "grey", 1.5, dash="4 4")
            t = np.linspace(before, heading, 15)
            d.line(view(p + 0.4 * np.stack([np.cos(t), np.sin(t)], -1)), "orange", 2.5)
            d.circle(view(p), 8, "paper", "ink", 2.5)
            between = p + 0.57 * np.array([np.cos(t[7]), np.sin(t[7])])
            d.text(view(between - ((0.0, 0.0) if k else (0.18 * side, 0.0))) + (0, 7), f"*q*_{{{name}}}", "orange")
            before = heading
    places = {"world": (520, 44), "palm": (520, 136)}
    places |= {"upper": (430, 230), "lower": (430, 324), "upper ": (610, 230), "lower ": (610, 324)}
    pairs = (("world", "palm"), ("palm", "upper"), ("upper", "lower"), ("palm", "upper "), ("upper ", "lower "))
    for coordinate, (parent, child) in zip(COORDINATES, pairs, strict=True):
        a, b = np.array(places[parent]), np.array(places[child])
        d.arrow(a + (0, 19), b - (0, 21), "grey", 2)
        left = b[0] < a[0]
        at = (a + b) / 2 + (-14 if left else 14, 2)
        d.text(at, f"*q*{coordinate[1:]}", "orange", anchor="end" if left else "start")
    for name, (x, y) in places.items():
        d.box((x - 52, y - 20), (104, 40), "wash" if name == "world" else "sky", "grey" if name == "world" else "blue")
        d.text((x, y + 7), name.strip())
    d.text((520, 374), "*q* = (*q*_{1}, …, *q*_{5})", "orange")
    return d
