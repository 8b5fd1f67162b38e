"""Represents a scene in notebooks: as a table, with a picture of the scene at rest below the table."""

import dataclasses

import numpy as np

from warpbots.contact import cells_across
from warpbots.meshing.fitted import fitted_surface
from warpbots.scene import Box, Points, Posed, Scene, SceneError, Shape, Sheet, Union
from warpbots.solvers.matter import Matter, together
from warpbots.solvers.mpm.particles import fill
from warpbots.surfaces.clipped import box_corners
from warpbots.tables import Table
from warpbots.view.camera import Camera
from warpbots.view.color_reduction import png_of
from warpbots.view.film import figure_of, image_of
from warpbots.view.picture import draw

__all__ = ["table_with_picture"]

_WIDTH, _ALONG, _CELLS = 640, 60, 4000
"""Width of the picture [pixels]; triangle edges along the longest side of a 3D scene; number of cells in 2D."""


def table_with_picture(scene: Scene, table: Table, matter: Matter | None = None) -> dict:
    """Representations of a table with a picture for a notebook: MIME type -> data.

    Args:
        scene: The scene, which is shown at rest.
        table: The table about the scene.
        matter: The soft bodies as a solver represents them; None to draw the shapes of the bodies.
    """
    bundle = table.mimebundle()
    try:
        if matter is None and scene.soft:
            matter = _skin(scene) if scene.dim == 3 else fill(_plain(scene), _cell(scene), 2)
        picture = _picture(scene, matter)
    except (SceneError, ImportError):  # a shape that cannot be drawn, or no matplotlib: the table says enough
        return bundle
    bundle["image/png"] = picture
    bundle["text/html"] += f'<img alt="{scene.dim}D scene at rest" src="data:image/png;base64,{picture}">'
    return bundle


def _picture(scene: Scene, matter: Matter | None) -> str:
    """The picture of the scene at rest, a PNG in base64."""
    camera = Camera.around(scene, box_corners(*scene.bounds))
    figure, places = figure_of(camera, _WIDTH)
    draw(scene, matter, ax=figure.add_axes(places[0]), camera=camera)
    return png_of(image_of(figure))


def _plain(scene: Scene) -> Scene:
    """The scene with soft bodies only, and without regions, because a region without a particle would be an error."""
    bodies = [dataclasses.replace(b, regions=None, region_materials=None) for b in scene.soft]
    return Scene(bodies, gravity=scene.gravity)


def _cell(scene: Scene) -> float:
    return cells_across([body.shape for body in scene.soft], 8.0, _CELLS)


@dataclasses.dataclass(frozen=True)
class _BodySurface:
    """The surface of a body; it has the fields of `warpbots.solvers.matter.Surface`."""

    body: int
    nodes: slice
    faces: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Skin(Matter):
    """Matter that consists of the vertices of surfaces, and of the points of bodies that are given as points."""

    parts: tuple[_BodySurface, ...]

    @property
    def surfaces(self) -> tuple[_BodySurface, ...]:
        """Surfaces of all bodies except those that are given as points."""
        return self.parts


def _skin(scene: Scene) -> _Skin:
    """The surfaces of all soft bodies of a 3D scene."""
    lower, upper = scene.bounds
    edge, parts, fields, first = float((upper - lower).max()) / _ALONG, [], [], 0
    for body in scene.soft:
        x, faces = _surface(body.shape, edge)
        number = [b.name for b in scene.bodies].index(body.name)
        if len(faces):
            parts.append(_BodySurface(number, slice(first, first + len(x)), faces))
        volume = body.shape.volumes if isinstance(body.shape, Points) else np.zeros(len(x))
        density = np.full(len(x), body.material.density)
        fields.append({"position": x, "velocity": np.zeros_like(x), "volume": volume, "density": density,
                       "body": np.full(len(x), number), "regions": {}})  # fmt: skip
        first += len(x)
    return _Skin(**together(scene, fields), parts=tuple(parts))


def _surface(shape: Shape, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m] and faces of a shape; points have no faces.

    Parts of a union keep all their faces, including the faces inside another part.

    Args:
        shape: The shape.
        edge: Approximate length of the edges of the triangles [m].
    """
    if isinstance(shape, Points):
        return shape.positions, np.zeros((0, 3), dtype=int)
    if isinstance(shape, Sheet):
        return shape.vertices, shape.faces
    if isinstance(shape, Posed):
        x, faces = _surface(shape.shape, edge)
        return x @ np.array(shape.rotation).T + np.array(shape.translation), faces
    if isinstance(shape, Union):
        pieces = [_surface(part, edge) for part in shape.shapes]
        first = np.cumsum([0] + [len(x) for x, _ in pieces])
        faces = [faces + n for (_, faces), n in zip(pieces, first, strict=False)]
        return np.concatenate([x for x, _ in pieces]), np.concatenate(faces)
    flat = isinstance(shape, Box)  # the corners are enough
    return fitted_surface(shape, np.ptp(shape.bounds, axis=0).max() if flat else edge)
