"""Stress of a bar over its stretch under several laws that agree at small strains."""

from collections.abc import Callable

import numpy as np
from canvas import Drawing, View

RATIO, LOCKING = 0.3, 1.6
MU, LAMBDA = 0.5 / (1 + RATIO), RATIO / ((1 + RATIO) * (1 - 2 * RATIO))  # of a Young's modulus of 1

Law = Callable[[float, float], tuple[float, float]]
"""Stresses per area at rest along and across a bar, of its stretches along and across."""


def law(stress: Callable[[float, float, float], float]) -> Law:
    """From the stress along a stretch s, with J and the trace of F^T F."""

    def both(s: float, t: float) -> tuple[float, float]:
        J, trace = s * t * t, s * s + 2 * t * t
        return stress(s, J, trace), stress(t, J, trace)

    return both


def green(s: float, J: float, trace: float) -> float:
    """Saint Venant and Kirchhoff."""
    return s * (MU * (s * s - 1) + LAMBDA * 0.5 * (trace - 3))


def gent(s: float, J: float, trace: float) -> float:
    """Gent, with a small locking invariant."""
    return MU * (s - 1 / s) / (1 - (trace - 3 - 2 * np.log(J)) / LOCKING) + LAMBDA * np.log(J) / s


LAWS: dict[str, tuple[Law, str]] = {
    "gent": (law(gent), "purple"),
    "st_venant_kirchhoff": (law(green), "green"),
    "neo_hookean": (law(lambda s, J, _: MU * (s - 1 / s) + LAMBDA * np.log(J) / s), "blue"),
    "hencky": (law(lambda s, J, _: (2 * MU * np.log(s) + LAMBDA * np.log(J)) / s), "orange"),
}


def stress(law: Law, stretch: float) -> float:
    """Stress along a bar whose sides are free, by bisection for the stretch across."""
    low, high = 0.5, 1.6
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if law(stretch, middle)[1] < 0 else (low, middle)
    return law(stretch, middle)[0]


def draw() -> Drawing:
    """The curves."""
    d = Drawing(
        "Laws of elasticity in a tensile test",
        "Stress of a bar divided by Young's modulus, over its stretch from 0.7 to 1.8, with Poisson's ratio 0.3. At "
        "small strains all laws agree. Saint Venant and Kirchhoff's law and Gent's law stiffen, neo-Hookean matter "
        "softens slightly, Hencky's law softens most.",
        400,
    )
    view, scale = View((60 - 0.65 * 380, 282), 1.0), np.array([380.0, 172.0])
    d.arrow((60, 282), (520, 282), "grey", 2)
    d.arrow(view((1 * scale[0], -0.62 * scale[1])), view((1 * scale[0], 1.53 * scale[1])), "grey", 2)
    for tick in (0.8, 1.2, 1.4, 1.6, 1.8):
        d.segments([view(np.array([(tick, -0.03), (tick, 0.03)]) * scale)], "grey", 2)
        d.note(view(np.array((tick, 0.0)) * scale) + (0, 28 if tick > 1 else -14), f"{tick}")
    for chosen, colour in LAWS.values():
        s = np.linspace(0.7, 1.78, 55)
        p = np.array([stress(chosen, x) for x in s])
        keep = p < 1.46
        d.line(view(np.stack([s, p], -1)[keep] * scale), colour, 3.5)
    s = np.array([0.72, 1.0, 1.78])
    d.line(view(np.stack([s, s - 1], -1) * scale), "grey", 2, dash="6 6")
    for name, y, colour in (
        ("st_venant_kirchhoff", 36, "green"), ("gent", 66, "purple"), ("linear", 146, "grey"),
        ("neo_hookean", 176, "blue"), ("hencky", 232, "orange"),
    ):  # fmt: skip
        d.text((506, y), name, colour, 19, "start", bold=True)
    d.text((532, 289), "stretch", anchor="start")
    d.text((176, 40), "stress", anchor="end").note((176, 66), "per *E*", anchor="end")
    return d
