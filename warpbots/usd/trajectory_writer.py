"""Writes a trajectory as time samples of soft and rigid bodies, in a layer over the file of its scene.

There are three layers: the file of the scene, which is not changed; the results; and a root that combines the two. The
results either add particles to a soft body and hide its rest shape, or move the points of its mesh; they also move
rigid bodies and obstacles. The motion is simulated once for all of them. Frames are flushed to disk whenever 16 MiB of
samples have been written, so that memory does not grow with the length of the trajectory.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdUtils

from warpbots.output_files import is_same_file
from warpbots.quantities import point_values
from warpbots.scene import Scene
from warpbots.scene.motion_checks import changes_place
from warpbots.trajectory import Trajectory
from warpbots.usd.geometry.obstacle_frames import obstacle_frames
from warpbots.usd.motion_scenery import complete
from warpbots.usd.preserved_source import is_source_of, relative
from warpbots.usd.reader import read_stage
from warpbots.usd.rigid.pose_samples import pose_frames
from warpbots.usd.rigid.robot_reader import points_of
from warpbots.usd.scene_writer import scene_layer, target_of
from warpbots.usd.soft.point_samples import Content, point_frames
from warpbots.usd.soft.shown_values import ShownValues
from warpbots.usd.stage.stage_files import export, replacing_layers, sign
from warpbots.usd.stage.units import stage_frame, time_code

__all__ = ["refuse_overwriting", "write_trajectory"]

_FLUSH = 2**24
"""Number of bytes of samples after which the results are written to disk."""

_Sample = tuple[float, Callable[[float], int]]
"""Time of a frame [s], and a function that writes it at a time code and returns the number of bytes."""

_LONGEST_TEXT, _MOST_SAMPLES = 64, 4
"""Largest length of an array, and largest number of time samples, in a text file; text is slow and large (these are the
limits of Omniverse's validator)."""


def write_trajectory(
    path: Path,
    trajectory: Trajectory[Any],
    fps: float,
    every: int,
    content: Content,
) -> None:
    """Write `trajectory` to `path`; see `warpbots.usd.write`.

    Args:
        path: Absolute path of the file that combines scene and results.
        trajectory: The motion.
        fps: Time codes per second.
        every: Number of control intervals between two frames.
        content: What of the soft bodies to write.

    Raises:
        ValueError: `fps` is not positive, a file of the scene would be overwritten, the trajectory has no frames or no
            finite positions, springs are asked of a motion without springs, or `color` is not the name of a quantity.
        OSError: A file cannot be written; files that were there before are unchanged.
    """
    if not (np.isfinite(fps) and fps > 0.0):
        raise ValueError(f"fps must be a positive number of time codes per second, got {fps}; 60 is usual")
    if content.springs and (trajectory.matter is None or not len(trajectory.matter.springs)):
        raise ValueError("springs=True needs a trajectory of MassSpring; simulate with it, or leave springs out")
    if content.color is not None and trajectory.matter is None:
        raise ValueError(f"color={content.color!r} needs soft bodies, and the scene has none; leave color out")
    scene = trajectory.designed
    source = Path(scene.source) if scene.source else None
    results = _results_file(path)
    refuse_overwriting(path, scene)
    beside = source is not None and source.resolve().parent == path.parent
    kept = beside and is_source_of(scene.source, scene)
    layer = None if kept else scene_layer(scene, path.parent)
    scene_file = source if kept else _scene_file(path, layer, source)
    files = (results, path) if kept else (results, scene_file, path)
    with replacing_layers(*files) as temporary:
        place = dict(zip(files, temporary, strict=True))
        if not kept:
            export(layer, place[scene_file])
        below = Sdf.Layer.FindOrOpen(str(place.get(scene_file, scene_file)))
        span, camera = _write_results(place[results], below, trajectory, fps, every, content)
        export(_root([results, scene_file], path.parent, below, fps, span, camera), place[path])


def refuse_overwriting(path: Path, scene: Scene) -> None:
    """Raise if a trajectory at `path` would overwrite the file of its scene.

    Raises:
        ValueError: The file of the scene would be overwritten.
    """
    source = Path(scene.source) if scene.source else None
    if source is not None and any(is_same_file(source, file) for file in (path, _results_file(path))):
        raise ValueError(
            f"{path}: this would overwrite {source}, the file of the scene; give the trajectory another name"
        )


def _results_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}_results.usdc")


def _scene_file(path: Path, layer: Sdf.Layer, source: Path | None) -> Path:
    """Path for the file of the scene beside `path`: a text file if it is short, and never `source`."""
    short = []
    layer.Traverse("/", lambda p: short.append(_is_short(layer, p)) if p.IsPrimPropertyPath() else None)
    suffix = ".usda" if all(short) else ".usdc"
    name, number = f"{path.stem}_scene", 1
    while source is not None and is_same_file(path.with_name(name + suffix), source):
        number += 1
        name = f"{path.stem}_scene_{number}"
    return path.with_name(name + suffix)


def _is_short(layer: Sdf.Layer, path: Sdf.Path) -> bool:
    """Whether an attribute has few entries and few time samples."""
    attribute = layer.GetAttributeAtPath(path)
    length = len(attribute.default) if attribute and attribute.typeName.isArray and attribute.default else 0
    return length <= _LONGEST_TEXT and layer.GetNumTimeSamplesForPath(path) <= _MOST_SAMPLES


def _root(
    files: list[Path], folder: Path, below: Sdf.Layer, fps: float, span: tuple[float, float], camera: Sdf.Path | None
) -> Sdf.Layer:
    """The layer that combines `files`, with the metadata of the scene, which USD does not take from sublayers."""
    root = Sdf.Layer.CreateAnonymous(".usda")
    UsdUtils.CopyLayerMetadata(below, root, True)
    for file in files:
        root.subLayerPaths.append(relative(file, folder))
    root.timeCodesPerSecond = root.framesPerSecond = fps
    root.startTimeCode, root.endTimeCode = span
    if camera is not None:  # through which Omniverse looks
        root.customLayerData = dict(root.customLayerData) | {"cameraSettings": {"boundCamera": str(camera)}}
    sign(root)
    return root


def _write_results(
    path: Path, below: Sdf.Layer, trajectory: Trajectory[Any], fps: float, every: int, content: Content
) -> tuple[tuple[float, float], Sdf.Path | None]:
    """Write the layer of the results; returns the time codes at its start and end, and the path of the camera."""
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
    paths = {name: prim.GetPath() for name, prim in found.obstacles.items()}  # prims of instances expire below
    bodies = [prim.GetPath() for prim in found.bodies.values()]
    moved = {o.name for o in trajectory.scene.obstacles if changes_place(o, trajectory.scene.actuators)}
    values = None if content.color is None else ShownValues(point_values(trajectory, content.color, "write"))
    kinds: list[Callable[..., Iterator[_Sample]]] = []
    if scene.rigid:
        kinds.append(functools.partial(pose_frames, found, scene, trajectory, frame))
    if scene.soft:
        kinds.append(functools.partial(point_frames, found, scene, trajectory, frame, content, values))
    if moved:
        kinds.append(functools.partial(obstacle_frames, stage, paths, trajectory, frame))
    shared = _shared(trajectory.states(every), len(kinds))
    codes = _write_frames(results, [kind(states) for kind, states in zip(kinds, shared, strict=True)], fps)
    if values is not None:
        _flushed(results, values.complete())
    shown = [*bodies, *(path for name, path in paths.items() if name in moved)]
    camera = complete(target_of(stage, scene, frame), scene, found, shown, codes, content.surfaces)
    span = codes[0], float(np.ceil(codes[-1]))  # players may cut the fraction of a frame
    results.startTimeCode, results.endTimeCode = span
    results.Save()
    return span, camera


def _write_frames(results: Sdf.Layer, parts: Sequence[Iterator[_Sample]], fps: float) -> list[float]:
    """Write the frames of all `parts`, one moment after another; returns their time codes."""
    codes: list[float] = []

    def written() -> Iterator[int]:
        for moment in zip(*parts, strict=True):
            codes.append(time_code(moment[0][0], fps))
            yield sum(write(codes[-1]) for _, write in moment)

    _flushed(results, written())
    if not codes:
        raise ValueError("the trajectory has no frames to write; roll it out for at least one step")
    return codes


def _shared(states: Iterator[tuple[float, Any]], count: int) -> list[Iterator[tuple[float, Any]]]:
    """Several iterators over `states` that are advanced in turn; `itertools.tee` would keep up to 57 states."""
    waiting: list[deque[tuple[float, Any]]] = [deque() for _ in range(count)]

    def one(mine: deque[tuple[float, Any]]) -> Iterator[tuple[float, Any]]:
        while True:
            if not mine:
                moment = next(states, None)
                if moment is None:
                    return
                for each in waiting:
                    each.append(moment)
                del moment
            yield mine.popleft()

    return [one(mine) for mine in waiting]


def _flushed(results: Sdf.Layer, sizes: Iterator[int]) -> None:
    """Exhaust `sizes`, which writes samples, and write the layer to disk whenever enough of them have come together."""
    pending = 0
    for size in sizes:
        pending += size
        if pending > _FLUSH:
            results.Save()
            pending = 0
