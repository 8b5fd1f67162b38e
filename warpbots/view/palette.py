"""The colours of all drawings, and the colours of regions that show their control signals."""

from typing import Protocol, runtime_checkable

import numpy as np

from warpbots.actuation_laws.contraction import contraction
from warpbots.scene import Scene

__all__ = [
    "PAPER",
    "INK",
    "QUIET",
    "GROUND",
    "GROUND_EDGE",
    "GOAL",
    "CONTRACT",
    "EXPAND",
    "body_colors",
    "packed",
]

PAPER = (1.0, 1.0, 1.0)
"""Colour of the background."""
INK = (0.22, 0.24, 0.28)
"""Colour of important text and cables."""
QUIET = (0.53, 0.56, 0.60)
"""Colour of axes, ticks and other text."""
GROUND = (0.925, 0.915, 0.895)
"""Colour of obstacles."""
GROUND_EDGE = (0.70, 0.68, 0.64)
"""Colour of the borders of obstacles."""
GOAL = (0.05, 0.48, 0.28)
"""Colour of marks of goals."""
CONTRACT = np.array([0.82, 0.29, 0.24])
"""Colour of a region that contracts with full control signal."""
EXPAND = np.array([0.13, 0.33, 0.69])
"""Colour of a region that expands with full control signal."""

_PALE = 0.45  # how far a driven region at u = 0 is blended from the colour of its body to white


@runtime_checkable
class _OnRegion(Protocol):
    """An actuator that drives a region."""

    region: str


def body_colors(scene: Scene, particles: object, control: np.ndarray | None = None) -> np.ndarray:
    """The colour of each particle.

    Args:
        scene: The scene with the bodies.
        particles: All matter at rest, as in `Trajectory.matter`.
        control: Control signal in [-1, 1], shape (channels,). Regions with an actuator are pale at 0, red if they
            contract and blue if they expand. None for the colours of the bodies.

    Returns:
        Red, green and blue in [0, 1], shape (n_particles, 3).
    """
    colors = np.array(scene.colors).reshape(-1, 3)[particles.body]
    if control is None:
        return colors
    driven = np.zeros(len(colors), dtype=bool)
    pull = np.zeros(len(colors))
    for actuator, signal in zip(scene.actuators, control, strict=True):
        if isinstance(actuator, _OnRegion):
            inside = particles.regions[actuator.region]
            driven |= inside
            pull[inside] += contraction(actuator, float(signal))
    colors[driven] += _PALE * (1.0 - colors[driven])
    strength = np.clip(np.abs(pull), 0.0, 1.0)[:, None] ** 0.8  # makes weak signals visible
    return colors + strength * (np.where(pull[:, None] > 0.0, CONTRACT, EXPAND) - colors)


def packed(colors: np.ndarray) -> np.ndarray:
    """Colours as numbers 0xRRGGBB, shape (n,), uint32, from red, green and blue in [0, 1], shape (n, 3)."""
    red, green, blue = np.round(255.0 * np.clip(colors, 0.0, 1.0)).astype(np.uint32).T
    return (red << 16) | (green << 8) | blue
