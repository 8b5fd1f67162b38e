"""Concave triangle meshes, and tests for points inside by their construction."""

import numpy as np
import trimesh
from matplotlib.path import Path

SECTIONS = 24
PROFILE = np.array([(0, -0.03), (0.03, -0.03), (0.03, 0.02), (0.022, 0.02), (0.022, -0.02), (0, -0.02)])
"""Half of the section of a cup: radius and height [m]."""


def angle() -> tuple[np.ndarray, np.ndarray]:
    """An L, extruded: vertices [m] and faces."""
    ring = 0.01 * np.array([(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)])
    vertices = np.concatenate([np.c_[ring, np.full(6, z)] for z in (0.0, 0.02)])
    caps = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    sides = [f for i in range(6) for f in ((i, (i + 1) % 6, 6 + (i + 1) % 6), (i, 6 + (i + 1) % 6, 6 + i))]
    return vertices, np.array([f[::-1] for f in caps] + [tuple(6 + i for i in f) for f in caps] + sides)


def cup() -> tuple[np.ndarray, np.ndarray]:
    """A cup with sharp edges: vertices [m] and faces."""
    mesh = trimesh.creation.revolve(PROFILE, sections=SECTIONS)
    return np.array(mesh.vertices), np.array(mesh.faces)


def round_cup() -> tuple[np.ndarray, np.ndarray]:
    """A cup without edges, of many faces."""

    def arc(center: tuple[float, float], radius: float, start: float, end: float) -> np.ndarray:
        t = np.radians(np.linspace(start, end, 24))
        return np.array(center) + radius * np.c_[np.cos(t), np.sin(t)]

    outside = [[(0, -0.03)], arc((0.02, -0.02), 0.01, -90, 0), arc((0.026, 0.02), 0.004, 0, 180)]
    profile = np.concatenate([*outside, arc((0.014, -0.014), 0.008, 0, -90), [(0, -0.022)]])
    mesh = trimesh.creation.revolve(profile, sections=128)
    return np.array(mesh.vertices), np.array(mesh.faces)


def inside(name: str, x: np.ndarray) -> np.ndarray:
    """Whether points are in a mesh, by its construction."""
    if name == "angle":
        x, y, z = 100.0 * x.T
        return (x > 0) & (y > 0) & (z > 0) & (z < 2) & (((x < 3) & (y < 1)) | ((x < 1) & (y < 3)))
    sector = 2.0 * np.pi / SECTIONS  # of a prism, whose faces are closer to the axis in their middle
    turn = np.mod(np.arctan2(x[:, 1], x[:, 0]), sector) - sector / 2.0
    radius = np.hypot(x[:, 0], x[:, 1]) * np.cos(turn) / np.cos(sector / 2.0)
    return Path(PROFILE).contains_points(np.c_[radius, x[:, 2]])
