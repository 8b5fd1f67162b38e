"""Samples of faces and bars that detect thin obstacles between the nodes, on the host.

A surface sample is a point fixed in a face or bar; its displacement is the weighted mean of the displacements of the
corners. Otherwise its contacts are like the contacts of a node.
"""

import dataclasses
import itertools

import numpy as np

from warpbots.solvers.projective.components import Components

__all__ = ["THIN", "SurfaceSamples", "surface_samples_of"]

THIN = 2.0
"""Width below which a solid may be between nodes [mean edges].

A plate is wide, although it is thin: nodes are on its sides, and only its rim can be between them.
"""
_MOST = 50_000
"""Largest number of contacts of the surface samples of a component."""


@dataclasses.dataclass(frozen=True)
class SurfaceSamples:
    """Surface samples of a scene.

    Attributes:
        node: Nodes of the face or bar of a sample, -1 for none, shape (n, 3).
        weight: Weights of these nodes [1], shape (n, 3).
    """

    node: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.node)


def surface_samples_of(
    position: np.ndarray, faces: np.ndarray, bars: np.ndarray, across: np.ndarray, components: Components
) -> SurfaceSamples:
    """Samples at distances of half the narrowest solid, on components whose mean edge exceeds half its width.

    Args:
        position: Points at rest [m], shape (n_points, 3).
        faces: Corners of faces, shape (n_faces, 3).
        bars: Ends of bars, shape (n_bars, 2).
        across: Second smallest widths of the solids [m], 0 for none, shape (n_solids,).
        components: The components; the mean edge of a component decides about its samples.
    """
    parts = [SurfaceSamples(np.zeros((0, 3), dtype=int), np.zeros((0, 3)))]
    for c, edge in enumerate(components.length):
        own = [ends[components.of[ends[:, 0]] == c] for ends in (faces, bars)]
        parts.append(_samples(position, *own, across, edge))
    return SurfaceSamples(np.concatenate([p.node for p in parts]), np.concatenate([p.weight for p in parts]))


def _samples(
    position: np.ndarray, faces: np.ndarray, bars: np.ndarray, across: np.ndarray, edge: float
) -> SurfaceSamples:
    """Samples of one component with the mean edge length `edge` [m]."""
    width = across[(across > 0.0) & (across < THIN * edge)].min(initial=np.inf)
    ends = np.concatenate([*(faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])), bars])
    longest = np.linalg.norm(np.diff(position[ends], axis=1), axis=2).max(initial=0.0)
    room = _MOST / max(len(across) * (len(faces) + len(bars)), 1)
    parts = int(min(np.ceil(2.0 * longest / width), np.sqrt(2.0 * room)))
    if parts < 2:
        return SurfaceSamples(np.zeros((0, 3), dtype=int), np.zeros((0, 3)))
    steps = np.array([p for p in itertools.product(range(parts + 1), repeat=3) if sum(p) == parts and max(p) < parts])
    inner, between = steps[steps.min(axis=1) > 0], np.arange(1, parts)
    between = np.stack([between, parts - between], axis=1)
    edges = np.unique(np.sort(ends, axis=1), axis=0)
    node = np.concatenate([
        np.repeat(faces, len(inner), axis=0),
        np.append(np.repeat(edges, len(between), axis=0), np.full((len(edges) * len(between), 1), -1), axis=1),
    ])  # fmt: skip
    weight = np.concatenate([
        np.tile(inner, (len(faces), 1)), np.tile(np.append(between, 0 * between[:, :1], axis=1), (len(edges), 1))
    ])  # fmt: skip
    return SurfaceSamples(node, weight / parts)
