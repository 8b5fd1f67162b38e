"""Draw the pictures of the gallery: ``python docs/draw_gallery.py [NAME ...]``.

Runs scripts of ``docs/gallery/`` in a temporary folder. The picture that a script writes goes to
``gallery/pictures/``; a loop of its motion, an animated WebP of three seconds, to ``gallery/loops/``; and one moment of
the loop, for readers who ask for less motion, to ``gallery/thumbnails/``.
"""

import contextlib
import dataclasses
import functools
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageChops

import warpbots as wb
from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.ground_height import floor_height
from warpbots.view.motion import Motion, collect
from warpbots.view.picture import SceneAxes

FOLDER = Path(__file__).parent / "gallery"
SCENES = Path(__file__).resolve().parents[1] / "usd_scenes"
SIZE = (384, 256)  # of a loop [pixels]
SECONDS, LINGER = 3.0, 0.6  # duration of a loop, and the time for which it shows the end [s]
RIM = 0.03  # around what is seen, over the size of the picture
LARGEST = 150_000  # [bytes]
QUALITIES = (80, 70, 60, 50, 40, 30)  # of a loop, from which the first is taken that is small enough


@dataclasses.dataclass(frozen=True)
class Look:
    """How the loop of a script is drawn.

    Attributes:
        shown: Names of the motions in the script that stand side by side: a trajectory each, or a list.
        some: Indices of those in a list that are shown; None for all.
        worlds: Worlds of each trajectory that stand side by side.
        columns: Number of columns of the pictures; None for a single row.
        in_turn: Whether the motions are shown one after another, instead of side by side.
        overlaid: Whether all motions are drawn into one picture, instead of side by side.
        each: Whether each motion fills its picture; otherwise all have one scale.
        span: Shares of the motion at which the loop begins and ends.
        still: Share of the loop that is shown to readers who ask for less motion.
        cut: Shape at rest of the soft matter that is left out.
        view: Azimuth and elevation of the viewer [degrees]; only in 3D.
        color: Parameter of tetrahedra whose logarithm determines the colours; None for the colours of the bodies.
        frames: Number of moments.
    """

    shown: tuple[str, ...] = ("motion",)
    some: range | None = None
    worlds: int = 1
    columns: int | None = None
    in_turn: bool = False
    overlaid: bool = False
    each: bool = False
    span: tuple[float, float] = (0.0, 1.0)
    still: float = 0.5
    cut: wb.shapes.Shape | None = None
    view: tuple[float, float] = (-62.0, 20.0)
    color: str | None = None
    frames: int = 48


CUT = wb.shapes.HalfSpace((0, 0, 0), (0, 1, 0))
LOOKS = {
    "beam_of_designed_stiffness": Look(("before", "motion"), columns=2, color="youngs_modulus", still=1.0),
    "bones_in_an_arm": Look(still=1.0, cut=CUT),
    "bouncing_balls": Look(still=0.42),
    "chambers_from_stl": Look(still=0.45),
    "double_pendulum": Look(worlds=8, overlaid=True, span=(0.3, 1.0), view=(-80.0, 8.0)),
    "friction_on_an_incline": Look(view=(-40.0, 22.0), still=0.8),
    "gravity_compensation": Look(("motions",), overlaid=True, view=(-80.0, 10.0), still=0.6),
    "gripper_carries_a_ball": Look(view=(-62.0, 8.0)),
    "hand_from_mjcf": Look(still=1.0),
    "hand_that_grows": Look(("motions",), in_turn=True, view=(-62.0, 35.0), still=1.0),
    "hands_from_a_grammar": Look(("motions",), range(5, 11), columns=3, each=True, still=1.0),
    "identify_stiffness": Look(("guess", "truth", "motion"), overlaid=True, still=1.0),
    "one_finger_three_solvers": Look(("motions",), view=(-90.0, 10.0)),
    "optimise_a_throw": Look(("tries",), range(0, 60, 6), overlaid=True, still=0.8),
    "pneumatic_finger": Look(still=1.0, cut=wb.shapes.HalfSpace((0, 0.015, 0), (0, 1, 0))),
    "octopus_before_and_after": Look(("before", "motion"), still=1.0),
    "quadrupeds_that_learn": Look(("before", "motion"), in_turn=True, view=(-50.0, 40.0), still=1.0, frames=24),
    "trunk_reaches_a_ball": Look(("tries",), range(1, 8, 2), in_turn=True, still=1.0),
    "worlds_of_stiffness": Look(worlds=5, still=0.75),
}
"""Looks of the scripts that differ from the usual one."""


def main() -> None:
    """Run the scripts that are named, or all."""
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py"))
    for name in names:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("usd_scenes").symlink_to(SCENES)
            script = runpy.run_path(str(FOLDER / f"{name}.py"))
            with Image.open(f"{name}.png") as image:
                picture = image.convert("RGB")
        look = LOOKS.get(name, Look())
        frames = frames_of(script, look)
        save(picture, FOLDER / "pictures" / f"{name}.png")
        save(frames[round(look.still * (len(frames) - 1))], FOLDER / "thumbnails" / f"{name}.png")
        (FOLDER / "loops" / f"{name}.webp").write_bytes(encoded(frames))
        plt.close("all")


def save(image: Image.Image, path: Path) -> None:
    """Write an image with a palette, which is a third of its size."""
    image.quantize(200, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def encoded(frames: Sequence[Image.Image]) -> bytes:
    """Frames as an animated WebP that lingers at the end, in the best quality that is small enough.

    Raises:
        ValueError: The loop is too large in the lowest quality.
    """
    times = np.round(np.linspace(0, 1000 * (SECONDS - LINGER), len(frames))).astype(int)
    durations = [*np.diff(times).tolist(), round(1000 * LINGER)]
    for quality in QUALITIES:
        file = io.BytesIO()
        frames[0].save(
            file, "WEBP", save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=quality, method=4
        )
        if file.tell() <= LARGEST:
            return file.getvalue()
    raise ValueError(f"a loop must have at most {LARGEST} bytes, got {file.tell()} in quality {quality}")


def frames_of(script: dict[str, Any], look: Look) -> list[Image.Image]:
    """The frames of a loop: evenly spaced moments of the motions of a script, side by side."""
    shown = [script[name] for name in look.shown]
    lists = [item if isinstance(item, list) else [item] for item in shown]
    several = [item[k] for item in lists for k in look.some or range(len(item))]
    panels = [panel for motion in several for panel in panels_of(motion, look)]
    together = look.overlaid or look.in_turn
    columns = 1 if together else look.columns or len(panels)
    rows = 1 if together else -(-len(panels) // columns)
    width, height = SIZE[0] // columns, SIZE[1] // rows
    cameras = [camera_of(motion, look) for motion, _ in panels]
    groups = [[k] for k in range(len(panels))] if look.each else [[*range(len(panels))]]
    for group in groups:
        fitted = closer([panels[k] for k in group], common([cameras[k] for k in group]), (width, height), look)
        for k in group:
            cameras[k] = fitted
    frames, count = [], len(panels)
    if look.in_turn:
        for i, panel in enumerate(panels):
            moments = [k * count % look.frames for k in range(look.frames) if k * count // look.frames == i]
            frames += [picture for (picture,) in pictures_of([panel], cameras[:1], SIZE, look, moments)]
        return frames
    for pictures in pictures_of(panels, cameras, (width, height), look, range(look.frames)):
        if look.overlaid:
            frames.append(stacked(pictures))
            continue
        frame = Image.new("RGB", SIZE, "white")
        for i, picture in enumerate(pictures):
            frame.paste(picture, (i % columns * width, i // columns * height))
        frames.append(frame)
    return frames


def stacked(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures with one background as layers: what moves in a later one lies in front, in its own colours."""
    whole = functools.reduce(ImageChops.lighter, pictures)
    ground = np.asarray(whole)
    for picture in pictures:
        moves = (np.asarray(picture) != ground).any(axis=2)
        whole.paste(picture, mask=Image.fromarray(moves))
    return whole


def closer(
    panels: Sequence[tuple[Motion, np.ndarray | None]], camera: wb.view.Camera, size: tuple[int, int], look: Look
) -> wb.view.Camera:
    """The view whose window is no larger than what is ever seen in it."""
    aspect = size[0] / size[1]
    camera = dataclasses.replace(camera, window=filled(*camera.window, aspect))
    rough = list(pictures_of(panels, [camera] * len(panels), size, look, range(0, look.frames, 5)))
    return dataclasses.replace(camera, window=filled(*seen(camera, [p for moment in rough for p in moment]), aspect))


def pictures_of(
    panels: Sequence[tuple[Motion, np.ndarray | None]],
    cameras: Sequence[wb.view.Camera],
    size: tuple[int, int],
    look: Look,
    moments: Iterable[int],
) -> Iterator[list[Image.Image]]:
    """The pictures of all panels at each of several moments."""
    stages = [stage_of(motion, camera, size, look) for (motion, _), camera in zip(panels, cameras, strict=True)]
    for k in moments:
        yield [shot(stage, motion, k, value) for (motion, value), stage in zip(panels, stages, strict=True)]


def panels_of(trajectory: Any, look: Look) -> list[tuple[Motion, np.ndarray | None]]:
    """Moments of each world of a trajectory that is shown, and the values that colour the matter."""
    first, last = (share * trajectory.steps for share in look.span)
    moments = np.round(np.linspace(first, last, look.frames)).astype(int)
    panels = []
    for world in range(look.worlds):
        motion = collect(trajectory, np.unique(moments), world)
        motion = motion.pick(np.searchsorted(motion.step, moments))
        value = None if look.color is None else trajectory.parameters[look.color][world].detach().log().numpy()
        panels.append(
            (motion, None if value is None else trajectory.matter.drawn_at(at_nodes(trajectory, value))[:, 0])
        )
    return panels


def at_nodes(trajectory: Any, value: np.ndarray) -> np.ndarray:
    """Mean at each node of the values of its tetrahedra, shape (n_nodes, 1)."""
    tets, count = trajectory.matter.tets, len(trajectory.matter.position)
    weight = np.bincount(tets.ravel(), minlength=count)
    return (np.bincount(tets.ravel(), np.repeat(value, tets.shape[1]), count) / weight)[:, None]


def camera_of(motion: Motion, look: Look) -> wb.view.Camera:
    """A fixed view of a motion."""
    camera = motion.camera()
    if motion.scene.dim == 2 or look.view == Look.view:
        return camera
    turned = wb.view.Camera.around(motion.scene, box_corners(*camera.box), *look.view)
    return dataclasses.replace(turned, box=camera.box)


def common(cameras: Sequence[wb.view.Camera]) -> wb.view.Camera:
    """A view with everything that is in one of several views."""
    ends = [
        (functools.reduce(np.minimum, low), functools.reduce(np.maximum, high))
        for low, high in (
            zip(*(getattr(camera, field) for camera in cameras), strict=True) for field in ("box", "window")
        )
    ]
    return dataclasses.replace(cameras[0], box=ends[0], window=ends[1])


def filled(low: np.ndarray, high: np.ndarray, aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """The smallest window of an aspect ratio around a window."""
    middle, (width, height) = (low + high) / 2, high - low
    size = np.array([max(width, aspect * height), max(height, width / aspect)])
    return middle - size / 2, middle + size / 2


def seen(camera: wb.view.Camera, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
    """The part of a window in which one of several pictures is not white, with a rim."""
    dark = functools.reduce(ImageChops.darker, images)
    left, top, right, bottom = ImageChops.invert(dark).getbbox()
    low, high = camera.window
    size = (high - low) / dark.size
    rim = RIM * size * dark.size
    return low + size * (left, dark.height - bottom) - rim, low + size * (right, dark.height - top) + rim


def stage_of(motion: Motion, camera: wb.view.Camera, size: tuple[int, int], look: Look) -> SceneAxes:
    """Axes that fill a picture of some pixels, without ticks and labels."""
    ax = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100).add_axes((0, 0, 1, 1))
    stage = SceneAxes(motion.scene, motion.particles, camera, ax, motion.solids, look.cut)
    ruler = [*ax.texts]
    if motion.scene.dim == 3 and floor_height(motion.scene) is None:
        ruler += [*ax.patches, *ax.collections]  # a grid on which nothing stands
    elif motion.scene.dim == 3:
        (grid,) = ax.collections
        grid.set_segments(grid.get_segments()[1:])  # without the upright edge, whose numbers are not shown
    for artist in ruler:
        artist.remove()
    ax.set_axis_off()
    return stage


def shot(stage: SceneAxes, motion: Motion, k: int, value: np.ndarray | None) -> Image.Image:
    """The picture of one moment of a motion."""
    obstacles = None if motion.obstacles is None else motion.obstacles[k]
    control = None if value is not None else motion.control[k]
    stage.show(motion.position[k], control, value, poses=motion.poses[k], obstacles=obstacles)
    canvas = stage.ax.figure.canvas
    stage.ax.figure.savefig(picture := io.BytesIO(), format="rgba", dpi=100)
    return Image.frombytes("RGBA", canvas.get_width_height(), picture.getvalue()).convert("RGB")


if __name__ == "__main__":
    os.environ.setdefault("TQDM_DISABLE", "1")
    main()
