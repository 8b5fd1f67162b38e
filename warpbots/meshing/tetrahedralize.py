"""Tetrahedral meshes of solids: a regular grid for boxes, fTetWild for all other shapes."""

import functools

import numpy as np

from warpbots.contact import cells_across
from warpbots.meshing.boxes import box_tets
from warpbots.meshing.ftetwild import fill
from warpbots.meshing.surfaces import closed_surface
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    Posed,
    SceneError,
    Shape,
    Sheet,
    Sphere,
    TetMesh,
    Truss,
    Union,
    dimension,
)
from warpbots.scene.field_types import checked
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["repeatable", "tetrahedra"]

_CELL = 1e4
"""Memory per cell, including its tetrahedra [bytes]."""

_COARSE, _FINE = 0.05, 0.1
"""Largest distance of a mesh from the surface of the shape [cells], for round and for all other shapes."""


@checked
def tetrahedra(shape: Shape, cell_size: float | None = None) -> TetMesh:
    """Fill a solid with tetrahedra.

    A box is meshed on a regular grid; a `TetMesh` is returned unchanged. All other shapes are meshed by fTetWild, in
    seconds or, for a surface with many details, in minutes. The mesh is kept in the user's cache (see
    `warpbots.output_files`), because a second run of fTetWild would give a different mesh.
    `warpbots.Simulation.scene_with` stores the mesh in the scene, so that a file of the scene gives the same mesh on
    other machines. A mesh of a curved shape loses some volume, because its faces are flat: a few percent with three
    cells per radius.

    Args:
        shape: A 3D solid.
        cell_size: Edge length of the cells of a box, or mean edge length of the tetrahedra in any other shape [m];
            edges are shorter near fine details of the surface. None for 4 cells across the width of the shape
            (`warpbots.contact.width`), but at most 1,500 cells; a `TetMesh` needs no size.

    Raises:
        SceneError: The shape is not a bounded 3D solid, or is a triangle mesh that intersects itself.
        ImportError: pytetwild is needed and not installed.
        ValueError: `cell_size` is not positive.
    """
    if cell_size is not None and cell_size <= 0.0:
        raise ValueError(f"tetrahedra: cell_size must be a positive length [m], got {cell_size:g}")
    if isinstance(shape, TetMesh):
        return shape
    kind = type(shape).__name__
    if isinstance(shape, Sheet):
        raise SceneError("a Sheet has no inside to fill with tetrahedra; ProjectiveDynamics takes its triangles")
    if dimension(shape) != 3:
        raise SceneError(f"a {kind} in 2D has no tetrahedra; describe the body in 3D, or use MPM or MassSpring")
    if not np.isfinite(shape.bounds).all():
        raise SceneError(f"a {kind} is unbounded and cannot be filled with tetrahedra; use a Box of the part you need")
    remedy = "use larger cells or a smaller body"
    cell_size = cells_across([shape], 4.0, 1500) if cell_size is None else cell_size
    refuse_excess(_cells(shape, cell_size), _CELL, f"meshing: cells of a {kind}", remedy)
    return _tets(shape, float(cell_size))


def repeatable(shape: Shape) -> bool:
    """Whether `tetrahedra` gives the same mesh on every machine; this is true for a box and for a `TetMesh`."""
    if isinstance(shape, Posed):
        return repeatable(shape.shape)
    return isinstance(shape, Box | TetMesh)


def _cells(shape: Shape, cell_size: float) -> float:
    """Approximate number of cells that fill a shape."""
    if isinstance(shape, TetMesh):
        return 0.0
    if isinstance(shape, Union):
        return sum(_cells(s, cell_size) for s in shape.shapes)
    if isinstance(shape, Posed):
        return _cells(shape.shape, cell_size)
    if isinstance(shape, Truss):
        return float((np.ceil(shape.length / cell_size) * np.ceil(2.0 * shape.radius / cell_size) ** 2).sum())
    return float(np.ceil(np.subtract(*shape.bounds[::-1]) / cell_size).prod())


@functools.singledispatch
def _tets(shape: Shape, cell_size: float) -> TetMesh:
    coarse = isinstance(shape, Sphere | Capsule | Cylinder | Truss)
    return fill(*closed_surface(shape, cell_size), cell_size, (_COARSE if coarse else _FINE) * cell_size)


@_tets.register
def _(shape: Box, cell_size: float) -> TetMesh:
    return box_tets(shape, cell_size)


@_tets.register
def _(shape: Posed, cell_size: float) -> TetMesh:
    inner = tetrahedra(shape.shape, cell_size)
    return TetMesh(inner.vertices @ np.array(shape.rotation).T + np.array(shape.translation), inner.tets)
