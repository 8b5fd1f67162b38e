"""Soft bodies as nodes and elements, on the host: tetrahedra of solids, triangles and hinges of sheets, bars."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from warpbots.meshing import hexahedra, repeatable, tetrahedra
from warpbots.scene import Posed, Scene, SceneError, Shape, Sheet, SoftBody, Union, bars_of, sheets_of
from warpbots.scene.shapes import TetMesh
from warpbots.solvers.matter import Matter, materials_at, refuse_empty, refuse_lost, regions_at, together
from warpbots.solvers.projective.bones.binding import bones_at
from warpbots.solvers.projective.elements.attachments import attached
from warpbots.solvers.projective.elements.cables import strung
from warpbots.solvers.projective.elements.cavity_surface import cavities_of
from warpbots.solvers.projective.elements.driven_solids import driven
from warpbots.solvers.projective.elements.fluid_drag import wetted
from warpbots.solvers.projective.elements.hinges import hinges_of
from warpbots.solvers.projective.elements.motors import motorised
from warpbots.solvers.projective.elements.quadratic_tetrahedra import with_midsides
from warpbots.solvers.projective.elements.reference_elements import (
    HEXAHEDRON,
    QUADRATIC_TETRAHEDRON,
    SOLIDS,
    TETRAHEDRON,
    ReferenceElement,
)

__all__ = ["Mesh", "Part", "assemble", "mean_edge"]

_MATERIAL = (*SOLIDS, "triangles", "bars")
"""Kinds of elements that have a material, in their order."""


@dataclasses.dataclass(frozen=True)
class Part:
    """The surface of a body.

    Attributes:
        body: Index of the body in the scene.
        nodes: Its nodes among all.
        faces: Nodes of its surface, counted from the first of the body, counter-clockwise from outside, and those of
            its sheets, shape (n, 3).
    """

    body: int
    nodes: slice
    faces: np.ndarray


@dataclasses.dataclass(frozen=True)
class Mesh(Matter):
    """All soft matter of a scene; the points of `Matter` are its nodes, whose volume and density are of their share.

    Elements are solids, all of one kind, then triangles, then bars. Hinges, fibres, cells, cables, wetted faces and
    walls of cavities have no matter.

    Attributes:
        tets: Nodes of the linear tetrahedra, shape (n_tets, 4), int.
        quadratic_tets: Nodes of the quadratic tetrahedra, corners first, shape (n_quadratic_tets, 10), int.
        hexahedra: Nodes of the hexahedra, shape (n_hexahedra, 8), int.
        triangles: Nodes of the triangles of sheets, shape (n_triangles, 3), int.
        hinges: Nodes of their inner edges: the two ends and the tips of the triangles, shape (n_hinges, 4), int.
        bars: Nodes of the bars, shape (n_bars, 2), int.
        youngs_modulus: Young's modulus of the elements [Pa], shape (n_elements,).
        poissons_ratio: Poisson's ratio of the elements [1], shape (n_elements,).
        element_density: Density of the elements [kg/m^3], shape (n_elements,).
        damping: Time of Kelvin-Voigt damping of the elements [s], shape (n_elements,).
        element_volume: Volume of the elements at rest [m^3], shape (n_elements,).
        element_body: Index of the body of each element in the scene, shape (n_elements,), int.
        element_regions: For every region which elements have their centre in it, each of shape (n_elements,), bool.
        thickness: Thickness of the triangles [m], shape (n_triangles,).
        bending: Flexural rigidity of the hinges [N m], shape (n_hinges,).
        plate: The one of a plate of their material [N m], shape (n_hinges,).
        section: Cross-section of the bars [m^2], shape (n_bars,).
        bone: Index in `Scene.rigid` of the bone that each node is bound to, -1 for none, shape (n_nodes,), int.
        fibres: Nodes of the solids of fibres, shape (n_fibres, n_nodes), int.
        fibre_direction: Directions of the fibres at rest [1], shape (n_fibres, 3).
        fibre_contraction: Part of its length that a fibre loses at u = 1 [1], shape (n_fibres,).
        fibre_stiffness: Stiffness of the fibres [Pa], shape (n_fibres,).
        fibre_channel: Control channels of the fibres, shape (n_fibres,), int.
        pneumatic: Nodes of the solids that are pneumatic cells, shape (n_cells, n_nodes), int.
        cell_expansion: Part of its volume that a cell gains at u = 1 [1], shape (n_cells,).
        cell_stiffness: Stiffness of the cells [Pa], shape (n_cells,).
        cell_channel: Control channels of the cells, shape (n_cells,), int.
        cables: Nodes of the pairs of segments of cables, shape (n_pairs, 4), int.
        cable: Cable of each pair, shape (n_pairs,), int.
        cable_first: First pair of each cable, shape (n_cables,), int.
        cable_segments: Number of segments of the cables, shape (n_cables,), int.
        cable_channel: Control channels of the cables, shape (n_cables,), int.
        cable_stiffness: Spring constants of the cables [N/m], shape (n_cables,).
        cable_length: Lengths of the cables paid out at u = 0 [m], shape (n_cables,).
        attachments: Nodes of the elements of both bodies at the points of attachments, shape (n_points, 8), int.
        attachment_weight: Their weights, negative for the second body [1], shape (n_points, 8).
        attachment_stiffness: Spring constants of the points [N/m], shape (n_points,).
        motors: Nodes of the sides of motors, side after side, shape (n, 1), int.
        motor_side: Side of each of them, stator and rotor of the first motor, and so on, shape (n,), int.
        motor_first: First of each side, one more for the end, shape (2 * n_motors + 1,), int.
        motor_end: Nodes of the elements at both ends of each axis, shape (n_motors, 8), int.
        motor_weight: Their weights, negative for the first end [1], shape (n_motors, 8).
        motor_channel: Control channels of the motors, shape (n_motors,), int.
        motor_node: Nodes that any motor drives, shape (n_driven,), int.
        motor_row: First entry of each of them in `motor_item`, one more for the end, shape (n_driven + 1,), int.
        motor_item: Their places in `motors`, shape (n,), int.
        motor_slope: Torques over speeds of the motors [N m s], shape (n_motors,).
        motor_resistance: Resistance of `motors` in the matrix of the global step [N s/m], shape (n,).
        faces: Nodes of the wetted faces, shape (n_faces, 3), int; sheets have two for each triangle.
        drag_at: Sines of the angles of attack of the table of drag [1], shape (n,).
        thrust_at: Those of the table of thrust [1], shape (n,).
        cavities: Nodes of the faces around cavities, cavity after cavity, counter-clockwise seen from outside of them,
            shape (n_walls, 3), int.
        cavity: Cavity of each of them, shape (n_walls,), int.
        cavity_run: First face of each run of such faces, and the one after its last, shape (n_runs, 2), int.
        cavity_runs: First run of each cavity, and the one after its last, shape (n_cavities, 2), int.
        cavity_channel: Control channels of the cavities, shape (n_cavities,), int.
        cavity_number: Number of each cavity among those of given pressure, or of given gas, shape (n_cavities,), int.
        cavity_gas_ratio: Amount of gas at u = 1 over that at u = 0 [1], 0 for a given pressure, shape (n_cavities,).
        cavity_least_volume: Volume below which the walls of a cavity have passed through one another [m^3], shape
            (n_cavities,).
        cavity_pressure: Gauge pressure at u = 1 of cavities of given pressure [Pa], shape (n,).
        cavity_gas: n R T at u = 0 in cavities of given gas [J], shape (n,).
        ambient_pressure: Absolute pressure around cavities of given gas [Pa], shape (n,).
        shapes: Shape of each soft body, with the tetrahedra that fill it where another machine would make others.
        meshes: Surfaces of the bodies.
        edge: Mean length of the edges of elements [m].
    """

    tets: np.ndarray
    quadratic_tets: np.ndarray
    hexahedra: np.ndarray
    triangles: np.ndarray
    hinges: np.ndarray
    bars: np.ndarray
    youngs_modulus: np.ndarray
    poissons_ratio: np.ndarray
    element_density: np.ndarray
    damping: np.ndarray
    element_volume: np.ndarray
    element_body: np.ndarray
    element_regions: dict[str, np.ndarray]
    thickness: np.ndarray
    bending: np.ndarray
    plate: np.ndarray
    section: np.ndarray
    bone: np.ndarray
    fibres: np.ndarray
    fibre_direction: np.ndarray
    fibre_contraction: np.ndarray
    fibre_stiffness: np.ndarray
    fibre_channel: np.ndarray
    pneumatic: np.ndarray
    cell_expansion: np.ndarray
    cell_stiffness: np.ndarray
    cell_channel: np.ndarray
    cables: np.ndarray
    cable: np.ndarray
    cable_first: np.ndarray
    cable_segments: np.ndarray
    cable_channel: np.ndarray
    cable_stiffness: np.ndarray
    cable_length: np.ndarray
    attachments: np.ndarray
    attachment_weight: np.ndarray
    attachment_stiffness: np.ndarray
    motors: np.ndarray
    motor_side: np.ndarray
    motor_first: np.ndarray
    motor_end: np.ndarray
    motor_weight: np.ndarray
    motor_channel: np.ndarray
    motor_node: np.ndarray
    motor_row: np.ndarray
    motor_item: np.ndarray
    motor_slope: np.ndarray
    motor_resistance: np.ndarray
    faces: np.ndarray
    drag_at: np.ndarray
    thrust_at: np.ndarray
    cavities: np.ndarray
    cavity: np.ndarray
    cavity_run: np.ndarray
    cavity_runs: np.ndarray
    cavity_channel: np.ndarray
    cavity_number: np.ndarray
    cavity_gas_ratio: np.ndarray
    cavity_least_volume: np.ndarray
    cavity_pressure: np.ndarray
    cavity_gas: np.ndarray
    ambient_pressure: np.ndarray
    shapes: tuple[Shape, ...]
    meshes: tuple[Part, ...]
    edge: float

    @property
    def surfaces(self) -> tuple[Part, ...]:
        """Surfaces of all bodies."""
        return self.meshes

    @property
    def solid(self) -> ReferenceElement:
        """The kind of the solids, which is one for all; linear tetrahedra where there are none."""
        return next((e for name, e in SOLIDS.items() if len(getattr(self, name))), TETRAHEDRON)

    @property
    def solids(self) -> np.ndarray:
        """Nodes of the solids, shape (n_solids, n_nodes), int."""
        return getattr(self, self.solid.name)

    @property
    def cut(self) -> np.ndarray:
        """Nodes of the linear tetrahedra into which the solids are cut, shape (n_solids, n, 4), int."""
        return self.solids[:, self.solid.tets]

    @property
    def damped(self) -> bool:
        """Whether any material has damping; then all elements have dampers."""
        return bool((self.damping > 0.0).any())

    @property
    def damped_tets(self) -> np.ndarray:
        """Nodes of the dampers of tetrahedra, of all or none, shape (n, 4), int."""
        return self.tets if self.damped else self.tets[:0]

    @property
    def damped_quadratic_tets(self) -> np.ndarray:
        """Nodes of the dampers of quadratic tetrahedra, of all or none, shape (n, 10), int."""
        return self.quadratic_tets if self.damped else self.quadratic_tets[:0]

    @property
    def damped_hexahedra(self) -> np.ndarray:
        """Nodes of the dampers of hexahedra, of all or none, shape (n, 8), int."""
        return self.hexahedra if self.damped else self.hexahedra[:0]

    @property
    def damped_triangles(self) -> np.ndarray:
        """Nodes of the dampers of triangles, of all or none, shape (n, 3), int."""
        return self.triangles if self.damped else self.triangles[:0]

    @property
    def damped_bars(self) -> np.ndarray:
        """Nodes of the dampers of bars, of all or none, shape (n, 2), int."""
        return self.bars if self.damped else self.bars[:0]

    def without(self, hidden: Callable[[np.ndarray], np.ndarray]) -> "Mesh":
        """A copy whose surfaces are those of the tetrahedra and triangles whose centres at rest are not hidden."""
        x = self.position
        shown, triangles = ~hidden(x[self.solids].mean(axis=1)), self.triangles
        tets, triangles = self.cut[shown].reshape(-1, 4), triangles[~hidden(x[triangles].mean(axis=1))]

        def faces(part: Part) -> np.ndarray:
            solid, sheets = (t[(t[:, 0] >= part.nodes.start) & (t[:, 0] < part.nodes.stop)] for t in (tets, triangles))
            used, number = np.unique(solid, return_inverse=True)
            outer = used[TetMesh(x[used], number.reshape(solid.shape)).surface] if len(solid) else solid[:, :3]
            return np.concatenate([outer, sheets]) - part.nodes.start

        return dataclasses.replace(self, meshes=tuple(dataclasses.replace(p, faces=faces(p)) for p in self.meshes))

    @property
    def elements(self) -> np.ndarray:
        """Nodes of all elements with a material, -1 behind those of kinds with fewer, shape (n_elements, n), int."""
        tables = [t for t in self._material if len(t)]
        most = max(4, *(t.shape[1] for t in tables))
        return np.concatenate([np.pad(t, ((0, 0), (0, most - t.shape[1])), constant_values=-1) for t in tables])

    @property
    def _material(self) -> list[np.ndarray]:
        return [getattr(self, kind) for kind in _MATERIAL]

    def of(self, kind: str) -> slice:
        """Where solids, ``"triangles"`` or ``"bars"``, or their dampers, are among elements; nowhere for others."""
        kind = kind.removeprefix("damped_")
        if kind not in _MATERIAL:
            return slice(0, 0)
        before = sum(len(getattr(self, k)) for k in itertools.takewhile(lambda k: k != kind, _MATERIAL))
        return slice(before, before + len(getattr(self, kind)))


@dataclasses.dataclass(frozen=True)
class _Piece:
    """Nodes and elements of a shape, or of a part of it; `sides` are the triangles at each hinge."""

    position: np.ndarray
    faces: np.ndarray
    tets: np.ndarray
    quadratic_tets: np.ndarray
    hexahedra: np.ndarray
    triangles: np.ndarray
    hinges: np.ndarray
    sides: np.ndarray
    bars: np.ndarray
    thickness: np.ndarray
    bending: np.ndarray
    section: np.ndarray

    def volume(self, kind: str) -> np.ndarray:
        """Volumes at rest [m^3], shape (n,)."""
        if kind in SOLIDS:
            return SOLIDS[kind].volumes(self.position, getattr(self, kind)).sum(axis=1)
        x = self.position[getattr(self, kind)]
        edges = x[:, 1:] - x[:, :1]
        if kind == "triangles":
            return self.thickness * np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1) / 2.0
        return self.section * np.linalg.norm(edges[:, 0], axis=1)

    @property
    def cut(self) -> np.ndarray:
        """Nodes of the linear tetrahedra into which solids are cut, shape (n, 4)."""
        return np.concatenate([getattr(self, name)[:, e.tets].reshape(-1, 4) for name, e in SOLIDS.items()])


def assemble(scene: Scene, cell_size: float, solid: ReferenceElement = TETRAHEDRON) -> Mesh:
    """Mesh every body of `scene`.

    Args:
        scene: The scene.
        cell_size: Length of the edges of shapes that are no meshes yet [m].
        solid: The kind of elements of solids.

    Raises:
        SceneError: A body cannot be meshed, or a region contains no node.
    """
    whole = [_piece(body.shape, cell_size, solid) for body in scene.soft]
    for body, piece in zip(scene.soft, whole, strict=True):
        if len(getattr(piece, solid.name)):  # sheets and bars have theirs by definition
            filled, remedy = piece.volume(solid.name).sum(), "use a smaller ProjectiveDynamics(cell_size=...)"
            refuse_lost(body, filled, solid.title, remedy, _without_sheets(body.shape), above=5)
    pieces = [_hollow(p, bones_at(scene.rigid, p.position, 1e-6 * cell_size)) for p in whole]
    first = np.cumsum([0] + [len(p.position) for p in pieces])
    numbers = [i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)]
    bodies = list(zip(numbers, zip(scene.soft, pieces, strict=True), strict=True))
    elements = [{k: _elements(b, i, p, k, cell_size) for k in _MATERIAL if len(getattr(p, k))} for i, (b, p) in bodies]
    for (_, (body, _)), found in zip(bodies, elements, strict=True):
        if not found:
            raise SceneError(f"SoftBody {body.name!r}: bones replace all of its {solid.title}; make the bones smaller")
    nodes = together(scene, [_nodes(b, i, p, e, cell_size) for (i, (b, p)), e in zip(bodies, elements, strict=True)])
    matter = together(scene, [e[k] for k in _MATERIAL for e in elements if k in e])
    del matter["position"]
    matter = {"element_" + n if n in nodes else n: v for n, v in matter.items()}
    own = {n: np.concatenate([getattr(p, n) for p in pieces]) for n in ("thickness", "bending", "section")}
    own["plate"] = np.concatenate([_plates(p, e.get("triangles")) for p, e in zip(pieces, elements, strict=True)])
    own["bone"] = bones_at(scene.rigid, nodes["position"], 1e-6 * cell_size)
    own["bending"] = np.where(np.isnan(own["bending"]), own["plate"], own["bending"])
    tables = {
        k: np.concatenate([getattr(p, k) + n for p, n in zip(pieces, first, strict=False)])
        for k in (*_MATERIAL, "hinges")
    }
    thin = tables["triangles"], tables["bars"]
    meshes = tuple(Part(i, slice(first[n], first[n + 1]), p.faces) for n, (i, (_, p)) in enumerate(bodies))
    edge = mean_edge(nodes["position"], [*(p.cut + n for p, n in zip(pieces, first, strict=False)), *thin])
    own |= driven(scene, tables[solid.name], matter["element_regions"])
    own |= strung(scene, nodes["position"], cell_size)
    of_body = {
        b.name: tuple(t + n for t in (p.cut, p.faces, p.bars))
        for (b, p), n in zip((pair for _, pair in bodies), first, strict=False)
    }
    stiffness = edge * matter["youngs_modulus"].max()
    own |= attached(scene, nodes["position"], of_body, stiffness, cell_size)
    own |= motorised(scene, nodes["position"], nodes["density"] * nodes["volume"], nodes["regions"], own)
    faces = np.concatenate([part.faces + part.nodes.start for part in meshes])
    own |= cavities_of(scene, nodes["position"], faces, tables["triangles"], nodes["regions"])
    own |= wetted(scene, faces, tables["triangles"], own["cavities"])
    shapes = tuple(_with_tetrahedra(body.shape, cell_size) for body in scene.soft)
    return Mesh(**nodes, **matter, **tables, **own, shapes=shapes, meshes=meshes, edge=edge)


def _made(**fields: np.ndarray) -> _Piece:
    """A piece with these fields; the others are empty."""
    widths = {"faces": 3, "triangles": 3, "hinges": 4, "sides": 2, "bars": 2}
    widths |= {name: len(e.shares) for name, e in SOLIDS.items()}
    empty = {n: np.zeros((0, k), dtype=int) for n, k in widths.items()}
    empty |= {n: np.zeros(0) for n in ("thickness", "bending", "section")}
    return _Piece(**(empty | fields))


def _piece(shape: Shape, cell_size: float, kind: ReferenceElement) -> _Piece:
    """The elements of a shape: those of its sheets, of a truss, and of its solid parts."""
    truss = bars_of(shape)
    if truss is not None:
        return _made(position=truss.joints, bars=truss.bars, section=truss.section)
    pieces = [_cloth(sheet) for sheet in sheets_of(shape)]
    solid = _without_sheets(shape)
    if solid is not None:
        pieces.insert(0, _filled(solid, cell_size, kind))
    return _joined(pieces, 1e-6 * cell_size)


def _filled(shape: Shape, cell_size: float, kind: ReferenceElement) -> _Piece:
    """The elements of a solid."""
    if kind is HEXAHEDRON:
        position, table = hexahedra(shape, cell_size)
    else:
        mesh = tetrahedra(shape, cell_size)
        position, table = mesh.vertices, mesh.tets
    if kind is QUADRATIC_TETRAHEDRON:
        position, table = with_midsides(position, table)
    faces = TetMesh(position, table[:, kind.tets].reshape(-1, 4)).surface
    return _made(position=position, faces=faces, **{kind.name: table})


def _hollow(piece: _Piece, bone: np.ndarray) -> _Piece:
    """A piece without the solid elements inside a bone, which replaces them, and without nodes of these alone."""
    tables = {n: getattr(piece, n) for n in ("faces", "triangles", "hinges", "bars")}
    for name in SOLIDS:
        table = getattr(piece, name)
        at = bone[table]
        tables[name] = table[(at[:, 0] < 0) | (at != at[:, :1]).any(axis=1)]
    used = np.zeros(len(piece.position), dtype=bool)
    used[np.concatenate([t.reshape(-1) for t in tables.values()])] = True
    number = np.cumsum(used) - 1
    return dataclasses.replace(piece, position=piece.position[used], **{n: number[t] for n, t in tables.items()})


def _cloth(sheet: Sheet) -> _Piece:
    hinges, sides = hinges_of(sheet.faces)
    return _made(
        position=sheet.vertices,
        faces=sheet.faces,
        triangles=sheet.faces,
        hinges=hinges,
        sides=sides,
        thickness=np.full(len(sheet.faces), sheet.thickness),
        bending=np.full(len(hinges), np.nan if sheet.bending is None else sheet.bending),
    )


def _with_tetrahedra(shape: Shape, cell_size: float) -> Shape:
    """A shape whose solid part is the mesh that fills it, if only this machine knows that mesh."""
    solid = None if bars_of(shape) is not None else _without_sheets(shape)
    if solid is None or repeatable(solid):
        return shape
    parts = (tetrahedra(solid, cell_size), *sheets_of(shape))
    return parts[0] if len(parts) == 1 else Union(parts)


def _without_sheets(shape: Shape) -> Shape | None:
    """The solid part of a shape, or None."""
    if isinstance(shape, Sheet):
        return None
    if isinstance(shape, Posed):
        inner = _without_sheets(shape.shape)
        return inner and dataclasses.replace(shape, shape=inner)
    if isinstance(shape, Union):
        parts = tuple(p for p in map(_without_sheets, shape.shapes) if p is not None)
        return Union(parts) if len(parts) > 1 else next(iter(parts), None)
    return shape


def _joined(pieces: list[_Piece], slack: float) -> _Piece:
    """Pieces of one body as one; where nodes of two pieces are at one place they are one node."""
    whole = pieces[0]
    for piece in pieces[1:]:
        distance, nearest = cKDTree(whole.position).query(piece.position)
        new = distance > slack
        number = np.where(new, len(whole.position) + np.cumsum(new) - 1, nearest)
        renumbered = {n: number[getattr(piece, n)] for n in ("faces", *SOLIDS, "triangles", "hinges", "bars")}
        renumbered |= {"sides": piece.sides + len(whole.triangles), "position": piece.position[new]}
        piece = dataclasses.replace(piece, **renumbered)
        fields = [f.name for f in dataclasses.fields(_Piece)]
        whole = _Piece(**{n: np.concatenate([getattr(whole, n), getattr(piece, n)]) for n in fields})
    return whole


def _elements(body: SoftBody, index: int, piece: _Piece, kind: str, cell_size: float) -> dict:
    """Fields of the elements of one kind of a body."""
    table = getattr(piece, kind)
    center = piece.position[table].mean(axis=1)
    inside = regions_at(body, center, slack=1e-6 * cell_size)
    materials = materials_at(body, inside, len(table))
    return {
        "position": center,
        "youngs_modulus": np.array([m.youngs_modulus for m in materials]),
        "poissons_ratio": np.array([m.poissons_ratio for m in materials]),
        "density": np.array([m.density for m in materials]),
        "damping": np.array([m.damping for m in materials]),
        "volume": piece.volume(kind),
        "body": np.full(len(table), index),
        "regions": inside,
    }


def _nodes(body: SoftBody, index: int, piece: _Piece, elements: dict[str, dict], cell_size: float) -> dict:
    """Fields of the nodes of a body."""
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


def _plates(piece: _Piece, triangles: dict | None) -> np.ndarray:
    """Flexural rigidity E t^3 / (12 (1 - nu^2)) of hinges, the mean of the two sides [N m], shape (n_hinges,)."""
    if triangles is None:
        return np.zeros(0)
    plate = triangles["youngs_modulus"] * piece.thickness**3 / (12.0 * (1.0 - triangles["poissons_ratio"] ** 2))
    return plate[piece.sides].mean(axis=1)


def mean_edge(x: np.ndarray, tables: list[np.ndarray]) -> float:
    """Mean length of all edges of elements [m], each of them once.

    Args:
        x: Nodes [m], shape (n, 3).
        tables: Nodes of elements of several kinds, each of shape (n_elements, n_corners).
    """
    ends = [np.sort(t[:, p], axis=-1) for t in tables for p in itertools.combinations(range(t.shape[1]), 2)]
    edges = np.unique(np.concatenate(ends), axis=0)
    return float(np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1).mean())
