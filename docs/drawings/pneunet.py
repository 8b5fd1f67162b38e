"""A PneuNet at rest and under pressure: chambers over a channel, on a stiff base, curl towards the base."""

import numpy as np
from canvas import Drawing, View

ROOT, CHAMBER, WALL, GAP, CHAMBERS = 0.55, 0.8, 0.2, 0.34, 4
BASE, CHANNEL, ROOF, TOP, HEIGHT = 0.3, 0.55, 0.75, 1.75, 1.95  # heights of the upper sides of layers
PITCH = CHAMBER + 2 * WALL + GAP
LENGTH = ROOT + CHAMBERS * PITCH - GAP - WALL
STARTS = ROOT + PITCH * np.arange(CHAMBERS)
TURN, BULGE = 0.2, 0.07  # of each hinge [rad], of each wall


def bent(points: np.ndarray, turn: float) -> np.ndarray:
    """Points of an actuator whose base, y = 0, turns down by an angle under each gap, along an arc."""
    if turn == 0:
        return points
    s = np.linspace(0, LENGTH, 2001)
    hinges = STARTS[1:, None] - PITCH + CHAMBER + WALL
    angle = turn * np.clip((s - hinges) / GAP, 0, 1).sum(axis=0)
    step = np.stack([np.cos(angle), -np.sin(angle)], -1)[:-1] * (s[1] - s[0])
    base = np.concatenate([np.zeros((1, 2)), step.cumsum(axis=0)])
    x, y = points[..., 0], points[..., 1]
    here = np.stack([np.interp(x, s, base[:, i]) for i in (0, 1)], -1)
    a = np.interp(x, s, angle)
    return here + y[..., None] * np.stack([np.sin(a), np.cos(a)], -1)


def upright(x: float, low: float, high: float, bulge: float) -> np.ndarray:
    """A wall from one height to another, which bulges to the right."""
    t = np.linspace(0, 1, 15)
    return np.stack([x + bulge * np.sin(np.pi * t) ** 2, low + t * (high - low)], -1)


def section(bulge: float) -> tuple[np.ndarray, np.ndarray]:
    """The outline of the silicone and of the air, counter-clockwise from the lower left corner."""
    outer, air = [np.linspace((0, 0), (LENGTH, 0), 80)], [np.linspace((ROOT, BASE), (LENGTH - WALL, BASE), 80)]
    outer.append(upright(LENGTH, 0, HEIGHT, bulge))
    for start in STARTS[::-1]:
        end = start + CHAMBER
        foot = BASE if end + WALL > LENGTH - 1e-9 else CHANNEL
        air += [upright(end, foot, TOP, bulge), upright(start, CHANNEL, TOP, -bulge)[::-1]]
        if start > STARTS[0]:
            left = start - WALL
            outer += [upright(left, ROOF, HEIGHT, -bulge)[::-1], upright(left - GAP, ROOF, HEIGHT, bulge)]
            air.append(np.linspace((start, CHANNEL), (left - GAP - WALL, CHANNEL), 16))
    outer.append(np.array([(0.0, HEIGHT)]))
    return np.concatenate(outer), np.concatenate(air)


def draw() -> Drawing:
    """Section through the actuator, twice."""
    d = Drawing(
        "A PneuNet and its pressure",
        "Section through a row of thin-walled chambers with gaps between them, over a common channel, on a stiff "
        "base. Left: at rest. Right: the pressure on the side walls of the chambers lies above the base and has a "
        "moment about it. The gaps open, and the row curls towards the base, which keeps its length.",
        308,
    )
    for origin, turn, bulge, words in (
        ((36, 182), 0.0, 0.0, "at rest: *p* = *p*_{0}"),
        ((372, 182), TURN, BULGE, "*p* > *p*_{0}"),
    ):
        view = View(origin, 46)
        outer, air = section(bulge)
        d.line(view([(0, -0.3), (-0.4, -0.3), (-0.4, 2.25), (0, 2.25)]), "grey", 1.5, fill="wash", closed=True)
        d.line(view(bent(outer, turn)), "blue", 2, fill="sky", closed=True)
        d.line(view(bent(air, turn)), "blue", 2, fill="paper", closed=True)
        edge = np.linspace((0, 0), (LENGTH, 0), 80)
        base = np.concatenate([edge, edge[::-1] + (0, BASE)])
        d.line(view(bent(base, turn)), "ink", 1.5, fill="faint", closed=True)
        d.text((origin[0] + 130, 296), words)
    view = View((372, 182), 46)
    for start in STARTS:
        for x, way in ((start, -1), (start + CHAMBER, 1)):
            for y in (1.0, 1.35):
                tail, tip = (bent(np.array([x + s * way, y]), TURN) for s in (-0.3, 0.06))
                d.arrow(view(tail), view(tip), "orange", 2)
    left = View((36, 182), 46)
    d.note((232, 38), "gap")
    d.arrow((232, 46), left((STARTS[2] + CHAMBER + WALL + GAP / 2, 1.85)), "grey", 1.5)
    d.note((118, 38), "thin wall")
    d.arrow((118, 46), left((STARTS[1] - WALL / 2, 1.85)), "grey", 1.5)
    d.note((104, 232), "channel")
    d.arrow((104, 213), left((STARTS[0] + CHAMBER + WALL + GAP / 2, (BASE + CHANNEL) / 2)), "grey", 1.5)
    d.note((240, 232), "stiff base")
    d.arrow((240, 213), left((STARTS[2] + CHAMBER / 2, BASE / 2)), "grey", 1.5)
    d.note((540, 38), "force on a wall: *p A n*", "orange")
    return d
