"""The press of the page on tools: its prescribed motion, and three moments of it."""

import numpy as np
from canvas import Drawing, View

STROKE, DURATION, GAP, WIDTH, HEIGHT = 0.02, 0.2, 0.001, 0.1, 0.06
RATIO = 0.25


def displacement(t: np.ndarray) -> np.ndarray:
    """Of the press, up [m]."""
    return -STROKE * np.sin(np.pi * t / DURATION) ** 2


def draw() -> Drawing:
    """The table of the motion and the sponge."""
    d = Drawing(
        "A press with a prescribed motion",
        "Left: the displacement of a press over time, a table of 21 poses. Right: the press above a sponge before, in "
        "the middle of its stroke and at its lowest point; no force changes its motion.",
        330,
    )
    t = np.linspace(0, DURATION, 21)
    view, scale = View((70, 70), 1.0), np.array([200 / DURATION, 150 / STROKE])
    d.arrow((70, 70), (296, 70), "grey", 2).arrow((70, 50), (70, 250), "grey", 2)
    d.line(view(np.stack([t, displacement(t)], -1) * scale), "orange", 2.5)
    for x, y in zip(t, displacement(t), strict=True):
        d.circle(view(np.array([x, y]) * scale), 4, "orange")
    d.text((304, 77), "time", anchor="start").note((270, 58), "0.2 s")
    d.note((80, 238), "−2 cm", anchor="start")
    d.text((170, 292), "prescribed displacement")
    times = (0.0, 0.05, 0.1)
    for k, moment in enumerate(times):
        sponge = View((346 + 120 * k, 236), 880)
        low = HEIGHT + GAP + float(displacement(np.array(moment)))
        height = min(HEIGHT, low)
        bulge = RATIO * (1 - height / HEIGHT) * WIDTH / 2
        s = np.linspace(0, 1, 15)
        side = bulge * 4 * s * (1 - s)
        outline = np.vstack([np.stack([-side, s * height], -1), np.stack([WIDTH + side, s * height], -1)[::-1]])
        d.line(sponge(outline), "blue", 2, fill="sky", closed=True)
        d.line(
            sponge([(-0.008, low), (0.108, low), (0.108, low + 0.035), (-0.008, low + 0.035)]),
            "ink",
            2,
            fill="wash",
            closed=True,
        )
        d.line(sponge([(-0.01, 0), (0.11, 0)]), "grey", 4)
        d.note((390 + 120 * k, 266), f"{moment:g} s")
        p = view(np.array([moment, displacement(np.array(moment))]) * scale)
        d.circle(p, 9, "", "ink", 2.5)
    d.arrow((510, 92), (510, 130), "ink", 3)
    d.text((510, 300), "the sponge at three moments")
    return d
