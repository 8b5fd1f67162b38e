"""Coulomb's law at two contacts: a force inside the friction cone sticks, one on its side slides."""

import numpy as np
from canvas import Drawing, View

FRICTION, WEIGHT, HEIGHT, UNIT = 0.5, 1.0, 0.33, 1.02  # height of the centre of mass, length of an arrow per force


def contact_force(push: float) -> tuple[np.ndarray, float]:
    """Force on a block that is pushed to the right, and the acceleration that is left, both per weight."""
    tangential = -min(push, FRICTION * WEIGHT)
    return np.array([tangential, WEIGHT]), push + tangential


def draw() -> Drawing:
    """A block pushed gently and one pushed hard."""
    d = Drawing(
        "The friction cone",
        "Two blocks on a floor that are pushed at their centre of mass; the coefficient of friction is 0.5. Left: the "
        "push is weak, the contact force lies inside the cone, and the block sticks. Right: the push is strong, the "
        "contact force lies on the side of the cone against the motion, and the block slides.",
        400,
    )
    half = np.arctan(FRICTION)
    for centre, push, title, law in (
        (178, 0.28, "sticks", "‖*λ*_{t}‖ < *μ λ*_{n},  *v*_{t} = 0"),
        (528, 0.85, "slides", "*λ*_{t} = −*μ λ*_{n} *v*_{t} / ‖*v*_{t}‖"),
    ):
        view = View((centre, 300), 170)
        force, left = contact_force(push)
        foot = np.array([-force[0] / force[1] * HEIGHT, 0.0])  # without a moment about the centre of mass
        d.line(view([(-0.92, 0), (0.92, 0), (0.92, -0.1), (-0.92, -0.1)]), "grey", 1.5, fill="wash", closed=True)
        d.line(view([(-0.42, 0), (0.42, 0), (0.42, 0.66), (-0.42, 0.66)]), "blue", 2, fill="sky", closed=True)
        side = 1.3 * np.array([np.sin(half), np.cos(half)])
        d.line(view(foot + [side * (-1, 1), (0, 0), side]), "green", 2.5, dash="7 6")
        rim = np.linspace(0, 2 * np.pi, 60)
        ring = side * (0, 1) + np.stack([side[0] * np.cos(rim), 0.1 * np.sin(rim)], -1)
        d.line(view(foot + ring), "green", 2, closed=True)
        d.arrow(view(foot), view(foot + UNIT * force), "orange", 5)
        d.arrow(view((-0.44 - UNIT * push, HEIGHT)), view((-0.44, HEIGHT)), "ink", 4)
        d.note(view((-0.46 - 0.5 * UNIT * push, HEIGHT + 0.1)), "push")
        if left > 0:
            d.arrow(view((0.5, HEIGHT)), view((0.5 + UNIT * left, HEIGHT)), "purple", 4)
            d.text(view((0.5 + left / 2, HEIGHT + 0.1)), "*v*_{t}", "purple")
        d.text(view(foot + UNIT * force + (0.14, -0.14)), "*λ*", "orange", 25, anchor="start", bold=True)
        d.circle(view((0, HEIGHT)), 5, "blue").circle(view(foot), 5, "ink")
        d.text((centre, 40), title, bold=True, size=25)
        d.text((centre, 354), law)
    d.note((353, 386), "The cone opens by arctan *μ* to each side of the normal; here *μ* = 0.5.")
    return d
