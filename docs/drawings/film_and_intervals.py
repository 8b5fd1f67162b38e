"""A swinging beam whose markers are seen with errors, and the parameters that agree with its film."""

import numpy as np
from canvas import Drawing, View


def bent(x: np.ndarray, tip: float) -> np.ndarray:
    """Deflections of a clamped beam of length 1 under its weight, for a deflection of its end."""
    return tip * (x**4 - 4 * x**3 + 6 * x**2) / 3


def ellipse(centre: tuple[float, float], long: float, short: float, turned: float) -> np.ndarray:
    """Points of an ellipse with its half axes, whose long axis is turned by an angle."""
    t = np.linspace(0.0, 2 * np.pi, 90)
    along, across = np.array([np.cos(turned), np.sin(turned)]), np.array([-np.sin(turned), np.cos(turned)])
    return np.array(centre) + long * np.cos(t)[:, None] * along + short * np.sin(t)[:, None] * across


def draw() -> Drawing:
    """Left: the beam at three times with what the camera saw; right: two regions of modulus and density."""
    d = Drawing(
        "A noisy film and what follows from it",
        "Left: a clamped beam at three times, with crosses where a camera saw its markers, a little off. Right: "
        "stiffness and density that agree with the film. Of a swing under its own weight: a band without an end, along "
        "which both grow together. With a known force at the tip: a small ellipse.",
        318,
    )
    view, rng = View((40, 92), 285), np.random.default_rng(3)
    d.line(view([(0, 0.09), (-0.05, 0.09), (-0.05, -0.12), (0, -0.12)]), "grey", 1.5, fill="wash", closed=True)
    x = np.linspace(0.0, 1.0, 40)
    tips = (-0.08, -0.32, -0.55)
    for tip, colour in zip(tips, ("faint", "faint", "sky"), strict=True):
        d.line(view(np.stack([x * (1 - 0.25 * tip**2), bent(x, tip)], axis=1)), colour, 13)
    for tip in tips:
        for s in (0.4, 0.6, 0.8, 1.0):
            mark = np.array([s * (1 - 0.25 * tip**2), bent(np.array(s), tip)]) + rng.normal(scale=0.014, size=2)
            for way in ((0.017, 0.017), (0.017, -0.017)):
                d.segments(view([mark - way, mark + way])[None], "orange", 2.5)
    d.text((40, 36), "what the camera saw", "orange", anchor="start", bold=True)
    d.text((40, 296), "every mark is off by the noise", anchor="start")
    plane = View((425, 268), 220)
    d.arrow(plane((0, 0)), plane((1.12, 0)), "ink", 2)
    d.arrow(plane((0, 0)), plane((0, 1.02)), "ink", 2)
    d.text(plane((1.1, -0.15)), "stiffness", anchor="end")
    d.text(plane((-0.07, 1.06)), "density", anchor="start")
    middle, turned = (0.52, 0.46), np.arctan2(0.46, 0.52)
    along = np.array([np.cos(turned), np.sin(turned)])
    across = 0.045 * np.array([-along[1], along[0]])
    first, last = 0.06 * along, 1.22 * along
    d.line(plane([first + across, last + across, last - across, first - across]), "sky", 1.5, fill="sky", closed=True)
    d.line(plane(ellipse(middle, 0.15, 0.04, float(turned))), "orange", 2.5, fill="paper", closed=True)
    d.circle(plane(middle), 5, "ink")
    d.text(plane((0.28, 0.68)), "own weight", "blue", bold=True)
    d.text(plane((0.9, 0.3)), "and a force", "orange", bold=True)
    return d
