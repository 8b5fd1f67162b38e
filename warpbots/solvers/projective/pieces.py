"""Nodes and elements of single bodies, before these have materials and indices in a scene."""

import dataclasses

import numpy as np
from scipy.spatial import cKDTree

from warpbots.meshing import hexahedra, repeatable, tetrahedra
from warpbots.scene import Posed, Shape, Sheet, Union, bars_of, sheets_of
from warpbots.scene.shapes import TetMesh
from warpbots.solvers.projective.elements.hinges import hinges_of
from warpbots.solvers.projective.elements.reference_elements import (
    HEXAHEDRON,
    QUADRATIC_TETRAHEDRON,
    SOLIDS,
    ReferenceElement,
    with_midsides,
)

__all__ = ["MeshPiece", "hollow", "no_piece", "piece_of", "with_tetrahedra", "without_sheets"]


@dataclasses.dataclass(frozen=True)
class MeshPiece:
    """Nodes and elements of a shape, or of a part of it.

    Attributes:
        position: Nodes [m], shape (n, 3).
        faces: Nodes of the faces of the surface, counter-clockwise seen from outside, and of sheets, shape (n_faces,
            3), int.
        tets: Nodes of the linear tetrahedra, shape (n_tets, 4), int.
        quadratic_tets: Nodes of the quadratic tetrahedra, shape (n_quadratic_tets, 10), int.
        hexahedra: Nodes of the hexahedra, shape (n_hexahedra, 8), int.
        triangles: Nodes of the triangles of sheets, shape (n_triangles, 3), int.
        hinges: Nodes of the inner edges of sheets, shape (n_hinges, 4), int.
        sides: Triangles on both sides of each hinge, shape (n_hinges, 2), int.
        bars: Nodes of the bars, shape (n_bars, 2), int.
        thickness: Thickness of the triangles [m], shape (n_triangles,).
        bending: Flexural rigidity of the hinges, NaN to take it from the material [N m], shape (n_hinges,).
        section: Cross-section of the bars [m^2], shape (n_bars,).
    """

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
        """Volumes at rest of the elements of a kind [m^3], shape (n,)."""
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


def _made(**fields: np.ndarray) -> MeshPiece:
    """A piece with the fields `fields`; all other fields are empty."""
    widths = {"faces": 3, "triangles": 3, "hinges": 4, "sides": 2, "bars": 2}
    widths |= {name: len(e.shares) for name, e in SOLIDS.items()}
    empty = {n: np.zeros((0, k), dtype=int) for n, k in widths.items()}
    empty |= {n: np.zeros(0) for n in ("thickness", "bending", "section")}
    return MeshPiece(**(empty | fields))


def no_piece() -> MeshPiece:
    """A piece without nodes."""
    return _made(position=np.zeros((0, 3)))


def piece_of(shape: Shape, cell_size: float, kind: ReferenceElement) -> MeshPiece:
    """The elements of a shape: of a truss, or of the sheets and the solid parts of the shape."""
    truss = bars_of(shape)
    if truss is not None:
        return _made(position=truss.joints, bars=truss.bars, section=truss.section)
    pieces = [_cloth(sheet) for sheet in sheets_of(shape)]
    solid = without_sheets(shape)
    if solid is not None:
        pieces.insert(0, _filled(solid, cell_size, kind))
    return _joined(pieces, 1e-6 * cell_size)


def _filled(shape: Shape, cell_size: float, kind: ReferenceElement) -> MeshPiece:
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


def hollow(piece: MeshPiece, bone: np.ndarray) -> MeshPiece:
    """A piece without the solid elements inside a bone, which replaces these elements, and without unused nodes."""
    tables = {n: getattr(piece, n) for n in ("faces", "triangles", "hinges", "bars")}
    for name in SOLIDS:
        table = getattr(piece, name)
        at = bone[table]
        tables[name] = table[(at[:, 0] < 0) | (at != at[:, :1]).any(axis=1)]
    used = np.zeros(len(piece.position), dtype=bool)
    used[np.concatenate([t.reshape(-1) for t in tables.values()])] = True
    number = np.cumsum(used) - 1
    return dataclasses.replace(piece, position=piece.position[used], **{n: number[t] for n, t in tables.items()})


def _cloth(sheet: Sheet) -> MeshPiece:
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


def with_tetrahedra(shape: Shape, cell_size: float) -> Shape:
    """The shape, with its solid part replaced by the mesh of this part if another machine could mesh it differently."""
    solid = None if bars_of(shape) is not None else without_sheets(shape)
    if solid is None or repeatable(solid):
        return shape
    parts = (tetrahedra(solid, cell_size), *sheets_of(shape))
    return parts[0] if len(parts) == 1 else Union(parts)


def without_sheets(shape: Shape) -> Shape | None:
    """The solid part of a shape, or None."""
    if isinstance(shape, Sheet):
        return None
    if isinstance(shape, Posed):
        inner = without_sheets(shape.shape)
        return inner and dataclasses.replace(shape, shape=inner)
    if isinstance(shape, Union):
        parts = tuple(p for p in map(without_sheets, shape.shapes) if p is not None)
        return Union(parts) if len(parts) > 1 else next(iter(parts), None)
    return shape


def _joined(pieces: list[MeshPiece], slack: float) -> MeshPiece:
    """Pieces of one body as one piece; coincident nodes of two pieces become one node."""
    whole = pieces[0]
    for piece in pieces[1:]:
        distance, nearest = cKDTree(whole.position).query(piece.position)
        new = distance > slack
        number = np.where(new, len(whole.position) + np.cumsum(new) - 1, nearest)
        renumbered = {n: number[getattr(piece, n)] for n in ("faces", *SOLIDS, "triangles", "hinges", "bars")}
        renumbered |= {"sides": piece.sides + len(whole.triangles), "position": piece.position[new]}
        piece = dataclasses.replace(piece, **renumbered)
        fields = [f.name for f in dataclasses.fields(MeshPiece)]
        whole = MeshPiece(**{n: np.concatenate([getattr(whole, n), getattr(piece, n)]) for n in fields})
    return whole
