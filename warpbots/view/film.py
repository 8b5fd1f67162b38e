"""Shows a motion as a strip of pictures or as a film, with a fixed camera."""

import contextlib
import importlib.util
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.output_files import replacing
from warpbots.quantities import ColorMap
from warpbots.scene import Shape
from warpbots.scene.field_types import checked
from warpbots.surfaces.skin import skins_of
from warpbots.trajectory import Trajectory
from warpbots.view.camera import Camera
from warpbots.view.color_bar import BAR_HEIGHT, add_color_bar
from warpbots.view.color_reduction import palette_of, reduced
from warpbots.view.figure_layout import axes_layout, columns_for, width_for
from warpbots.view.motion import Motion, collect, evenly
from warpbots.view.palette import PAPER
from warpbots.view.picture import SceneAxes

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image


__all__ = ["animate", "film_strip", "film_writer", "strip"]

_DPI = 100
_STRIP_WIDTH = 1200  # pixels
_COLORS = 128  # in the palette that all frames of a GIF share
_SAMPLES = 12  # frames from which the palette is chosen
_LINGER = 0.6  # extra time for the last frame of a GIF [s]


@checked
def film_strip(
    trajectory: "Trajectory[Any]",
    frames: int = 6,
    *,
    world: int = 0,
    cut: Shape | None = None,
    goal: np.ndarray | Sequence[Any] | None = None,
    color: str | None = None,
) -> "Image":
    """One picture that shows evenly spaced moments of a motion side by side, from the start to the end.

    Args:
        trajectory: The motion; it is simulated again.
        frames: Number of pictures, at least 2; fewer are drawn if the motion has fewer states.
        world: Index of the world.
        cut: A shape, only in 3D. Soft matter that is inside this shape at rest is not drawn, so that bones become
            visible. None to draw all matter.
        goal: Points that are the goal of a task [m], shape (dim,) or (n, dim), which are marked; None for no marks.
        color: Quantity that the colours of soft bodies show, with a colour bar: ``"stress"``, ``"strain"``,
            ``"activation"``, or a parameter of elements such as ``"youngs_modulus"``; see `warpbots.usd.write`. None
            for the colours of the bodies.

    Returns:
        An image with a width of 1200 pixels, which a notebook displays; ``.save("strip.png")`` writes the image to a
        file.

    Raises:
        ValueError: `cut` is not a shape or is given in 2D, `frames` is below 2, there is no such world, `goal` has the
            wrong shape, or `color` is not the name of a quantity.
    """
    return strip(collect(trajectory, evenly(trajectory.steps, frames), world, goal, color), cut)


def strip(motion: Motion, cut: Shape | None = None) -> "Image":
    """All frames of `motion` side by side, 1200 pixels wide; soft matter inside `cut` at rest is not drawn."""
    camera = motion.camera()
    columns = columns_for(camera, _STRIP_WIDTH / _DPI, len(motion))
    rows = -(-len(motion) // columns)
    figure, places = figure_of(camera, _STRIP_WIDTH, rows, columns, motion.color_map)
    skins = motion.skins if cut is None else skins_of(motion.scene, motion.particles, cut)
    for k in range(len(motion)):
        ax = figure.add_axes(places[k])
        stage = SceneAxes(motion.scene, motion.particles, camera, ax, motion.solids, cut, skins, motion.goals, k == 0)
        _show(motion, k, stage)
        if motion.scene.dim == 2:
            lowest = k + columns >= len(motion)
            ax.tick_params(labelbottom=lowest, labelleft=k % columns == 0)
            ax.xaxis.label.set_visible(lowest)
            ax.yaxis.label.set_visible(k % columns == 0)
    return image_of(figure)


@checked
def animate(
    path: str | os.PathLike,
    trajectory: "Trajectory[Any]",
    fps: float = 25.0,
    seconds: float | None = None,
    width: int = 560,
    *,
    world: int = 0,
    goal: np.ndarray | Sequence[Any] | None = None,
    color: str | None = None,
) -> Path:
    """Write a motion as a film: a GIF or an MP4.

    An MP4 needs the program ffmpeg or ``pip install "warpbots[video]"``.

    Args:
        path: The file; its ending ``.gif`` or ``.mp4`` determines the format.
        trajectory: The motion; it is simulated again.
        fps: Frames per second, at most 50 for a GIF.
        seconds: Duration of the film [s]; None for the duration of the motion (real time).
        width: Width of the picture, or height of the picture if it is taller than wide [pixels].
        world: Index of the world.
        goal: Points that are the goal of a task [m], shape (dim,) or (n, dim), which are marked; None for no marks.
        color: Quantity that the colours of soft bodies show, with a colour bar: ``"stress"``, ``"strain"``,
            ``"activation"``, or a parameter of elements such as ``"youngs_modulus"``; see `warpbots.usd.write`. None
            for the colours of the bodies.

    Returns:
        `path`.

    Raises:
        ValueError: The ending is unknown, or a number is out of its range.
        ImportError: The file is an MP4, and there is no encoder.
        RuntimeError: The encoder failed.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    path = Path(path)
    write = film_writer(path)
    span = trajectory.steps * trajectory.control_interval
    seconds = span if seconds is None else seconds
    if not (fps > 0.0 and seconds > 0.0 and width >= 64):
        raise ValueError(
            f"animate: fps and seconds must be positive and width at least 64 pixels, got {fps:g}, {seconds:g} and "
            f"{width}"
        )
    if write is _write_gif and fps > 50.0:
        raise ValueError(f"animate: a GIF shows at most 50 frames per second, got fps={fps:g}; write an .mp4 instead")
    with replacing(path) as (temporary,):
        motion = collect(trajectory, evenly(trajectory.steps, max(2, round(seconds * fps) + 1)), world, goal, color)
        write(temporary, motion, width, (len(motion) - 1) / seconds)
    return path


def figure_of(
    camera: Camera, width: int, rows: int = 1, columns: int = 1, color_map: ColorMap | None = None
) -> tuple["Figure", list]:
    """A figure whose width and height are even numbers of pixels, and the positions of its axes above a colour bar."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    (_, height), places = axes_layout(camera, width / _DPI, rows, columns)
    bar = 0.0 if color_map is None else BAR_HEIGHT
    places = [(x, (bar + y * height) / (bar + height), w, h * height / (bar + height)) for x, y, w, h in places]
    height += bar
    size = width // 2 * 2 / _DPI, round(height * _DPI / 2) * 2 / _DPI
    figure = Figure(figsize=size, dpi=_DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    if color_map is not None:
        add_color_bar(figure, color_map)
    return figure, places


def image_of(figure: "Figure") -> "Image":
    """The picture into which `figure` is rendered."""
    from PIL import Image

    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())


def _frames(motion: Motion, camera: Camera, size: int) -> Iterator["Image"]:
    figure, places = figure_of(camera, round(_DPI * width_for(camera, size / _DPI)), color_map=motion.color_map)
    stage = SceneAxes(
        motion.scene, motion.particles, camera, figure.add_axes(places[0]), motion.solids, skins=motion.skins,
        goals=motion.goals,
    )  # fmt: skip
    for k in range(len(motion)):
        _show(motion, k, stage)
        yield image_of(figure)


def _show(motion: Motion, frame: int, stage: SceneAxes) -> None:
    """Draw the frame with index `frame` of a motion on the axes of `stage`."""
    stage.show(
        motion.position[frame], motion.control[frame], poses=motion.poses[frame], time=motion.time[frame],
        obstacles=None if motion.obstacles is None else motion.obstacles[frame],
        colors=None if motion.values is None else motion.colors(frame),
    )  # fmt: skip


def film_writer(path: Path) -> Callable[[Path, Motion, int, float], None]:
    """The function that writes a film in the format of `path`.

    Raises:
        ValueError: The ending is unknown.
        ImportError: The file is an MP4, and there is no encoder.
    """
    if path.suffix.lower() == ".gif":
        return _write_gif
    if path.suffix.lower() != ".mp4":
        raise ValueError(f"cannot write {path}: a film ends in .gif or .mp4, got {path.suffix or 'no ending'!r}")
    if _encoder() is None:
        raise ImportError(
            f'cannot write {path}: an .mp4 needs an encoder; pip install "warpbots[video]", or install the program '
            f"ffmpeg, or write {path.with_suffix('.gif').name}"
        )
    return _write_mp4


def _encoder() -> str | None:
    """Path of the program ffmpeg, from the machine or from the package imageio-ffmpeg; None if there is none."""
    if found := shutil.which("ffmpeg"):
        return found
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    import imageio_ffmpeg

    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:  # no program in the wheel of this platform
        return None


def _write_gif(path: Path, motion: Motion, size: int, fps: float) -> None:
    camera = motion.camera()
    palette = palette_of(_frames(motion.pick(evenly(len(motion) - 1, _SAMPLES)), camera, size), _COLORS)
    frames = (reduced(frame, palette) for frame in _frames(motion, camera, size))
    ends = np.round(100.0 * np.arange(1, len(motion) + 1) / fps)  # GIF counts time in hundredths of a second
    delays = (10 * np.diff(ends, prepend=0.0)).astype(int)
    delays[-1] += int(1000 * _LINGER)
    next(frames).save(
        path, format="GIF", save_all=True, append_images=frames, duration=delays.tolist(), loop=0, optimize=False
    )  # fmt: skip


def _write_mp4(path: Path, motion: Motion, size: int, fps: float) -> None:
    frames = _frames(motion, motion.camera(), size)
    first = next(frames)
    width, height = first.size
    command = [
        _encoder(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
        "-r", f"{fps:g}", "-i", "-", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart",
        "-f", "mp4", str(path),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    with contextlib.suppress(BrokenPipeError):  # it has ended early; its message follows below
        for image in itertools.chain([first], frames):
            process.stdin.write(image.tobytes())
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"ffmpeg failed ({process.returncode}): {said.decode(errors='replace').strip()}")
