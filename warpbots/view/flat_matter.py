"""Draws soft matter in 2D: areas inside the outlines of the bodies, and discs that deform with loose matter."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.scene import Scene, SoftBody
from warpbots.solvers.matter import Matter
from warpbots.surfaces.skin import Skin, comes_apart
from warpbots.view.deformation import DeformationGradients
from warpbots.view.palette import INK
from warpbots.view.upright_view import filling

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["OUTLINE", "FlatMatter", "outline_color"]

_MOST = 30_000  # largest number of particles that are drawn
_RIM = 0.0035  # width of an outline relative to the width of the window
_LINE = 1.6  # width of an outline in points, half of it outside the body
OUTLINE = 0.62
"""Brightness of an outline relative to its body."""


def outline_color(scene: Scene, body: int, shows_values: bool) -> tuple[float, ...]:
    """Red, green and blue of an outline in [0, 1].

    Args:
        scene: The scene with the bodies.
        body: Index of the body.
        shows_values: Whether the colours of the body show values, beside which a shade of its own would be misread.
    """
    return INK if shows_values else tuple(OUTLINE * c for c in scene.colors[body])


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
        self._fillings = [filling(skin, scene.bodies[skin.body].shape) for skin in skins]
        apart = np.array([isinstance(b, SoftBody) and comes_apart(b) for b in scene.bodies], dtype=bool)
        self._grains = apart[np.asarray(particles.body, dtype=int)]
        self._deformation = DeformationGradients(particles, self._grains) if len(particles) else None
        self._rim = _RIM * float(np.ptp(ax.get_xlim()))
        self._drawn = np.arange(len(radius))
        if len(radius) > _MOST:
            self._drawn = np.random.default_rng(0).choice(len(radius), _MOST, replace=False)
            self._radius = radius * np.sqrt(len(radius) / _MOST)

    def show(self, position: np.ndarray, colors: np.ndarray, shows_values: bool) -> "list[Artist]":
        """Draw one moment.

        Bodies with an outline are areas, whose colours are interpolated between the particles. Where they are torn, and
        in bodies without an outline, particles are discs; larger and darker discs behind them make a dark line around
        the body visible. Sand and fluids are discs without such a line.

        Args:
            position: Positions of the particles [m], shape (n_particles, 2).
            colors: Red, green and blue of the particles in [0, 1], shape (n_particles, 3).
            shows_values: Whether these colours show values.

        Returns:
            The matplotlib artists that were drawn.
        """
        if self._deformation is None:
            return []
        loose, made = np.ones(len(position), dtype=bool), []
        for skin, faces in zip(self._skins, self._fillings, strict=True):
            vertices, intact, bare = skin.at(position)
            torn = np.unique(skin.faces[~intact])
            apart = np.append(np.zeros(len(vertices), dtype=bool), bare)[faces].all(axis=1)
            whole = faces[~(apart | np.isin(faces, torn).any(axis=1))]
            loose[skin.members] = bare
            color = outline_color(self._scene, skin.body, shows_values)
            made.append(self._outline(vertices[skin.faces[intact]], color))
            x = np.concatenate([vertices, position[skin.members]])
            made.append(self._area(x, colors[np.append(skin.owner, skin.members)], whole))
        if not loose.any():
            return made
        ellipses = self._deformation.of(position)
        rims = np.broadcast_to(INK, colors.shape) if shows_values else OUTLINE * colors
        for some, grow, color, order in (
            (loose & ~self._grains, self._rim, rims, 2),
            (loose, 0.0, colors, 3),
        ):
            if some.any():
                made.append(self._discs(position, color, ellipses, np.flatnonzero(some), grow, order))
        return made

    def _outline(self, edges: np.ndarray, color: tuple[float, ...]) -> "Artist":
        """Draw edges, whose ends have shape (n, 2, 2) [m]."""
        from matplotlib.collections import LineCollection

        lines = LineCollection(edges, colors=[color], linewidths=_LINE, capstyle="round", snap=False, zorder=2)
        return self._ax.add_collection(lines, autolim=False)

    def _area(self, x: np.ndarray, colors: np.ndarray, faces: np.ndarray) -> "Artist":
        """Draw triangles, with colours interpolated between their corners `x` [m]."""
        from matplotlib.collections import TriMesh
        from matplotlib.tri import Triangulation

        area = TriMesh(Triangulation(*x.T, triangles=faces), facecolors=colors, zorder=3)
        return self._ax.add_collection(area, autolim=False)

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
