"""The skin of soft bodies made of particles: the surface of the shape at rest, which moves with the particles.

Where matter is torn, the skin ends and particles are drawn. Sand and fluids have no skin.
"""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.materials import FLUIDS
from warpbots.scene import CamClay, DruckerPrager, Points, Posed, Scene, Shape, Sheet, SoftBody, Truss, Union
from warpbots.solvers.matter import Matter
from warpbots.surfaces.carried_points import CarriedPoints, spacing_of
from warpbots.surfaces.clipped import surface
from warpbots.surfaces.section import clipped_triangles
from warpbots.surfaces.triangles import shaded, triangles_of

__all__ = ["Skin", "comes_apart", "loose", "outline_of", "skins_of"]

_EDGE = 1.3  # longest edge of a face [distances between particles]
_FINEST = 90  # largest number of faces along the longest edge of a body
_DEEP = 3.5  # depth beyond which particles are drawn, as a hole may show them [distances between particles]
_NEAR = 4.0  # distance from a hole up to which particles are drawn, except right below intact skin [likewise]
_RIM = 1.6  # distance from a hole up to which particles are also drawn right below intact skin [likewise]
_CELLS = 3  # samples for each distance between particles, along an outline
_MOST = 500  # largest number of samples along the longest edge of an outline
_FEWEST = 8  # smallest number of particles of a body with a skin


@dataclasses.dataclass(frozen=True, eq=False)
class Skin:
    """The surface of a soft body in 3D, or the outline of a soft body in 2D.

    Attributes:
        body: Index of the body in the scene.
        members: Indices of the particles of the body, shape (n,), int.
        faces: In 3D, vertex indices of each triangle, counter-clockwise seen from outside, shape (m, 3). In 2D, vertex
            indices of each edge, shape (m, 2); the edges of a closed line are consecutive.
        rest: Rest positions of the particles of the body [m], shape (n, dim).
        border: Rest positions of the vertices of the skin [m], shape (n_vertices, dim).
        spacing: Distance between the particles of the body [m].
        owner: Index of the particle nearest to each vertex, among all particles, shape (n_vertices,), int.
        points: The vertices of the skin, as points that move with the particles.
        tears: Whether the matter can tear.
    """

    body: int
    members: np.ndarray
    faces: np.ndarray
    rest: np.ndarray
    border: np.ndarray
    spacing: float
    owner: np.ndarray
    points: CarriedPoints
    tears: bool = True

    def at(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The skin at one moment.

        Args:
            position: Positions of all particles [m], shape (n_particles, dim).

        Returns:
            Positions of the vertices [m], shape (n_vertices, dim); whether each face is intact, shape (m,), bool; and
            whether each particle of the body must be drawn because no intact skin covers it, shape (n,), bool.
        """
        from scipy.spatial import cKDTree

        vertices, torn = self.points.at(position[self.members])
        torn &= self.tears
        intact, bare = ~torn[self.faces].any(axis=1), np.zeros(len(self.members), dtype=bool)
        if torn.any():
            depth, hole = (
                cKDTree(border).query(self.rest)[0] / self.spacing
                for border in (self.border, self.border[np.unique(self.faces[~intact])])
            )
            bare = (hole < _RIM) | ((depth > 1.0) & ((hole < _NEAR) | (depth > _DEEP)))
        return vertices, intact, bare


def comes_apart(body: SoftBody) -> bool:
    """Whether the particles of a body can leave their neighbours, because it is fluid, sand or snow."""
    return body.material.law in FLUIDS or isinstance(body.material.plasticity, CamClay | DruckerPrager)


def loose(particles: Matter, cut: Shape | None = None) -> np.ndarray:
    """Whether each particle itself is drawn, shape (n_particles,), bool.

    A particle is drawn if it is not a node of a mesh and is outside `cut` at rest.
    """
    alone = np.ones(len(particles.position), dtype=bool)
    if cut is not None:
        alone = signed_distance(cut, particles.position) > 0.0
    for mesh in particles.surfaces:
        alone[mesh.nodes] = False
    return alone


def skins_of(scene: Scene, particles: Matter, cut: Shape | None = None) -> tuple[Skin, ...]:
    """The skins of all bodies of `scene` that have a skin.

    Trusses, sheets, points, and bodies whose particles can leave their neighbours have no skin. In 3D, bodies whose
    particles are nodes of a mesh do not have a skin either.

    Args:
        scene: The scene with the bodies.
        particles: All soft matter at rest, in the form that is drawn.
        cut: A 3D shape. The skins are those of the matter outside this shape at rest; the sections are closed. None for
            whole bodies.
    """
    from scipy.spatial import cKDTree

    alone, found = loose(particles) if scene.dim == 3 else np.ones(len(particles.position), dtype=bool), []
    for k, body in enumerate(scene.bodies):
        members = np.flatnonzero(alone & (particles.body == k))
        if len(members) < _FEWEST or not _is_solid(body.shape) or comes_apart(body):
            continue
        x, spacing = particles.position[members], spacing_of(particles.volume[members], scene.dim)
        vertices, faces = (_mesh if scene.dim == 3 else outline_of)(body.shape, spacing)
        if cut is not None:
            vertices, faces = _opened(body.shape, vertices, faces, cut, spacing)
        if len(faces):
            owner = members[cKDTree(x).query(vertices)[1]]
            points = CarriedPoints(x, vertices, spacing)
            found.append(Skin(k, members, faces, x, vertices, spacing, owner, points, not particles.holds))
    return tuple(found)


def _is_solid(shape: Shape) -> bool:
    if isinstance(shape, Union):
        return all(map(_is_solid, shape.shapes))
    return _is_solid(shape.shape) if isinstance(shape, Posed) else not isinstance(shape, Truss | Sheet | Points)


def _mesh(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """The surface of a 3D shape, with triangles small enough to follow the motion of particles `spacing` apart."""
    import trimesh

    edge = max(_EDGE * spacing, float(np.subtract(*shape.bounds[::-1]).max()) / _FINEST)
    mesh = shaded(*trimesh.remesh.subdivide_to_size(*triangles_of(shape), edge, max_iter=20))
    return np.array(mesh.vertices), np.array(mesh.faces)


def _opened(
    shape: Shape, vertices: np.ndarray, faces: np.ndarray, cut: Shape, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """The surface of the part of a 3D shape that is outside of a cut, including the section.

    Args:
        shape: The shape.
        vertices: Vertices of its surface [m], shape (n, 3).
        faces: Faces of its surface, shape (m, 3).
        cut: The shape that is cut out.
        spacing: Distance between the particles that the section follows [m].
    """
    import trimesh

    outer = clipped_triangles(vertices, faces, lambda x: signed_distance(cut, x))
    lower, upper = (bound + side * spacing for bound, side in zip(shape.bounds, (-1.0, 1.0), strict=True))
    bounded = np.isfinite(cut.bounds).all()
    x, triangles = triangles_of(cut) if bounded else surface(cut, lower, upper)
    near = ((x[triangles].max(axis=1) > lower) & (x[triangles].min(axis=1) < upper)).all(axis=1)
    x, triangles = trimesh.remesh.subdivide_to_size(x, triangles[near][:, ::-1], _EDGE * spacing, max_iter=20)
    inner = clipped_triangles(x, triangles, lambda x: -signed_distance(shape, x))
    border = outer.at(vertices), inner.at(x)
    return np.concatenate(border), np.concatenate([outer.faces, len(border[0]) + inner.faces])


def outline_of(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """The border of a 2D shape as closed lines.

    Args:
        shape: Any bounded 2D shape of `warpbots.scene`.
        spacing: Distance between the particles that the lines follow [m].

    Returns:
        Points [m], shape (n, 2), and the two points of each edge, shape (m, 2); the edges of a line are consecutive.
    """
    from contourpy import contour_generator

    lower, upper = shape.bounds
    cell = max(spacing / _CELLS, float((upper - lower).max()) / _MOST)
    x, y = (np.arange(a - 1.5 * cell, b + 2.5 * cell, cell) for a, b in zip(lower, upper, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    distance = signed_distance(shape, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    lines = [line[:-1] for line in contour_generator(x, y, distance).lines(0.0)]  # the last point is the first one
    first = np.cumsum([0, *map(len, lines)])
    number = [a + np.arange(len(line)) for a, line in zip(first, lines, strict=False)]
    none = np.zeros((0, 2))
    edges = [np.stack([k, np.roll(k, -1)], axis=1) for k in number]
    return np.concatenate([none, *lines]), np.concatenate([none.astype(int), *edges])
