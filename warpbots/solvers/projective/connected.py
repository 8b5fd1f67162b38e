"""Finds the components of a scene."""

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from warpbots.actuation_laws import without_energy
from warpbots.scene import Scene
from warpbots.solvers.projective.assemble import edges_of, mean_length
from warpbots.solvers.projective.bones.torn_bodies import skeletons_of
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.contact.bone_surface import BoneSurfaces
from warpbots.solvers.projective.elements.element import pairs
from warpbots.solvers.projective.elements.kinds import kinds_of
from warpbots.solvers.projective.mesh import Mesh

__all__ = ["components_of"]


def components_of(scene: Scene, mesh: Mesh, surfaces: BoneSurfaces) -> Components:
    """Find the components of a scene; bones that joints connect are in one component.

    Args:
        scene: The scene.
        mesh: Its soft bodies.
        surfaces: Surfaces of the bones of the scene.
    """
    bone = np.append(mesh.bone, surfaces.bone)
    points, bound = len(bone), np.flatnonzero(bone >= 0)
    skeleton = skeletons_of(scene) if scene.rigid else np.zeros(0, dtype=int)
    of_bound = skeleton[bone[bound]]  # bones follow the points: a bone without bound nodes is in a component, too
    trees = [np.append(bound[of_bound == k], points + np.flatnonzero(skeleton == k)) for k in np.unique(skeleton)]
    count, label = _connected(mesh, points + len(skeleton), trees)
    label, bones = np.split(label.astype(int), [points])
    unsymmetric = np.zeros(count, dtype=bool)
    unsymmetric[bones] = True
    for actuator in without_energy(scene):
        driven = mesh.element_regions[actuator.region][mesh.of(mesh.solid.name)]
        unsymmetric[label[mesh.solids[driven].reshape(-1)]] = True
    thin = np.zeros(count, dtype=bool)
    thin[label[mesh.triangles.reshape(-1)]] = True
    return Components(
        of=label, bones=bones, length=_lengths(mesh, surfaces, label, count),
        symmetric=~unsymmetric & (mesh.faces.size == 0), thin=thin,
    )  # fmt: skip


def _connected(mesh: Mesh, points: int, trees: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """Number of components, and the component of each point and bone; `trees` has the points and bones of each tree."""
    walls = [mesh.cavities[mesh.cavity == k] for k in np.unique(mesh.cavity)]
    motor, axis = mesh.motor_side // 2, mesh.motor_weight != 0.0
    driven = [np.append(mesh.motors[motor == k].reshape(-1), mesh.motor_end[k][axis[k]]) for k in range(len(axis))]
    tables = [getattr(mesh, kind.name) for kind in kinds_of(mesh.solid)]
    rows, columns = (list(k) for k in zip(*(pairs(t) for t in tables), strict=True))
    for group in (g.reshape(-1) for g in (*trees, *walls, *driven) if g.size):
        rows.append(np.full(len(group), group[0]))
        columns.append(group)
    pair = np.concatenate(rows), np.concatenate(columns)
    return connected_components(coo_matrix((np.ones(len(pair[0])), pair), shape=(points, points)))


def _lengths(mesh: Mesh, surfaces: BoneSurfaces, label: np.ndarray, count: int) -> np.ndarray:
    """Mean edge length of each component [m], shape (count,): of its elements, else of the surfaces of its bones."""
    length = np.zeros(count)
    x, bare = np.concatenate([mesh.position, surfaces.position]), surfaces.faces + len(mesh)
    for edges in (edges_of([bare]), mesh.edges):
        of = label[edges[:, 0]]
        order = np.argsort(of, kind="stable")
        own = np.split(edges[order], np.searchsorted(of[order], np.arange(1, count)))
        length = np.array([mean_length(x, e) if len(e) else a for e, a in zip(own, length, strict=True)])
    return np.where(length > 0.0, length, mesh.edge)
