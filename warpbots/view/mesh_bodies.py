"""The triangles that pictures show of soft bodies: the surface through the nodes of a mesh, or a skin."""

import functools
from collections.abc import Sequence

import numpy as np
from scipy.sparse import identity

from warpbots.contact import signed_distance
from warpbots.scene import Scene, Shape, sheets_of
from warpbots.solvers.matter import Matter, Surface
from warpbots.surfaces.clipped import both_sides
from warpbots.surfaces.section import MovingTriangles, clipped_triangles, section_of_tetrahedra
from warpbots.surfaces.skin import Skin
from warpbots.surfaces.triangles import creased
from warpbots.view.rigid_bodies import Facets

__all__ = ["creased_mesh", "node_facets", "node_meshes", "seen_twice", "skin_facets"]


def seen_twice(scene: Scene, mesh: object) -> bool:
    """Whether a mesh is a sheet, which is visible from both sides."""
    return bool(sheets_of(scene.bodies[mesh.body].shape))


def creased_mesh(particles: Matter, mesh: Surface) -> tuple[np.ndarray, np.ndarray]:
    """A mesh in which a node on a crease at rest is a vertex for each side of the crease.

    Args:
        particles: All soft matter at rest.
        mesh: The surface of a body.

    Returns:
        Index of the particle at each vertex, shape (n,), and vertex indices of each face, shape (m, 3).
    """
    nodes = np.arange(len(particles.position))[mesh.nodes]
    origin, faces = creased(particles.position[nodes], mesh.faces)
    return nodes[origin], faces


def node_meshes(scene: Scene, particles: Matter, cut: Shape | None = None) -> list[MovingTriangles]:
    """The surfaces of all meshes; sheets have both sides.

    Args:
        scene: The scene with the bodies.
        particles: All soft matter at rest.
        cut: The matter inside this shape at rest is left out, and sections close the bodies. None for whole bodies.
    """
    parts, rest = [], particles.position
    each = identity(len(rest), format="csr")
    for mesh in particles.surfaces:
        twice = seen_twice(scene, mesh)
        if cut is None:
            parts.append(_creased(MovingTriangles(each[mesh.nodes], mesh.faces), rest, twice))
            continue
        first, tets = mesh.nodes.start, particles.tetrahedra
        tets = tets[(tets[:, 0] >= first) & (tets[:, 0] < mesh.nodes.stop)]
        outside = functools.partial(signed_distance, cut)
        parts.append(_creased(clipped_triangles(rest, first + mesh.faces, outside), rest, twice))
        parts.append(_creased(section_of_tetrahedra(rest, tets, outside), rest, False))
    return parts


def _creased(part: MovingTriangles, rest: np.ndarray, twice: bool) -> MovingTriangles:
    """`part` with a vertex for each side of a crease at rest and, if it is seen `twice`, of the surface."""
    origin, faces = creased(part.at(rest), part.faces)
    if twice:
        origin, faces = both_sides(origin, faces)
    return MovingTriangles(part.weights[origin], faces)


def node_facets(meshes: Sequence[MovingTriangles], position: np.ndarray, color: np.ndarray) -> Facets:
    """The surfaces of all meshes at one moment, smooth except at creases.

    Args:
        meshes: Result of `node_meshes`.
        position: Positions of the particles [m], shape (n_particles, 3).
        color: Red, green and blue of the particles in [0, 1], shape (n_particles, 3).
    """
    return Facets.joined([Facets.smooth(mesh.at(position), mesh.faces, mesh.at(color)) for mesh in meshes])


def skin_facets(skin: Skin, vertices: np.ndarray, intact: np.ndarray, color: np.ndarray) -> Facets:
    """The intact faces of a skin, with colours and with normals that are smooth except at creases.

    Args:
        skin: The skin of a body.
        vertices: Positions of the vertices, from `Skin.at`.
        intact: Whether each face is intact, from `Skin.at`.
        color: Red, green and blue of all particles in [0, 1], shape (n_particles, 3).
    """
    return Facets.smooth(vertices, skin.faces[intact], color[skin.owner])
