"""A trajectory as moving particles, or moving rigid bodies, over the file of its scene.

Three layers: the file of the scene, which is left as it is; the results, which only add particles to soft bodies and
hide their rest shapes, and move rigid ones; and a root that combines the two. Frames are written as they come and
flushed to disk, so that memory does not grow with the length of the trajectory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdUtils, Vt

from warpbots.scene import Scene, SoftBody, bars_of
from warpbots.usd.files import export, replacing_layers, sign
from warpbots.usd.frame import Frame, stage_frame
from warpbots.usd.gprims import width
from warpbots.usd.reader import read_stage
from warpbots.usd.robot_results import moving_bodies, write_poses
from warpbots.usd.robots import points_of
from warpbots.usd.scene_writer import scene_layer
from warpbots.usd.schema import RESULT_API
from warpbots.usd.source import is_source_of, relative
from warpbots.usd.survey import Survey
from warpbots.usd.target import editable, free_path, to_scene_coordinates
from warpbots.usd.values import apply

__all__ = ["write_trajectory"]

_FLUSH = 2**24
"""Bytes of samples after which the results go to disk."""

_THIN = 0.08
"""Width of the drawn springs of a lattice over their length."""

_LONGEST_TEXT = 64
"""Longest array in a text file; longer ones are slow and large in text (the limit of Omniverse's validator, too)."""


def write_trajectory(
    path: Path, trajectory: Any, fps: float, every: int, velocities: bool, springs: bool = False
) -> None:
    """Write `trajectory` to `path`; see `warpbots.usd.write`.

    Args:
        path: Absolute path of the file that combines scene and results.
        trajectory: Has `scene`; `frames(every)`, an iterator of time [s], positions [m] and velocities [m/s], both of
            shape (n, dim); and `particles` with `volume` [m^dim] and `body`, the index of the body in the scene, both
            of shape (n,), and, if they are joined by springs, `ends`, shape (n_springs, 2), and `wears`: whether they
            can break, in which case `states(every)` says which are broken, too. Of rigid bodies it has `states(every)`
            and `simulation`, which senses where they are.
        fps: Time codes per second.
        every: Write the states after every so many control intervals.
        velocities: Whether to write velocities.
        springs: Whether to write all springs, or the bars of trusses alone.

    Raises:
        ValueError: A file of the scene would be overwritten, the trajectory has no frames or no finite positions, or
            `springs` are wanted of what has none.
        OSError: A file cannot be written; what was there before is unchanged.
    """
    if not (np.isfinite(fps) and fps > 0.0):
        raise ValueError(f"fps must be a positive number of time codes per second, got {fps}; 60 is usual")
    if springs and not hasattr(getattr(trajectory, "particles", None), "ends"):
        raise ValueError("springs=True needs a motion of masses and springs; use MassSpring, or leave it out")
    scene = trajectory.scene
    source = Path(scene.source) if scene.source else None
    results = path.with_name(f"{path.stem}_results.usdc")
    if source in (path, results):
        raise ValueError(
            f"{path}: this would overwrite {source}, the file of the scene; give the trajectory another name"
        )
    kept = source is not None and is_source_of(scene.source, scene)
    layer = None if kept else scene_layer(scene, path.parent)
    scene_file = source if kept else _scene_file(path, layer, source)
    files = (results, path) if kept else (results, scene_file, path)
    with replacing_layers(*files) as temporary:
        place = dict(zip(files, temporary, strict=True))
        if not kept:
            export(layer, place[scene_file])
        below = Sdf.Layer.FindOrOpen(str(place.get(scene_file, scene_file)))
        span = _write_results(place[results], below, trajectory, fps, every, velocities, springs)
        export(_root([results, scene_file], path.parent, below, fps, span), place[path])


def _scene_file(path: Path, layer: Sdf.Layer, source: Path | None) -> Path:
    """Where the scene goes beside `path`: as text where that is short; never over the file it came from."""
    arrays = []
    layer.Traverse("/", lambda p: arrays.append(_array_length(layer, p)) if p.IsPrimPropertyPath() else None)
    suffix = ".usda" if max(arrays, default=0) <= _LONGEST_TEXT else ".usdc"
    name, number = f"{path.stem}_scene", 1
    while path.with_name(name + suffix) == source:
        number += 1
        name = f"{path.stem}_scene_{number}"
    return path.with_name(name + suffix)


def _array_length(layer: Sdf.Layer, path: Sdf.Path) -> int:
    attribute = layer.GetAttributeAtPath(path)
    return len(attribute.default) if attribute and attribute.typeName.isArray and attribute.default else 0


def _root(files: list[Path], folder: Path, below: Sdf.Layer, fps: float, span: tuple[float, float]) -> Sdf.Layer:
    """The layer that combines `files`, with the metadata of the scene, which USD does not take from sublayers."""
    root = Sdf.Layer.CreateAnonymous(".usda")
    UsdUtils.CopyLayerMetadata(below, root, True)
    for file in files:
        root.subLayerPaths.append(relative(file, folder))
    root.timeCodesPerSecond = root.framesPerSecond = fps
    root.startTimeCode, root.endTimeCode = span
    sign(root)
    return root


def _write_results(
    path: Path, below: Sdf.Layer, trajectory: Any, fps: float, every: int, velocities: bool, springs: bool
) -> tuple[float, float]:
    """Write the layer of the particles; the time codes of its first and last frame."""
    results = Sdf.Layer.CreateNew(str(path))
    results.timeCodesPerSecond = results.framesPerSecond = fps
    stage = Usd.Stage.CreateInMemory()
    root = stage.GetRootLayer()
    UsdUtils.CopyLayerMetadata(below, root, True)
    root.timeCodesPerSecond = fps
    root.subLayerPaths = [results.identifier, below.identifier]
    stage.SetEditTarget(results)
    scene, found = read_stage(stage, contact_points=points_of(trajectory.scene))
    frame = stage_frame(stage, scene.dim)
    if scene.rigid:
        codes = _write_robots(results, found, scene, trajectory, fps, every, frame)
        results.startTimeCode, results.endTimeCode = codes
        results.Save()
        return codes
    body_of = np.asarray(trajectory.particles.body)
    moving: list[_Moving] = []
    for k, body in enumerate(scene.bodies):
        moving += _define(stage, found.bodies[body.name], body, trajectory.particles, body_of == k, frame, springs)
    codes, pending = [], 0
    for time, position, velocity, broken in _moments(trajectory, every):
        codes.append(_code(float(time), fps))
        rate = velocity if velocities else None
        pending += _write_frame(moving, frame, codes[-1], position, rate, broken, len(body_of))
        if pending > _FLUSH:
            results.Save()
            pending = 0
    if not codes:
        raise ValueError("the trajectory has no frames to write; roll it out for at least one step")
    results.startTimeCode, results.endTimeCode = codes[0], codes[-1]
    results.Save()
    return codes[0], codes[-1]


def _write_robots(
    results: Sdf.Layer, found: Survey, scene: Scene, trajectory: Any, fps: float, every: int, frame: Frame
) -> tuple[float, float]:
    """Write the poses of all rigid bodies; the time codes of the first and last frame."""
    moving, codes, pending = moving_bodies(found, scene, frame), [], 0
    for time, state in trajectory.states(every):
        found_now = trajectory.simulation.sense(state, **trajectory.parameters)
        position, rotation = (a[0].cpu().numpy() for a in (found_now.position, found_now.rotation))
        codes.append(_code(float(time), fps))
        pending += write_poses(moving, codes[-1], position, rotation)
        if pending > _FLUSH:
            results.Save()
            pending = 0
    if not codes:
        raise ValueError("the trajectory has no frames to write; roll it out for at least one step")
    return codes[0], codes[-1]


class _Moving(NamedTuple):
    """A prim that moves.

    Attributes:
        prim: The prim.
        follows: The particles that its points follow, shape (n_points,).
        springs: The springs that its curves show, shape (n_curves,); None for points.
        width: Width of an unbroken curve in scene units; None for points.
    """

    prim: UsdGeom.PointBased
    follows: np.ndarray
    springs: np.ndarray | None = None
    width: float | None = None


def _moments(trajectory: Any, every: int) -> Iterator[tuple]:
    """Time [s], positions [m], velocities [m/s] and, where springs can break, 1 for broken ones and 0 for others."""
    if not getattr(trajectory.particles, "wears", False):
        for moment in trajectory.frames(every=every):
            yield *moment, None
        return
    for time, state in trajectory.states(every):
        yield time, *(a[0].cpu().numpy() for a in (state.position, state.velocity, state.broken))


def _define(
    stage: Usd.Stage, prim: Usd.Prim, body: SoftBody, particles: Any, members: np.ndarray, frame: Frame, springs: bool
) -> list[_Moving]:
    """The prims that move in place of the rest shape of `body`, each with the particles that its points follow."""
    prim = editable(prim)
    points = UsdGeom.Points(_result(stage, prim, body, "Particles", "Points", frame))
    for rest in prim.GetChildren() if not prim.IsA(UsdGeom.Gprim) else [prim]:
        if rest.IsA(UsdGeom.Imageable) and RESULT_API not in rest.GetPrimTypeInfo().GetAppliedAPISchemas():
            UsdGeom.Imageable(rest).CreateVisibilityAttr(UsdGeom.Tokens.invisible)
    follows = np.flatnonzero(members)
    points.CreateIdsAttr(Vt.Int64Array(range(len(follows))))
    wide = width(np.asarray(particles.volume)[follows], frame.dim)
    points.CreateWidthsAttr(Vt.FloatArray.FromNumpy(wide.astype(np.float32)))
    points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    moving = [_Moving(points, follows)]
    truss = bars_of(body.shape)
    if hasattr(particles, "ends") and (springs or truss):
        shown = np.flatnonzero(members[particles.ends[:, 0]])
        ends = particles.ends[shown]
        curves = UsdGeom.BasisCurves(_result(stage, prim, body, "Springs", "BasisCurves", frame))
        curves.CreateTypeAttr(UsdGeom.Tokens.linear)
        curves.CreateCurveVertexCountsAttr(Vt.IntArray(len(ends), 2))
        length = np.linalg.norm(np.diff(particles.position[ends], axis=1)[:, 0], axis=1)
        wide = 2.0 * np.median(truss.radius) if truss else _THIN * np.median(length)
        curves.CreateWidthsAttr([float(wide)] * (len(shown) if particles.wears else 1))
        curves.SetWidthsInterpolation(UsdGeom.Tokens.uniform if particles.wears else UsdGeom.Tokens.constant)
        moving.append(_Moving(curves, ends.ravel(), shown, float(wide)))
    return moving


def _result(stage: Usd.Stage, body_prim: Usd.Prim, body: SoftBody, name: str, kind: str, frame: Frame) -> Usd.Prim:
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


def _write_frame(
    moving: list[_Moving],
    frame: Frame,
    code: float,
    position: Any,
    velocity: Any | None,
    broken: np.ndarray | None,
    count: int,
) -> int:
    """Write one frame at time code `code`; the number of its bytes."""
    position = np.asarray(position)
    if position.shape != (count, frame.dim):
        raise ValueError(f"positions of a frame must have shape ({count}, {frame.dim}), got {position.shape}")
    if not np.isfinite(position).all():
        particle = int(np.argwhere(~np.isfinite(position))[0][0])
        raise ValueError(
            f"the position of particle {particle} at time code {code:g} is {position[particle].tolist()}; the "
            f"simulation has failed before, reduce its time step"
        )
    size = 0
    for points, follows, springs, wide in moving:
        values = np.ascontiguousarray(frame.lift(position[follows]), dtype=np.float32)
        points.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(values), code)
        points.GetExtentAttr().Set(_extent(points, values), code)
        if broken is not None and springs is not None:  # what is broken has no width
            widths = (wide * (1.0 - broken[springs])).astype(np.float32)
            points.GetPrim().GetAttribute("widths").Set(Vt.FloatArray.FromNumpy(widths), code)
        if velocity is not None:
            rates = np.ascontiguousarray(frame.lift(np.asarray(velocity)[follows]), dtype=np.float32)
            points.GetVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(rates), code)
        size += values.nbytes * (1 if velocity is None else 2)
    return size


def _extent(points: UsdGeom.PointBased, values: np.ndarray) -> Vt.Vec3fArray:
    """Box about all points with their widths, shape (2, 3)."""
    if not len(values):
        return UsdGeom.Boundable.ComputeExtentFromPlugins(points, Usd.TimeCode.EarliestTime())
    widths = np.asarray(points.GetPrim().GetAttribute("widths").Get())
    radius = 0.5 * (widths[:, None] if len(widths) == len(values) else widths.max())
    return Vt.Vec3fArray.FromNumpy(np.stack([(values - radius).min(0), (values + radius).max(0)]))


def _code(time: float, fps: float) -> float:
    """Time code of `time` [s]; a whole number where it is one but for rounding."""
    code = time * fps
    return float(round(code)) if abs(code - round(code)) < 1e-6 else code
