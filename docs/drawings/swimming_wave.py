"""A fish that bends in a wave: the force of the water on each section has a forward component."""

import numpy as np
from canvas import Drawing, View

LENGTH, AMPLITUDE, WAVES, SPEED = 4.0, 0.52, 1.15, 0.35  # waves along the body; speed of the fish per that of the wave
STATIONS, SCALE = 21, 6.5  # sections with a force, length of an arrow per force


def wave(x: np.ndarray, phase: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of the spine (points, 2), their normals, and their velocities across, per angular frequency.

    The head is at x = 0 on the left; the wave runs to the tail, and grows on its way.
    """
    k, grown = 2 * np.pi * WAVES / LENGTH, AMPLITUDE * (0.15 + 0.85 * (x / LENGTH) ** 1.5)
    slope = (
        k * grown * np.cos(k * x - phase)
        + np.sin(k * x - phase) * AMPLITUDE * 0.85 * 1.5 / LENGTH * (x / LENGTH) ** 0.5
    )
    normal = np.stack([-slope, np.ones_like(x)], -1) / np.sqrt(1 + slope**2)[:, None]
    return np.stack([x, grown * np.sin(k * x - phase)], -1), normal, -grown * np.cos(k * x - phase)


def forces(x: np.ndarray, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """Places of sections, and the drag of the water on them along their normals, up to a factor."""
    place, normal, across = wave(x, phase)
    ahead = -SPEED / (2 * np.pi * WAVES / LENGTH)
    through = ahead * normal[:, 0] + across * normal[:, 1]  # velocity of a section along its normal
    return place, -(through * np.abs(through))[:, None] * normal


def draw() -> Drawing:
    """The fish, a moment earlier in grey, with forces."""
    d = Drawing(
        "Why a fish whose wave runs to the tail swims ahead",
        "A fish from above, and in grey a moment earlier; the wave of its body runs to the tail. Each section moves "
        "sideways through the water and is tilted, so that the drag along its normal has a forward component. The sum "
        "of all forces along the body points to the head.",
        330,
    )
    view = View((110, 160), 128)
    s = np.linspace(0, LENGTH, 61)
    half = 0.46 * np.sqrt(s / LENGTH) * (1 - s / LENGTH) ** 0.8 + 0.06 * (s / LENGTH) ** 4
    for phase, colour, fill in ((0.2, "faint", "wash"), (0.75, "blue", "sky")):
        place, normal, _ = wave(s, phase)
        outline = np.vstack([place + half[:, None] * normal, (place - half[:, None] * normal)[::-1]])
        d.line(view(outline), colour, 2, fill=fill, closed=True)
    place, force = forces(np.linspace(0.15, LENGTH - 0.03, STATIONS), 0.75)
    for p, f in zip(place, force, strict=True):
        if np.linalg.norm(SCALE * f) > 0.12:
            d.arrow(view(p), view(p + SCALE * f), "purple", 2.5)
    total = SCALE * force.sum(0)
    d.arrow(view((0.9, 0.95)), view((0.9 + total[0], 0.95)), "orange", 5)
    d.text(view((1.0, 0.9)), "sum along the body", "orange", anchor="start")
    d.arrow(view((2.6, -0.98)), view((3.6, -0.98)), "grey", 2.5)
    d.text(view((2.5, -1.03)), "the wave runs", "grey", anchor="end")
    d.text(view((0.0, -0.5)), "head", "blue")
    return d
