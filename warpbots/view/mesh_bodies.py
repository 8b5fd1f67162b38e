"""Bodies whose particles are nodes of a mesh, as they are drawn: the surface through the nodes, wherever these are."""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Scene, Shape, sheets_of
from warpbots.scene.shapes import TetMesh
from warpbots.view.obstacle_mesh import both_sides
from warpbots.view.rigid_bodies import Facets

__all__ = ["loose", "meshes_of", "node_facets", "opened", "seen_twice"]


def meshes_of(particles: object) -> tuple:
    """Meshes whose nodes some of `particles` are; none of a solver that has particles alone.

    Each has `body`, the index of its body in the scene, `nodes`, a slice of the particles, and `faces`, vertex indices
    within that slice, counter-clockwise seen from outside, shape (m, 3).
    """
    return getattr(particles, "meshes", ())


def opened(particles: object, cut: Shape | None) -> object:
    """`particles` with the surfaces that their meshes have without the elements whose centre is inside `cut` at rest.

    Args:
        particles: All soft matter; meshes with tetrahedra or triangles, as `ProjectiveDynamics` has them, or none.
        cut: What is cut away of matter at rest; None for nothing.
    """
    if cut is None or not meshes_of(particles):
        return particles
    x = particles.position
    left = {n: getattr(particles, n) for n in ("tets", "triangles")}
    left = {n: table[signed_distance(cut, x[table].mean(axis=1)) > 0.0] for n, table in left.items()}

    def surface(nodes: slice) -> np.ndarray:
        tets, sheets = (t[(t[:, 0] >= nodes.start) & (t[:, 0] < nodes.stop)] for t in left.values())
        used, number = np.unique(tets, return_inverse=True)
        skin = used[TetMesh(x[used], number.reshape(tets.shape)).surface] if len(tets) else tets[:, :3]
        return np.concatenate([skin, sheets]) - nodes.start

    meshes = tuple(dataclasses.replace(m, faces=surface(m.nodes)) for m in particles.meshes)
    return dataclasses.replace(particles, meshes=meshes)


def loose(particles: object, cut: Shape | None = None) -> np.ndarray:
    """Which particles are no nodes, are outside `cut` at rest and are drawn themselves, shape (n_particles,), bool."""
    alone = np.ones(len(particles.position), dtype=bool)
    if cut is not None:
        alone = signed_distance(cut, particles.position) > 0.0
    for mesh in meshes_of(particles):
        alone[mesh.nodes] = False
    return alone


def seen_twice(scene: Scene, mesh: object) -> bool:
    """Whether a mesh is a sheet, which is seen from both sides."""
    return bool(sheets_of(scene.bodies[mesh.body].shape))


def node_facets(scene: Scene, particles: object, position: np.ndarray, color: np.ndarray) -> Facets:
    """The surfaces of all meshes at one moment, flat between their edges.

    Args:
        scene: Has the bodies.
        particles: All soft matter.
        position: Where the particles are [m], shape (n_particles, 3).
        color: Their red, green and blue in [0, 1], shape (n_particles, 3); a face has the mean of its nodes.
    """
    parts = []
    for mesh in meshes_of(particles):
        faces = both_sides(mesh.faces) if seen_twice(scene, mesh) else mesh.faces
        corner = position[mesh.nodes][faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        parts.append(Facets(corner, np.repeat(normal[:, None], 3, axis=1), color[mesh.nodes][faces].mean(axis=1)))
    return Facets.joined(parts)
