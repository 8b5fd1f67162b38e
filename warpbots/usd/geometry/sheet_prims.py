"""Sheets: triangle meshes that have a thickness, and whose material has a flexural rigidity.

Thickness and rigidity are in units of the stage; the transform of the prim does not scale them. The material of a body
holds the rigidity for other programs. If a sheet is not a body, or a body has several sheets of different rigidity, the
rigidity is only in ``warpbots:exact:bending``.
"""

import math

import numpy as np
from pxr import Usd

from warpbots.scene import SceneError, Shape, Sheet, sheets_of
from warpbots.usd.geometry.gprim_reader import mesh_triangles
from warpbots.usd.geometry.physics_materials import bound_material
from warpbots.usd.stage.applied_schemas import SURFACE_APIS, SURFACE_MATERIAL_API
from warpbots.usd.stage.attributes import apply, authored, get, put, schemas, value_of
from warpbots.usd.stage.ledger import mark_read
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["bending_of", "is_sheet", "read_bending", "read_sheet", "sheet_of", "write_bending", "write_thickness"]

_TOKEN = rows("shape")[0].name
_THICKNESS = rows("Sheet.thickness")[0].name


def is_sheet(prim: Usd.Prim) -> bool:
    """Whether `prim` is a mesh that is marked as a sheet."""
    ours = authored(prim, _TOKEN) and value_of(prim, _TOKEN) == Sheet.__name__
    return prim.GetTypeName() == "Mesh" and (ours or bool(schemas(prim) & set(SURFACE_APIS)))


def read_sheet(prim: Usd.Prim, matrix: np.ndarray, frame: StageUnits) -> Sheet:
    """The sheet at `prim`; unused vertices are left out.

    Args:
        prim: A mesh.
        matrix: Transform from local coordinates of the prim to coordinates of the sheet, shape (4, 4).
        frame: Units and axes of the stage.

    Raises:
        SceneError: The mesh is not a valid sheet; the message does not name the prim.
    """
    if frame.dim == 2:
        raise SceneError("a sheet has no meaning in a 2D scene")
    vertices, faces = mesh_triangles(prim, matrix)
    used, faces = np.unique(faces, return_inverse=True)
    return Sheet(vertices[used], faces.reshape(-1, 3), _thickness(prim, frame), read_bending(prim, frame))


def sheet_of(prim: Usd.Prim, matrix: np.ndarray, frame: StageUnits, thickness: float) -> Sheet:
    """A sheet with the given thickness, made of the open mesh `prim`, which is not marked as a sheet.

    Coincident vertices are merged, and faces without area are left out.
    """
    vertices, faces = mesh_triangles(prim, matrix)
    vertices, inverse = np.unique(vertices, axis=0, return_inverse=True)
    faces = inverse.reshape(-1)[faces]
    corners = vertices[faces]
    edges = corners - np.roll(corners, 1, axis=1)
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    faces = faces[area > 1e-8 * (edges**2).sum(axis=(1, 2))]
    used, faces = np.unique(faces, return_inverse=True)
    return Sheet(vertices[used], faces.reshape(-1, 3), thickness, read_bending(prim, frame))


def read_bending(prim: Usd.Prim, frame: StageUnits, exact: float | None = None) -> float | None:
    """Flexural rigidity of the material bound to `prim` [N m], or None if there is none.

    Args:
        prim: A mesh.
        frame: Units and axes of the stage.
        exact: The exact value on the mesh, which is used unless the material contradicts it; None if there is none.
    """
    bound = bound_material(prim)
    said = get(bound, "Sheet.bending", frame) if bound else None
    return exact if said is None or (exact is not None and math.isclose(said, exact, rel_tol=1e-6)) else said


def bending_of(shape: Shape) -> float | None:
    """The common flexural rigidity of all sheets in `shape` [N m], or None if they differ."""
    found = {sheet.bending for sheet in sheets_of(shape)}
    return found.pop() if len(found) == 1 else None


def write_thickness(prim: Usd.Prim, sheet: Sheet, frame: StageUnits) -> None:
    """Author the thickness of `sheet` on its mesh `prim`."""
    put(prim, "Sheet.thickness", sheet.thickness, frame)
    put(prim, "what has a thickness", "constant", frame)


def write_bending(material: Usd.Prim, bending: float | None, frame: StageUnits) -> None:
    """Author a flexural rigidity [N m] on the prim of a material; None removes it."""
    if bending is not None:
        apply(material, SURFACE_MATERIAL_API)
    put(material, "Sheet.bending", bending, frame)


def _thickness(prim: Usd.Prim, frame: StageUnits) -> float:
    """Thickness of the sheet [m]: set on the mesh, else on its material, else 1 mm."""
    several = np.asarray(value_of(prim, _THICKNESS) if authored(prim, _THICKNESS) else (), dtype=float)
    if len(several) and several.min() != several.max():
        raise SceneError(
            f"its {_THICKNESS} are from {several.min():g} to {several.max():g}; only uniform sheets are supported"
        )
    if len(several):
        mark_read(prim, rows("what has a thickness")[0].name)  # one value is the same for points and faces
        return get(prim, "Sheet.thickness", frame)
    bound = bound_material(prim)
    return get(bound, "Sheet.thickness", frame) if bound else rows("Sheet.thickness")[0].default
