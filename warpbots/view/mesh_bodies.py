"""The triangles that pictures show of soft bodies: the surface through the nodes of a mesh, or a skin."""

import numpy as np

from warpbots.scene import Scene, sheets_of
from warpbots.solvers.matter import Matter
from warpbots.surfaces.clipped import both_sides
from warpbots.surfaces.skin import Skin
from warpbots.surfaces.triangles import vertex_normals
from warpbots.view.rigid_bodies import Facets

__all__ = ["node_facets", "seen_twice", "skin_facets"]


def seen_twice(scene: Scene, mesh: object) -> bool:
    """Whether a mesh is a sheet, which is visible from both sides."""
    return bool(sheets_of(scene.bodies[mesh.body].shape))


def node_facets(scene: Scene, particles: Matter, position: np.ndarray, color: np.ndarray) -> Facets:
    """The surfaces of all meshes at one moment, as flat faces.

    Args:
        scene: The scene with the bodies.
        particles: All soft matter.
        position: Positions of the particles [m], shape (n_particles, 3).
        color: Red, green and blue of the particles in [0, 1], shape (n_particles, 3); a face gets the mean colour of
            its nodes.
    """
    parts = []
    for mesh in particles.surfaces:
        faces = both_sides(mesh.faces) if seen_twice(scene, mesh) else mesh.faces
        corner = position[mesh.nodes][faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        parts.append(Facets(corner, np.repeat(normal[:, None], 3, axis=1), color[mesh.nodes][faces].mean(axis=1)))
    return Facets.joined(parts)


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
