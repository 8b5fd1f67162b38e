"""Soft bodies as nodes and tetrahedra, on the host."""

import dataclasses

import numpy as np

from warpbots.meshing import tetrahedra
from warpbots.scene import Scene, SoftBody
from warpbots.solvers.matter import Matter, materials_at, refuse_empty, regions_at, together

__all__ = ["Mesh", "Part", "assemble"]


@dataclasses.dataclass(frozen=True)
class Part:
    """The surface of a body.

    Attributes:
        body: Index of the body in the scene.
        nodes: Its nodes among all.
        faces: Nodes of its surface, counted from the first of the body, counter-clockwise from outside, shape (n, 3).
    """

    body: int
    nodes: slice
    faces: np.ndarray


@dataclasses.dataclass(frozen=True)
class Mesh(Matter):
    """All soft matter of a scene; the points of `Matter` are its nodes, whose volume and density are of their share.

    Attributes:
        tets: Nodes of the tetrahedra, shape (n_tets, 4).
        youngs_modulus: Young's modulus of the elements [Pa], shape (n_elements,).
        poissons_ratio: Poisson's ratio of the elements [1], shape (n_elements,).
        element_density: Density of the elements [kg/m^3], shape (n_elements,).
        element_volume: Volume of the elements at rest [m^3], shape (n_elements,).
        element_body: Index of the body of each element in the scene, shape (n_elements,).
        element_regions: For every region which elements have their centre in it, each of shape (n_elements,), bool.
        meshes: Surfaces of the bodies.
        edge: Mean length of the edges of tetrahedra [m].
    """

    tets: np.ndarray
    youngs_modulus: np.ndarray
    poissons_ratio: np.ndarray
    element_density: np.ndarray
    element_volume: np.ndarray
    element_body: np.ndarray
    element_regions: dict[str, np.ndarray]
    meshes: tuple[Part, ...]
    edge: float


def assemble(scene: Scene, cell_size: float) -> Mesh:
    """Mesh every body of `scene`.

    Args:
        scene: What to mesh.
        cell_size: Length of the edges of shapes that are no meshes yet [m].

    Raises:
        SceneError: A body cannot be meshed, or a region contains no node.
    """
    parts = [_mesh_body(b, i, cell_size) for i, b in enumerate(scene.bodies)]
    first = np.cumsum([0] + [len(p["position"]) for p, _ in parts])
    elements = together(scene, [e | {"position": e["element_volume"]} for _, e in parts])
    elements["element_regions"] = elements.pop("regions")
    tets = [e["tets"] + n for (_, e), n in zip(parts, first, strict=False)]
    elements |= {"tets": np.concatenate(tets)}
    surfaces = [p.pop("faces") for p, _ in parts]
    meshes = tuple(Part(i, slice(first[i], first[i + 1]), f) for i, f in enumerate(surfaces))
    nodes = together(scene, [p for p, _ in parts])
    del elements["position"]
    return Mesh(**nodes, **elements, meshes=meshes, edge=_mean_edge(nodes["position"], elements["tets"]))


def _mesh_body(body: SoftBody, index: int, cell_size: float) -> tuple[dict, dict]:
    """Fields of the nodes and of the elements of a body."""
    mesh = tetrahedra(body.shape, cell_size)
    x, tets, volume = mesh.vertices, mesh.tets, mesh.volumes
    regions = regions_at(body, x, slack=1e-6 * cell_size)
    refuse_empty(body, regions, "nodes", "use a smaller ProjectiveDynamics(cell_size=...)")
    inside = regions_at(body, x[tets].mean(axis=1))
    materials = materials_at(body, inside, len(tets))
    density = np.array([m.density for m in materials])
    share = np.bincount(tets.reshape(-1), np.repeat(volume / 4.0, 4), len(x))
    mass = np.bincount(tets.reshape(-1), np.repeat(density * volume / 4.0, 4), len(x))
    nodes = {
        "position": x,
        "velocity": np.tile(np.array(body.velocity or (0.0,) * 3), (len(x), 1)),
        "volume": share,
        "density": mass / share,
        "body": np.full(len(x), index),
        "regions": regions,
        "faces": mesh.surface,
    }
    elements = {
        "tets": tets,
        "youngs_modulus": np.array([m.youngs_modulus for m in materials]),
        "poissons_ratio": np.array([m.poissons_ratio for m in materials]),
        "element_density": density,
        "element_volume": volume,
        "element_body": np.full(len(tets), index),
        "regions": inside,
    }
    return nodes, elements


def _mean_edge(x: np.ndarray, tets: np.ndarray) -> float:
    a, b = np.triu_indices(4, k=1)
    edges = np.unique(np.sort(np.stack([tets[:, a], tets[:, b]], axis=-1).reshape(-1, 2), axis=1), axis=0)
    return float(np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1).mean())
