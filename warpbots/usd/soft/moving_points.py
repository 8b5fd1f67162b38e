"""Prims whose points follow particles: clouds, curves, and the meshes of bodies whose nodes are particles.

A mesh that a body has already moves itself, in its own coordinates, and keeps its shape at rest beside the frames. A
body that a solver has meshed gets its surface as a mesh, and its shape at rest is hidden.
"""

from typing import Any, NamedTuple

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.scene import SoftBody, sheets_of
from warpbots.usd.geometry.gprims import face_normals
from warpbots.usd.geometry.solid_prims import geometry
from warpbots.usd.stage.schema import MOTION_API, RESULT_API
from warpbots.usd.stage.target import editable, free_path, to_scene_coordinates
from warpbots.usd.stage.units import Frame, transform
from warpbots.usd.stage.values import apply, at_rest, schemas

__all__ = ["Moving", "hide_rest", "moving_mesh", "result", "write_points"]

_AGREE = 1e-5
"""Largest distance between nodes and the points of a prim over their size, if they are the same."""


class Moving(NamedTuple):
    """A prim that moves.

    Attributes:
        prim: The prim.
        follows: The particles that its points follow, shape (n_points,).
        springs: The springs that its curves show, shape (n_curves,); None for others.
        width: Width of an unbroken curve in scene units; None for others.
        faces: Three corners of each of its faces, whose normals turn with them, shape (n_faces, 3); None for others.
        local: Lifted scene coordinates [m] to those of the prim, shape (4, 4); None where these are the same.
    """

    prim: UsdGeom.PointBased
    follows: np.ndarray
    springs: np.ndarray | None = None
    width: float | None = None
    faces: np.ndarray | None = None
    local: np.ndarray | None = None


def result(stage: Usd.Stage, body_prim: Usd.Prim, body: SoftBody, name: str, kind: str, frame: Frame) -> Usd.Prim:
    """A prim for results in coordinates of the scene, below that of the body where USD allows it, else beside it."""
    inside = not body_prim.IsA(UsdGeom.Gprim)
    parent = body_prim if inside else body_prim.GetParent()
    name = name if inside else f"{body_prim.GetName()}_{name.lower()}"
    path = parent.GetPath().AppendChild(name)
    there = stage.GetPrimAtPath(path)
    if there and RESULT_API not in there.GetPrimTypeInfo().GetAppliedAPISchemas():
        path = free_path(stage, parent.GetPath(), name)
    prim = stage.DefinePrim(path, kind)
    apply(prim, RESULT_API)
    to_scene_coordinates(prim, frame)
    UsdGeom.Gprim(prim).CreateDisplayColorAttr([body.color])
    UsdGeom.Imageable(prim).CreateVisibilityAttr(UsdGeom.Tokens.inherited)
    return prim


def hide_rest(prim: Usd.Prim, but: Usd.Prim | None = None) -> None:
    """Hide what is drawn of the body `prim`, results of an earlier motion too, but for the geometry `but`."""
    for rest in prim.GetChildren() if not prim.IsA(UsdGeom.Gprim) else [prim]:
        if rest.IsA(UsdGeom.Imageable):
            kept = but is not None and but.GetPath().HasPrefix(rest.GetPath())
            UsdGeom.Imageable(rest).CreateVisibilityAttr(UsdGeom.Tokens.inherited if kept else UsdGeom.Tokens.invisible)


def moving_mesh(stage: Usd.Stage, prim: Usd.Prim, body: SoftBody, mesh: Any, particles: Any, frame: Frame) -> Moving:
    """The mesh that shows a body whose nodes are particles.

    Args:
        stage: Where to author.
        prim: The prim of the body.
        body: The body.
        mesh: Has `nodes`, a slice of the particles, and `faces`, vertex indices within it, shape (m, 3).
        particles: Has `position`, the particles at rest [m], shape (n, 3).
        frame: Units and axes of the stage.
    """
    nodes = np.arange(len(particles.position))[mesh.nodes]
    own = _own_mesh(prim, particles.position[nodes], frame)
    if own is not None:
        path = own.GetPath()
        own = editable(own)
        hide_rest(stage.GetPrimAtPath(prim.GetPath()), but=stage.GetPrimAtPath(path))
        apply(own, MOTION_API)
        faces = _corners(own)
        if faces is not None:
            UsdGeom.Mesh(own).SetNormalsInterpolation(UsdGeom.Tokens.uniform)
        return Moving(UsdGeom.PointBased(own), nodes, faces=faces, local=np.linalg.inv(frame.matrix(own)))
    prim = editable(prim)
    hide_rest(prim)
    used, faces = np.unique(mesh.faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    surface = UsdGeom.Mesh(result(stage, prim, body, "Surface", "Mesh", frame))
    surface.CreateFaceVertexCountsAttr(Vt.IntArray(len(faces), 3))
    surface.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.ravel().astype(np.int32)))
    surface.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    surface.CreateDoubleSidedAttr(bool(sheets_of(body.shape)))
    surface.SetNormalsInterpolation(UsdGeom.Tokens.uniform)
    return Moving(UsdGeom.PointBased(surface), nodes[used], faces=faces)


def write_points(moving: Moving, frame: Frame, code: float, position: np.ndarray, velocity: np.ndarray | None) -> int:
    """Write where the points of a prim are, in which box, and where they go.

    Args:
        moving: The prim.
        frame: Units and axes of the stage.
        code: Time code of the frame.
        position: Where all particles are [m], shape (n, dim).
        velocity: Their velocities [m/s], shape (n, dim), or None.

    Returns:
        The number of bytes.
    """
    points, local = moving.prim, np.eye(4) if moving.local is None else moving.local
    places = transform(local, frame.lift(position[moving.follows]))
    values = np.ascontiguousarray(places, dtype=np.float32)
    points.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(values), code)
    points.GetExtentAttr().Set(_extent(points, values), code)
    size = values.nbytes
    if moving.faces is not None:
        normals = face_normals(places, moving.faces).astype(np.float32)
        points.GetNormalsAttr().Set(Vt.Vec3fArray.FromNumpy(normals), code)
        size += normals.nbytes
    if velocity is not None:
        rates = frame.lift(np.asarray(velocity)[moving.follows]) @ local[:3, :3].T
        rates = np.ascontiguousarray(rates, dtype=np.float32)
        points.GetVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(rates), code)
        size += rates.nbytes
    return size


def _own_mesh(prim: Usd.Prim, nodes: np.ndarray, frame: Frame) -> Usd.Prim | None:
    """The prim of a mesh at or below `prim` whose points are `nodes` [m], shape (n, 3), or None."""
    parts = [p for part in geometry(prim) for p in Usd.PrimRange(part, Usd.TraverseInstanceProxies())]
    meshes = [p for p in parts if p.GetTypeName() in ("Mesh", "TetMesh") and RESULT_API not in schemas(p)]
    if len(meshes) != 1:
        return None
    points = np.asarray(at_rest(meshes[0], "points"), dtype=np.float64).reshape(-1, 3)
    if points.shape != nodes.shape:
        return None
    slack = _AGREE * float(np.ptp(nodes, axis=0).max())
    return meshes[0] if np.allclose(transform(frame.matrix(meshes[0]), points), nodes, rtol=0.0, atol=slack) else None


def _corners(mesh: Usd.Prim) -> np.ndarray | None:
    """Three corners of each face of a mesh of flat polygons, shape (n_faces, 3); None for all others."""
    if mesh.GetTypeName() != "Mesh" or UsdGeom.Mesh(mesh).GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none:
        return None
    counts, indices = (np.asarray(at_rest(mesh, f"faceVertex{what}")) for what in ("Counts", "Indices"))
    first = np.cumsum(counts) - counts
    return indices[first[:, None] + np.arange(3)]


def _extent(points: UsdGeom.PointBased, values: np.ndarray) -> Vt.Vec3fArray:
    """Box about all points with their widths, shape (2, 3)."""
    if not len(values):
        return UsdGeom.Boundable.ComputeExtentFromPlugins(points, Usd.TimeCode.EarliestTime())
    said = points.GetPrim().GetAttribute("widths")
    widths = np.asarray(said.Get() if said else [0.0])
    radius = 0.5 * (widths[:, None] if len(widths) == len(values) else widths.max())
    return Vt.Vec3fArray.FromNumpy(np.stack([(values - radius).min(0), (values + radius).max(0)]))
