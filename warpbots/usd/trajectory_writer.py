"""A trajectory as moving particles, or moving rigid bodies, over the file of its scene.

Three layers: the file of the scene, which is left as it is; the results, which only add particles to soft bodies and
hide their rest shapes, or move the points of their meshes, and move rigid ones; and a root that combines the two.
Frames are written as they come and flushed to disk, so that memory does not grow with the length of the trajectory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdUtils, Vt

from warpbots.scene import Scene, SoftBody, bars_of
from warpbots.usd.geometry.gprims import width
from warpbots.usd.reader import read_stage
from warpbots.usd.rigid.pose_samples import moving_bodies, write_poses
from warpbots.usd.rigid.robot_reader import points_of
from warpbots.usd.scene_writer import scene_layer
from warpbots.usd.soft.moving_points import Moving, hide_rest, moving_mesh, result, write_points
from warpbots.usd.stage.inventory import Survey
from warpbots.usd.stage.preserved_source import is_source_of, relative
from warpbots.usd.stage.stage_files import export, replacing_layers, sign
from warpbots.usd.stage.target import editable
from warpbots.usd.stage.units import Frame, stage_frame

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
            of shape (n,). If some are nodes of meshes it has `meshes`, each with `body`, `nodes`, a slice of the
            particles, and `faces`, vertex indices within it; if they are joined by springs, `ends`, shape (n_springs,
            2), and `inelastic`: whether they can break, in which case `states(every)` says which are broken, too. Of
            rigid bodies it has `states(every)` and `simulation`, which senses where they are.
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
        if not scene.soft:
            results.startTimeCode, results.endTimeCode = codes
            results.Save()
            return codes
    body_of = np.asarray(trajectory.particles.body)
    meshes = {mesh.body: mesh for mesh in getattr(trajectory.particles, "meshes", ())}
    moving: list[Moving] = []
    for k, body in enumerate(scene.bodies):
        if not isinstance(body, SoftBody):
            continue
        mesh, prim = meshes.get(k), found.bodies[body.name]
        if mesh is not None:
            moving.append(moving_mesh(stage, prim, body, mesh, trajectory.particles, frame))
        else:
            moving += _define(stage, prim, body, trajectory.particles, body_of == k, frame, springs)
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


def _moments(trajectory: Any, every: int) -> Iterator[tuple]:
    """Time [s], positions [m], velocities [m/s] and, where springs can break, 1 for broken ones and 0 for others."""
    if not getattr(trajectory.particles, "inelastic", False):
        for moment in trajectory.frames(every=every):
            yield *moment, None
        return
    for time, state in trajectory.states(every):
        yield time, *(a[0].cpu().numpy() for a in (state.position, state.velocity, state.broken))


def _define(
    stage: Usd.Stage, prim: Usd.Prim, body: SoftBody, particles: Any, members: np.ndarray, frame: Frame, springs: bool
) -> list[Moving]:
    """The prims that move in place of the rest shape of `body`, each with the particles that its points follow."""
    prim = editable(prim)
    hide_rest(prim)
    points = UsdGeom.Points(result(stage, prim, body, "Particles", "Points", frame))
    follows = np.flatnonzero(members)
    points.CreateIdsAttr(Vt.Int64Array(range(len(follows))))
    wide = width(np.asarray(particles.volume)[follows], frame.dim)
    points.CreateWidthsAttr(Vt.FloatArray.FromNumpy(wide.astype(np.float32)))
    points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    moving = [Moving(points, follows)]
    truss = bars_of(body.shape)
    if hasattr(particles, "ends") and (springs or truss):
        shown = np.flatnonzero(members[particles.ends[:, 0]])
        ends = particles.ends[shown]
        curves = UsdGeom.BasisCurves(result(stage, prim, body, "Springs", "BasisCurves", frame))
        curves.CreateTypeAttr(UsdGeom.Tokens.linear)
        curves.CreateCurveVertexCountsAttr(Vt.IntArray(len(ends), 2))
        length = np.linalg.norm(np.diff(particles.position[ends], axis=1)[:, 0], axis=1)
        wide = 2.0 * np.median(truss.radius) if truss else _THIN * np.median(length)
        curves.CreateWidthsAttr([float(wide)] * (len(shown) if particles.inelastic else 1))
        curves.SetWidthsInterpolation(UsdGeom.Tokens.uniform if particles.inelastic else UsdGeom.Tokens.constant)
        moving.append(Moving(curves, ends.ravel(), shown, float(wide)))
    return moving


def _write_frame(
    moving: list[Moving],
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
    for prim in moving:
        size += write_points(prim, frame, code, position, velocity)
        if broken is not None and prim.springs is not None:  # what is broken has no width
            widths = (prim.width * (1.0 - broken[prim.springs])).astype(np.float32)
            prim.prim.GetPrim().GetAttribute("widths").Set(Vt.FloatArray.FromNumpy(widths), code)
    return size


def _code(time: float, fps: float) -> float:
    """Time code of `time` [s]; a whole number where it is one but for rounding."""
    code = time * fps
    return float(round(code)) if abs(code - round(code)) < 1e-6 else code
