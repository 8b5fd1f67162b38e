"""One mesh of all bodies of a scene, with attachments, cables, motors, cavities and wetted faces."""

import itertools

import numpy as np

from warpbots.scene import Box, Material, Scene, SceneError, SoftBody
from warpbots.solvers.law_constants import law_constants_at
from warpbots.solvers.matter import elasticity_of, materials_at, refuse_empty, refuse_lost, regions_at, together
from warpbots.solvers.projective.bones.binding import bones_at, bones_inside
from warpbots.solvers.projective.elements.attachments import attached
from warpbots.solvers.projective.elements.cables import strung
from warpbots.solvers.projective.elements.cavity_surface import cavities_of
from warpbots.solvers.projective.elements.driven_solids import driven
from warpbots.solvers.projective.elements.fluid_drag import wetted
from warpbots.solvers.projective.elements.motors import motorised
from warpbots.solvers.projective.elements.reference_elements import SOLIDS, TETRAHEDRON, ReferenceElement
from warpbots.solvers.projective.mesh import MATERIAL, BodySurface, Mesh
from warpbots.solvers.projective.pieces import MeshPiece, hollow, no_piece, piece_of, with_tetrahedra, without_sheets

__all__ = ["assemble", "edges_of", "mean_length"]

_NOBODY = SoftBody("", Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), Material(1.0))
"""Stands for the soft bodies of a scene without any: a body without nodes and elements."""


def assemble(scene: Scene, cell_size: float, solid: ReferenceElement = TETRAHEDRON) -> Mesh:
    """Mesh every body of `scene`.

    Args:
        scene: The scene.
        cell_size: Edge length for shapes that are not meshes yet [m].
        solid: The kind of elements of solids.

    Raises:
        SceneError: A body cannot be meshed, or a region contains no node.
    """
    whole = [piece_of(body.shape, cell_size, solid) for body in scene.soft]
    for body, piece in zip(scene.soft, whole, strict=True):
        if len(getattr(piece, solid.name)):  # sheets and bars fill their volume by definition
            filled, remedy = piece.volume(solid.name).sum(), "use a smaller ProjectiveDynamics(cell_size=...)"
            refuse_lost(body, filled, solid.title, remedy, without_sheets(body.shape))
    inside = bones_inside(scene, [p.position for p in whole], cell_size)

    def bound(parts: list[MeshPiece]) -> list[np.ndarray]:
        return [bones_at(scene.rigid, k, p.position, 1e-6 * cell_size) for k, p in zip(inside, parts, strict=True)]

    pieces = [hollow(p, bones) for p, bones in zip(whole, bound(whole), strict=True)]
    bones = np.concatenate([np.zeros(0, dtype=int), *bound(pieces)])
    pieces = pieces or [no_piece()]
    first = np.cumsum([0] + [len(p.position) for p in pieces])
    numbers = [i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)] or [-1]
    bodies = list(zip(numbers, zip(scene.soft or (_NOBODY,), pieces, strict=True), strict=True))
    elements = [
        {k: _elements(b, i, p, k, cell_size) for k in MATERIAL if len(getattr(p, k)) or b is _NOBODY}
        for i, (b, p) in bodies
    ]
    for (_, (body, _)), found in zip(bodies, elements, strict=True):
        if not found:
            raise SceneError(f"SoftBody {body.name!r}: bones replace all of its {solid.title}; make the bones smaller")
    nodes = together(scene, [_nodes(b, i, p, e, cell_size) for (i, (b, p)), e in zip(bodies, elements, strict=True)])
    parts = [e[k] for k in MATERIAL for e in elements if k in e]
    constants = law_constants_at(scene, [m for part in parts for m in part.pop("material")])
    matter = together(scene, parts)
    del matter["position"]
    matter = {"element_" + n if n in nodes else n: v for n, v in matter.items()}
    own = {n: np.concatenate([getattr(p, n) for p in pieces]) for n in ("thickness", "bending", "section")}
    own["plate"] = np.concatenate([_plates(p, e.get("triangles")) for p, e in zip(pieces, elements, strict=True)])
    own["bone"] = bones
    own["bending"] = np.where(np.isnan(own["bending"]), own["plate"], own["bending"])
    tables = {
        k: np.concatenate([getattr(p, k) + n for p, n in zip(pieces, first, strict=False)])
        for k in (*MATERIAL, "hinges")
    }
    thin = tables["triangles"], tables["bars"]
    meshes = tuple(
        BodySurface(i, slice(first[n], first[n + 1]), p.faces)
        for n, (i, (b, p)) in enumerate(bodies)
        if b is not _NOBODY
    )
    edges = edges_of([*(p.cut + n for p, n in zip(pieces, first, strict=False)), *thin])
    edge = mean_length(nodes["position"], edges) if len(edges) else cell_size
    own |= driven(scene, tables[solid.name], matter["element_regions"])
    own |= strung(scene, nodes["position"], cell_size)
    of_body = {
        b.name: tuple(t + n for t in (p.cut, p.faces, p.bars))
        for (b, p), n in zip((pair for _, pair in bodies), first, strict=False)
    }

    def stiffness(*names: str) -> float:
        both = [i for i, b in enumerate(scene.bodies) if b.name in names]
        near = mean_length(nodes["position"], edges[np.isin(nodes["body"][edges[:, 0]], both)])
        return near * matter["youngs_modulus"][np.isin(matter["element_body"], both)].max()

    own |= attached(scene, nodes["position"], of_body, stiffness, cell_size)
    own |= motorised(scene, nodes["position"], nodes["density"] * nodes["volume"], nodes["regions"], own)
    faces = np.concatenate([np.zeros((0, 3), dtype=int), *(part.faces + part.nodes.start for part in meshes)])
    own |= cavities_of(scene, nodes["position"], faces, tables["triangles"], nodes["regions"])
    own |= wetted(scene, faces, tables["triangles"], own["cavities"])
    shapes = tuple(with_tetrahedra(body.shape, cell_size) for body in scene.soft)
    return Mesh(
        **nodes,
        **matter,
        **tables,
        **own,
        law_constants=constants,
        shapes=shapes,
        meshes=meshes,
        edges=edges,
        edge=edge,
    )


def _elements(body: SoftBody, index: int, piece: MeshPiece, kind: str, cell_size: float) -> dict:
    """Fields of `Mesh` for the elements of one kind in a body."""
    table = getattr(piece, kind)
    center = piece.position[table].mean(axis=1)
    inside = regions_at(body, center, slack=1e-6 * cell_size)
    materials = materials_at(body, inside, len(table))
    return {
        "position": center,
        "material": materials,
        **elasticity_of(materials),
        "volume": piece.volume(kind),
        "body": np.full(len(table), index),
        "regions": inside,
    }


def _nodes(body: SoftBody, index: int, piece: MeshPiece, elements: dict[str, dict], cell_size: float) -> dict:
    """Fields of `Mesh` for the nodes of a body."""
    x = piece.position
    regions = regions_at(body, x, slack=1e-6 * cell_size)
    refuse_empty(body, regions, "nodes", "use a smaller ProjectiveDynamics(cell_size=...)")
    volume, mass = np.zeros(len(x)), np.zeros(len(x))
    for kind, e in elements.items():
        corners = getattr(piece, kind)
        shares = SOLIDS[kind].shares if kind in SOLIDS else 1.0 / corners.shape[1]
        for total, part in ((volume, e["volume"]), (mass, e["density"] * e["volume"])):
            np.add.at(total, corners, np.broadcast_to(part[:, None] * shares, corners.shape))
    return {
        "position": x,
        "velocity": np.tile(np.array(body.velocity or (0.0,) * 3), (len(x), 1)),
        "volume": volume,
        "density": np.divide(mass, volume, out=np.zeros(len(x)), where=volume > 0.0),
        "body": np.full(len(x), index),
        "regions": regions,
    }


def _plates(piece: MeshPiece, triangles: dict | None) -> np.ndarray:
    """Flexural rigidity E t^3 / (12 (1 - nu^2)) of hinges, the mean of both triangles [N m], shape (n_hinges,)."""
    if triangles is None:
        return np.zeros(0)
    plate = triangles["youngs_modulus"] * piece.thickness**3 / (12.0 * (1.0 - triangles["poissons_ratio"] ** 2))
    return plate[piece.sides].mean(axis=1)


def edges_of(tables: list[np.ndarray]) -> np.ndarray:
    """Ends of all edges of elements, each edge once, shape (n, 2).

    Args:
        tables: Nodes of elements of several kinds, each of shape (n_elements, n_corners).
    """
    ends = [np.sort(t[:, p], axis=-1) for t in tables for p in itertools.combinations(range(t.shape[1]), 2)]
    return np.unique(np.concatenate(ends), axis=0)


def mean_length(x: np.ndarray, edges: np.ndarray) -> float:
    """Mean length of edges between nodes at x [m]."""
    return float(np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1).mean())
