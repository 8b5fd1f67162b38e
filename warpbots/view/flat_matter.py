"""Draws soft matter in 2D: discs that deform with the matter, inside the outlines of the bodies."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.scene import Scene
from warpbots.solvers.matter import Matter
from warpbots.surfaces.skin import Skin, comes_apart
from warpbots.view.deformation import DeformationGradients

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["OUTLINE", "FlatMatter"]

_MOST = 30_000  # largest number of particles that are drawn
_RIM = 0.0035  # width of an outline relative to the width of the window
_LINE = 1.6  # width of an outline in points, half of it outside the body
OUTLINE = 0.62
"""Brightness of an outline relative to its body."""


class FlatMatter:
    """Draws all soft matter of a 2D scene on axes, one moment after another."""

    def __init__(self, ax: "Axes", scene: Scene, particles: Matter, radius: np.ndarray, skins: tuple[Skin, ...]):
        """Prepare the parts that do not move.

        Args:
            ax: Axes to draw on; their limits must not change afterwards.
            scene: The scene with the bodies.
            particles: All soft matter at rest.
            radius: Radii of the discs [m], shape (n_particles,).
            skins: Outlines of the bodies that have an outline.
        """
        self._ax, self._scene, self._radius, self._skins = ax, scene, radius, skins
        apart = np.array([comes_apart(body) for body in scene.bodies], dtype=bool)
        self._grains = apart[np.asarray(particles.body, dtype=int)]
        self._deformation = DeformationGradients(particles, self._grains) if len(particles) else None
        self._rim = _RIM * float(np.ptp(ax.get_xlim()))
        self._drawn = np.arange(len(radius))
        if len(radius) > _MOST:
            self._drawn = np.random.default_rng(0).choice(len(radius), _MOST, replace=False)
            self._radius = radius * np.sqrt(len(radius) / _MOST)

    def show(self, position: np.ndarray, colors: np.ndarray) -> "list[Artist]":
        """Draw one moment.

        For torn bodies and bodies without an outline, larger and darker discs are drawn behind the discs, so that a
        dark line is visible around the body. Sand and fluids are drawn as discs without such a line.

        Args:
            position: Positions of the particles [m], shape (n_particles, 2).
            colors: Red, green and blue of the particles in [0, 1], shape (n_particles, 3).

        Returns:
            The matplotlib artists that were drawn.
        """
        if self._deformation is None:
            return []
        ellipses = self._deformation.of(position)
        loose, made = np.ones(len(position), dtype=bool), []
        for skin in self._skins:
            vertices, intact, _ = skin.at(position)
            if intact.all():
                loose[skin.members] = False
                path, dark = _closed(vertices, skin.faces), OUTLINE * np.array(self._scene.colors[skin.body])
                made.append(self._outline(path, dark))
                made.append(self._discs(position, colors, ellipses, skin.members, 0.0, 3))
                made[-1].set_clip_path(path, self._ax.transData)
        for some, grow, color, order in (
            (loose & ~self._grains, self._rim, OUTLINE * colors, 2),
            (loose, 0.0, colors, 3),
        ):
            if some.any():
                made.append(self._discs(position, color, ellipses, np.flatnonzero(some), grow, order))
        return made

    def _outline(self, path: "Path", color: np.ndarray) -> "Artist":
        from matplotlib.patches import PathPatch

        shape = PathPatch(path, facecolor=color, edgecolor=color, linewidth=_LINE, joinstyle="round", zorder=2)
        return self._ax.add_patch(shape)

    def _discs(
        self,
        position: np.ndarray,
        colors: np.ndarray,
        ellipses: tuple[np.ndarray, np.ndarray, np.ndarray],
        some: np.ndarray,
        grow: float,
        order: int,
    ) -> "Artist":
        """Draw the particles `some` as discs that are deformed to `ellipses`, with radii enlarged by `grow` [m]."""
        from matplotlib.collections import EllipseCollection

        some = np.intersect1d(some, self._drawn)
        long, short, angle, radius = (a[some] for a in (*ellipses, self._radius))
        discs = EllipseCollection(
            2.0 * (radius * long + grow), 2.0 * (radius * short + grow), angle, units="xy", offsets=position[some],
            offset_transform=self._ax.transData, facecolors=colors[some], edgecolors="none", linewidths=0.0,
            zorder=order,
        )  # fmt: skip
        return self._ax.add_collection(discs, autolim=False)


def _closed(vertices: np.ndarray, edges: np.ndarray) -> "Path":
    """A path of closed lines; each line ends with the edge that leads back to its first vertex."""
    from matplotlib.path import Path

    ends = np.flatnonzero(edges[:, 1] < edges[:, 0]) + 1
    lines = np.split(vertices[edges[:, 0]], ends[:-1])
    return Path.make_compound_path(*(Path(np.append(line, line[:1], axis=0), closed=True) for line in lines))
