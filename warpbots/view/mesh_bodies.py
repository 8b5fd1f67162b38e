"""Draws bodies whose particles are nodes of a mesh, as the surface through the nodes."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Scene, Shape, sheets_of
from warpbots.solvers.matter import Matter
from warpbots.view.obstacle_mesh import both_sides
from warpbots.view.rigid_bodies import Facets

__all__ = ["loose", "node_facets", "seen_twice"]


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
