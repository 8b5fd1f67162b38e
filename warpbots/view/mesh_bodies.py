"""The triangles that pictures show of soft bodies: the surface through the nodes of a mesh, or a skin."""

import functools
from collections.abc import Sequence

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Scene, Shape, sheets_of
from warpbots.solvers.matter import Matter
from warpbots.surfaces.clipped import both_sides
from warpbots.surfaces.section import MovingTriangles, clipped_triangles, section_of_tetrahedra
from warpbots.surfaces.skin import Skin
from warpbots.surfaces.triangles import vertex_normals
from warpbots.view.rigid_bodies import Facets

__all__ = ["node_facets", "opened_meshes", "seen_twice", "skin_facets"]


def seen_twice(scene: Scene, mesh: object) -> bool:
    """Whether a mesh is a sheet, which is visible from both sides."""
    return bool(sheets_of(scene.bodies[mesh.body].shape))


def opened_meshes(scene: Scene, particles: Matter, cut: Shape) -> list[MovingTriangles]:
    """The surfaces of the parts of all meshes that are outside of `cut` at rest, and the sections that close them."""
    parts = []
    for mesh in particles.surfaces:
        faces = both_sides(mesh.faces) if seen_twice(scene, mesh) else mesh.faces
        first, tets = mesh.nodes.start, particles.tetrahedra
        tets = tets[(tets[:, 0] >= first) & (tets[:, 0] < mesh.nodes.stop)]
        outside = functools.partial(signed_distance, cut)
        parts.append(clipped_triangles(particles.position, first + faces, outside))
        parts.append(section_of_tetrahedra(particles.position, tets, outside))
    return parts


def node_facets(
    scene: Scene, particles: Matter, position: np.ndarray, color: np.ndarray,
    opened: Sequence[MovingTriangles] | None = None,
) -> Facets:  # fmt: skip
    """The surfaces of all meshes at one moment, as flat faces.

    Args:
        scene: The scene with the bodies.
        particles: All soft matter.
        position: Positions of the particles [m], shape (n_particles, 3).
        color: Red, green and blue of the particles in [0, 1], shape (n_particles, 3); a face gets the mean colour of
            its nodes.
        opened: Result of `opened_meshes`, to be drawn instead of the whole surfaces.
    """
    if opened is not None:
        return Facets.joined([_flat(part.at(position), part.faces, part.at(color)) for part in opened])
    parts = []
    for mesh in particles.surfaces:
        faces = both_sides(mesh.faces) if seen_twice(scene, mesh) else mesh.faces
        parts.append(_flat(position[mesh.nodes], faces, color[mesh.nodes]))
    return Facets.joined(parts)


def _flat(position: np.ndarray, faces: np.ndarray, color: np.ndarray) -> Facets:
    corner = position[faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return Facets(corner, np.repeat(normal[:, None], 3, axis=1), color[faces].mean(axis=1))


def skin_facets(skin: Skin, vertices: np.ndarray, intact: np.ndarray, color: np.ndarray) -> Facets:
    """The intact faces of a skin, with colours and with normals that are smooth except at creases.

    Args:
        skin: The skin of a body.
        vertices: Positions of the vertices, from `Skin.at`.
        intact: Whether each face is intact, from `Skin.at`.
        color: Red, green and blue of all particles in [0, 1], shape (n_particles, 3).
    """
    faces = skin.faces[intact]
    normal = vertex_normals(vertices, faces)
    return Facets(vertices[faces], normal[faces], color[skin.owner[faces]].mean(axis=1))
