"""A loss with kinks: where a ball that bounces three times is, over its initial velocity, and its mean over throws."""

import numpy as np
from canvas import Drawing, View

GRAVITY, RESTITUTION, TIME, AIM, SPREAD = 9.81, 0.85, 2.6, 0.85, 0.16


def height(velocity: np.ndarray) -> np.ndarray:
    """Height after TIME of points thrown upwards from the floor, in closed form."""
    left, v = np.full_like(velocity, TIME), velocity.copy()
    for _ in range(12):
        flight = 2 * v / GRAVITY
        bounces = left > flight
        left = np.where(bounces, left - flight, left)
        v = np.where(bounces, RESTITUTION * v, v)
    return v * left - 0.5 * GRAVITY * left**2


def draw() -> Drawing:
    """The loss, its mean, and the slopes at one place."""
    d = Drawing(
        "A loss with kinks, and its mean",
        "Loss of a ball that bounces, over its initial velocity: the squared distance of its height at a given time "
        "from a target. Each bounce that is gained or lost is a kink, and a descent ends in the nearest valley. The "
        "mean over slightly different throws is smooth.",
        360,
    )
    v = np.linspace(3.2, 7.4, 561)
    loss = (height(v) - AIM) ** 2
    fine = np.linspace(-3, 3, 61) * SPREAD
    kernel = np.exp(-0.5 * (fine / SPREAD) ** 2)
    mean = np.array([(kernel * (height(x + fine) - AIM) ** 2).sum() for x in v]) / kernel.sum()
    view = View((60 - 3.2 * 146, 300), 1.0)
    scale = np.array([146.0, 250.0 / max(loss.max(), 1e-9)])
    d.arrow((60, 300), (684, 300), "grey", 2).arrow((60, 300), (60, 24), "grey", 2)
    d.line(view(np.stack([v, loss], -1) * scale), "blue", 2.5)
    d.line(view(np.stack([v, mean], -1)[::4] * scale), "orange", 4)
    d.text((684, 334), "initial velocity", anchor="end")
    d.text((72, 36), "loss", anchor="start")
    d.text((330, 44), "of one throw", "blue", anchor="start", bold=True)
    d.text((330, 74), "mean over throws", "orange", anchor="start", bold=True)
    return d
