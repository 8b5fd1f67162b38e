"""Writes the motion of soft bodies as time samples: particles as points, springs as curves, meshed bodies as surfaces.

If the nodes of a body are the points of the mesh in the file, the time samples move this mesh, and the default value of
its points remains the rest shape. If a solver meshed the body, its surface is written as a new mesh, and its rest shape
is hidden.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.scene import Scene, SoftBody, bars_of, sheets_of
from warpbots.trajectory import Trajectory
from warpbots.usd.geometry.gprim_writer import face_normals, width
from warpbots.usd.soft.point_values import PointValues, point_values
from warpbots.usd.stage.applied_schemas import MOTION_API, RESULT_API
from warpbots.usd.stage.attributes import apply, at_rest, create, schemas
from warpbots.usd.stage.color_map import write_colors
from warpbots.usd.stage.exact_fields import EXACT
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.prim_editing import editable, free_path, to_scene_coordinates
from warpbots.usd.stage.prim_roles import geometry_of
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import transform
from warpbots.usd.stage.units import StageUnits

__all__ = ["point_frames"]

_THIN = 0.08
"""Width of the drawn springs of a lattice divided by their length."""

_AGREE = 1e-5
"""Largest distance at which a node and a point of a prim count as the same, divided by the size of the body."""


_COLOR = EXACT + rows("SoftBody.color")[0].name
"""Attribute with the colour of a body whose own mesh moves and may be drawn in other colours."""


class _Moving(NamedTuple):
    """A prim that moves.

    Attributes:
        prim: The prim.
        follows: Index of the particle that each point of the prim follows, shape (n_points,).
        springs: Index of the spring that each curve of the prim shows, shape (n_curves,); None if the prim has no
            curves.
        width: Width of the curve of an unbroken spring [m]; None if the prim has no curves.
        faces: Three corners of each face, from which its normal is computed, shape (n_faces, 3); None if the prim is no
            mesh.
        local: Transform from lifted scene coordinates [m] to coordinates of the prim, shape (4, 4); None for identity.
    """

    prim: UsdGeom.PointBased
    follows: np.ndarray
    springs: np.ndarray | None = None
    width: float | None = None
    faces: np.ndarray | None = None
    local: np.ndarray | None = None


def point_frames(
    found: Inventory,
    scene: Scene,
    trajectory: Trajectory[Any],
    every: int,
    frame: StageUnits,
    velocities: bool,
    springs: bool,
    color: str | None = None,
) -> Iterator[tuple[float, Callable[[float], int]]]:
    """Prepare the prims of all soft bodies on the layer that is being edited, and yield the frames.

    Args:
        found: The prims of the stage.
        scene: The scene that reading the stage gives.
        trajectory: The motion.
        every: Number of control intervals between two frames.
        frame: Units and axes of the stage.
        velocities: Whether to write velocities.
        springs: Whether to write all springs, or only the bars of trusses.
        color: Quantity to show as colours, see `warpbots.usd.soft.point_values`; None for the colours of the bodies.

    Yields:
        Time [s], and a function that writes the frame at a time code and returns the number of its bytes.

    Raises:
        ValueError: Positions have the wrong shape or are not finite, or `color` is not the name of a quantity.
    """
    matter = trajectory.matter
    shown = None if color is None else point_values(trajectory, color)
    stage = next(iter(found.bodies.values())).GetStage()
    body_of = np.asarray(matter.body)
    meshes = {mesh.body: mesh for mesh in matter.surfaces}
    moving: list[_Moving] = []
    for k, body in enumerate(scene.bodies):
        if not isinstance(body, SoftBody):
            continue
        mesh, prim = meshes.get(k), found.bodies[body.name]
        if mesh is not None and len(mesh.faces):
            moving.append(_moving_mesh(stage, prim, body, mesh, matter, frame))
        else:
            moving += _moving_points(stage, prim, body, matter, body_of == k, frame, springs)
    for time, position, velocity, broken in _moments(trajectory, every):
        rate = velocity if velocities else None
        write = functools.partial(_write_frame, moving, frame, position, rate, broken, len(body_of))
        yield float(time), write if shown is None else _colored(write, moving, shown, float(time))


def _colored(
    write: Callable[[float], int], moving: list[_Moving], shown: PointValues, time: float
) -> Callable[[float], int]:
    """A function that calls `write` and writes the colours of all prims at `time` [s].

    Colours are written as default values at the start, and at every frame if they change.
    """

    def colored(code: float) -> int:
        size, values = write(code), shown.at(time)
        for part in (p for p in moving if shown.known[p.follows].all()):
            prim = part.prim.GetPrim()
            if time == 0.0:
                write_colors(prim, shown.color_map, values[part.follows])
            if shown.changes:
                size += write_colors(prim, shown.color_map, values[part.follows], code)
        return size

    return colored


def _result(stage: Usd.Stage, body_prim: Usd.Prim, body: SoftBody, name: str, kind: str, frame: StageUnits) -> Usd.Prim:
    """A prim for results in scene coordinates, below the prim of the body if USD allows that, else as its sibling."""
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


def _hide_rest(prim: Usd.Prim, but: Usd.Prim | None = None) -> None:
    """Hide all geometry of the body `prim` except `but`, including results of an earlier motion."""
    for rest in prim.GetChildren() if not prim.IsA(UsdGeom.Gprim) else [prim]:
        if rest.IsA(UsdGeom.Imageable):
            kept = but is not None and but.GetPath().HasPrefix(rest.GetPath())
            UsdGeom.Imageable(rest).CreateVisibilityAttr(UsdGeom.Tokens.inherited if kept else UsdGeom.Tokens.invisible)


def _moving_mesh(
    stage: Usd.Stage, prim: Usd.Prim, body: SoftBody, mesh: Any, particles: Any, frame: StageUnits
) -> _Moving:
    """The mesh that shows a body whose nodes are entries of the particle array.

    Args:
        stage: The stage to write to.
        prim: The prim of the body.
        body: The body.
        mesh: Has `nodes`, a slice of the particles, and `faces`, vertex indices within this slice, shape (m, 3).
        particles: Has `position`, the positions of all particles at rest [m], shape (n, 3).
        frame: Units and axes of the stage.
    """
    nodes = np.arange(len(particles.position))[mesh.nodes]
    own = _own_mesh(prim, particles.position[nodes], frame)
    if own is not None:
        path = own.GetPath()
        own = editable(own)
        _hide_rest(stage.GetPrimAtPath(prim.GetPath()), but=stage.GetPrimAtPath(path))
        apply(own, MOTION_API)
        create(own, _COLOR, "double[]", list(body.color), uniform=True)
        faces = _corners(own)
        if faces is not None:
            UsdGeom.Mesh(own).SetNormalsInterpolation(UsdGeom.Tokens.uniform)
        return _Moving(UsdGeom.PointBased(own), nodes, faces=faces, local=np.linalg.inv(frame.matrix(own)))
    prim = editable(prim)
    _hide_rest(prim)
    used, faces = np.unique(mesh.faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    surface = UsdGeom.Mesh(_result(stage, prim, body, "Surface", "Mesh", frame))
    surface.CreateFaceVertexCountsAttr(Vt.IntArray(len(faces), 3))
    surface.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.ravel().astype(np.int32)))
    surface.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    surface.CreateDoubleSidedAttr(bool(sheets_of(body.shape)))
    surface.SetNormalsInterpolation(UsdGeom.Tokens.uniform)
    return _Moving(UsdGeom.PointBased(surface), nodes[used], faces=faces)


def _write_points(
    moving: _Moving, frame: StageUnits, code: float, position: np.ndarray, velocity: np.ndarray | None
) -> int:
    """Write points, extent, normals and velocities of a prim at one frame.

    Args:
        moving: The prim.
        frame: Units and axes of the stage.
        code: Time code of the frame.
        position: Positions of all particles [m], shape (n, dim).
        velocity: Velocities of all particles [m/s], shape (n, dim); None to write no velocities.

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


def _own_mesh(prim: Usd.Prim, nodes: np.ndarray, frame: StageUnits) -> Usd.Prim | None:
    """The only mesh at or below `prim`, if its points are at the positions `nodes` [m], shape (n, 3); else None."""
    parts = [p for part in geometry_of(prim) for p in Usd.PrimRange(part, Usd.TraverseInstanceProxies())]
    meshes = [p for p in parts if p.GetTypeName() in ("Mesh", "TetMesh") and RESULT_API not in schemas(p)]
    if len(meshes) != 1:
        return None
    points = np.asarray(at_rest(meshes[0], "points"), dtype=np.float64).reshape(-1, 3)
    if points.shape != nodes.shape:
        return None
    slack = _AGREE * float(np.ptp(nodes, axis=0).max())
    return meshes[0] if np.allclose(transform(frame.matrix(meshes[0]), points), nodes, rtol=0.0, atol=slack) else None


def _corners(mesh: Usd.Prim) -> np.ndarray | None:
    """Indices of three corners of each face of a mesh of flat polygons, shape (n_faces, 3); None for other prims."""
    if mesh.GetTypeName() != "Mesh" or UsdGeom.Mesh(mesh).GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none:
        return None
    counts, indices = (np.asarray(at_rest(mesh, f"faceVertex{what}")) for what in ("Counts", "Indices"))
    first = np.cumsum(counts) - counts
    return indices[first[:, None] + np.arange(3)]


def _extent(points: UsdGeom.PointBased, values: np.ndarray) -> Vt.Vec3fArray:
    """Bounding box of all points, enlarged by half the widths of the points, shape (2, 3)."""
    if not len(values):
        return UsdGeom.Boundable.ComputeExtentFromPlugins(points, Usd.TimeCode.EarliestTime())
    said = points.GetPrim().GetAttribute("widths")
    widths = np.asarray(said.Get() if said else [0.0])
    radius = 0.5 * (widths[:, None] if len(widths) == len(values) else widths.max())
    return Vt.Vec3fArray.FromNumpy(np.stack([(values - radius).min(0), (values + radius).max(0)]))


def _moments(trajectory: Trajectory[Any], every: int) -> Iterator[tuple]:
    """Yields time [s], positions [m], velocities [m/s], and flags of broken springs.

    A flag is 1 for a broken spring and 0 for an intact one; the flags are None if no spring can yield or break.
    """
    if not trajectory.matter.inelastic:
        for moment in trajectory.frames(every=every):
            yield *moment, None
        return
    for time, state in trajectory.states(every):
        yield time, *(a[0].cpu().numpy() for a in (state.position, state.velocity, state.broken))


def _moving_points(
    stage: Usd.Stage, prim: Usd.Prim, body: SoftBody, matter: Any, members: np.ndarray, frame: StageUnits, springs: bool
) -> list[_Moving]:
    """Prims to show in place of the rest shape of `body`: its particles as points, and springs as curves."""
    prim = editable(prim)
    _hide_rest(prim)
    points = UsdGeom.Points(_result(stage, prim, body, "Particles", "Points", frame))
    follows = np.flatnonzero(members)
    points.CreateIdsAttr(Vt.Int64Array(range(len(follows))))
    wide = width(np.asarray(matter.volume)[follows], frame.dim)
    points.CreateWidthsAttr(Vt.FloatArray.FromNumpy(wide.astype(np.float32)))
    points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    moving = [_Moving(points, follows)]
    truss = bars_of(body.shape)
    if len(matter.springs) and (springs or truss):
        shown = np.flatnonzero(members[matter.springs[:, 0]])
        ends = matter.springs[shown]
        curves = UsdGeom.BasisCurves(_result(stage, prim, body, "Springs", "BasisCurves", frame))
        curves.CreateTypeAttr(UsdGeom.Tokens.linear)
        curves.CreateCurveVertexCountsAttr(Vt.IntArray(len(ends), 2))
        length = np.linalg.norm(np.diff(matter.position[ends], axis=1)[:, 0], axis=1)
        wide = 2.0 * np.median(truss.radius) if truss else _THIN * np.median(length)
        curves.CreateWidthsAttr([float(wide)] * (len(shown) if matter.inelastic else 1))
        curves.SetWidthsInterpolation(UsdGeom.Tokens.uniform if matter.inelastic else UsdGeom.Tokens.constant)
        moving.append(_Moving(curves, ends.ravel(), shown, float(wide)))
    return moving


def _write_frame(
    moving: list[_Moving],
    frame: StageUnits,
    position: Any,
    velocity: Any | None,
    broken: np.ndarray | None,
    count: int,
    code: float,
) -> int:
    """Write one frame at time code `code`; returns the number of bytes."""
    position = np.asarray(position)
    if position.shape != (count, frame.dim):
        raise ValueError(f"positions of a frame must have shape ({count}, {frame.dim}), got {position.shape}")
    if not np.isfinite(position).all():
        particle = int(np.argwhere(~np.isfinite(position))[0][0])
        raise ValueError(
            f"the position of particle {particle} at time code {code:g} is {position[particle].tolist()}; the "
            f"simulation has diverged, reduce its time step"
        )
    size = 0
    for prim in moving:
        size += _write_points(prim, frame, code, position, velocity)
        if broken is not None and prim.springs is not None:  # broken springs have no width
            widths = (prim.width * (1.0 - broken[prim.springs])).astype(np.float32)
            prim.prim.GetPrim().GetAttribute("widths").Set(Vt.FloatArray.FromNumpy(widths), code)
    return size
