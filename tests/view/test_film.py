"""Films and strips show the motion that was simulated, and are written whole or not at all."""

import errno
import importlib.util
import itertools
import shutil

import numpy as np
import pytest
from PIL import Image
from view_cases import GREEN

import warpbots as wb
from warpbots.view import animate, film, film_strip
from warpbots.view.figure_layout import axes_layout, columns_for
from warpbots.view.motion import collect, evenly
from warpbots.view.palette import GOAL


def pixels(image):
    return np.asarray(image.convert("RGB")) / 255.0


def green_row(image):
    """Mean row, from the top, of what is green."""
    red, green, blue = np.moveaxis(pixels(image), 2, 0)
    rows = np.nonzero((green > 1.5 * red) & (green > 1.5 * blue))[0]
    assert len(rows) > 20
    return rows.mean()


def frames_of(path):
    with Image.open(path) as film:
        for k in range(film.n_frames):
            film.seek(k)
            yield film.convert("RGB"), film.info["duration"]


def test_moments_are_even_and_have_both_ends():
    assert evenly(12, 5).tolist() == [0, 3, 6, 9, 12]
    assert evenly(2, 9).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="frames must be at least 2"):
        evenly(12, 1)


def test_collected_moments_are_those_of_the_trajectory(trajectory):
    steps = [0, 2, 5]
    motion = collect(trajectory, steps)
    frames = list(trajectory.frames())
    for k, step in enumerate(steps):
        time, x, _ = frames[step]
        assert motion.time[k] == time
        np.testing.assert_array_equal(motion.position[k], x.astype(np.float32))
    driven = trajectory.control[0].cpu().numpy()[[0, 1, 4]]  # by the interval that ended there
    np.testing.assert_array_equal(motion.control, driven)


def test_a_world_that_does_not_exist_is_refused(flat):
    with pytest.raises(ValueError, match="world must be in 0 to 0, got 1"):
        film_strip(flat, world=1)


def test_pictures_of_a_sheet_are_read_like_a_text(flat):
    camera = collect(flat, [0, 12]).camera()
    (width, height), places = axes_layout(camera, 12.0, rows=2, columns=3)
    left, bottom, w, h = np.array(places).T
    assert (np.diff(left.reshape(2, 3), axis=1) > w[0]).all()
    assert (bottom[:3] > bottom[3:] + h[3:]).all()
    assert (left + w <= 1.0).all()
    assert (bottom + h <= 1.0).all()
    np.testing.assert_allclose(w * width / (h * height), camera.aspect)


def test_the_camera_sees_the_surface_of_coarse_matter():
    """Its particles are half a cell inside, which is more than the rim of a picture."""
    beam = wb.SoftBody("beam", wb.shapes.Box((0, -0.02, -0.02), (0.2, 0.02, 0.02)), wb.Material(3e5, 0.25))
    sim = wb.Simulation(wb.Scene([beam]), wb.MassSpring(0.02), 0.01, device="cpu")
    motion = collect(sim.rollout(None, 1), np.array([0, 1]))
    camera = motion.camera()
    for skin, position in itertools.product(motion.skins, motion.position):
        seen = camera.project(skin.at(position)[0])
        assert (seen >= camera.window[0] - 1e-9).all()
        assert (seen <= camera.window[1] + 1e-9).all()


def test_strip_shows_the_disc_where_it_falls(flat):
    strip = film_strip(flat, frames=3)
    motion = collect(flat, evenly(flat.steps, 3))
    camera = motion.camera()
    columns = columns_for(camera, 12.0, 3)
    (_, height), places = axes_layout(camera, 12.0, -(-3 // columns), columns)
    assert strip.size == (1200, 2 * round(50 * height))
    disc = flat.matter.body == 1
    for (left, bottom, width, tall), x in zip(places, motion.position, strict=False):
        box = np.array(
            [left * 1200, (1 - bottom - tall) * 100 * height, (left + width) * 1200, (1 - bottom) * 100 * height]
        )
        panel = strip.crop(tuple(int(v) for v in box.round()))
        lower, upper = camera.window
        expected = (upper[1] - x[disc, 1].mean()) / (upper[1] - lower[1]) * panel.height
        assert green_row(panel) == pytest.approx(expected, abs=1.5)


def test_gif_has_the_frames_the_size_and_the_time_it_should_have(trajectory, tmp_path):
    path = animate(tmp_path / "motion.gif", trajectory, fps=50.0, width=240)
    assert [p.name for p in tmp_path.iterdir()] == ["motion.gif"]
    images, delays = zip(*frames_of(path), strict=True)
    seconds = trajectory.steps * trajectory.control_interval
    assert len(images) == round(50 * seconds) + 1
    assert max(images[0].size) == 240
    assert sum(delays[:-1]) == pytest.approx(1000 * seconds, abs=10)
    assert all((pixels(a) != pixels(b)).any() for a, b in zip(images, images[1:], strict=False))
    assert images[0].getpixel((1, 1)) == (255, 255, 255)
    rows = [green_row(image) for image in images]
    assert all(np.diff(rows) >= 0.0)
    assert rows[-1] > rows[0]  # it falls


def test_colours_survive_the_palette(flat, tmp_path):
    path = animate(tmp_path / "motion.gif", flat, width=240)
    for image, _ in frames_of(path):
        away = np.abs(pixels(image) - GREEN).max(axis=2)
        assert away.min() < 0.03


def test_seconds_stretch_time_and_not_the_motion(flat, tmp_path):
    path = animate(tmp_path / "slow.gif", flat, fps=10.0, seconds=1.0, width=120)
    images, delays = zip(*frames_of(path), strict=True)
    assert len(images) == 11
    assert sum(delays[:-1]) == pytest.approx(1000, abs=10)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("motion.avi", {}, "a film ends in .gif or .mp4, got '.avi'"),
        ("motion", {}, "got 'no ending'"),
        ("motion.gif", {"fps": 60.0}, "at most 50 frames per second, got fps=60; write an .mp4"),
        ("motion.gif", {"fps": 0.0}, "fps and seconds must be positive"),
        ("motion.gif", {"seconds": -1.0}, "fps and seconds must be positive"),
        ("motion.gif", {"width": 10}, "width at least 64 pixels"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_simulated(flat, tmp_path, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        animate(tmp_path / name, flat, **arguments)
    assert not list(tmp_path.iterdir())


def test_mp4_without_an_encoder_says_what_to_install(flat, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'motion.mp4: .*pip install "warpbots\[video\]".* or write motion.gif'):
        animate(tmp_path / "motion.mp4", flat)


def test_mp4_is_a_film_by_the_encoder_of_a_wheel(flat, tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    path = animate(tmp_path / "motion.mp4", flat, width=120)
    assert path.read_bytes()[4:8] == b"ftyp"
    assert [p.name for p in tmp_path.iterdir()] == ["motion.mp4"]


def test_ffmpeg_that_fails_leaves_nothing(flat, tmp_path, monkeypatch):
    tool = tmp_path / "bin" / "ffmpeg"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho no such codec >&2\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    with pytest.raises(RuntimeError, match=r"ffmpeg failed \(3\): no such codec"):
        animate(tmp_path / "motion.mp4", flat, width=120)
    assert [p.name for p in tmp_path.iterdir()] == ["bin"]


def test_missing_folder_is_named(flat, tmp_path):
    with pytest.raises(OSError, match=r"cannot write .*nowhere.motion.gif: there is no folder"):
        animate(tmp_path / "nowhere" / "motion.gif", flat)
    assert not list(tmp_path.iterdir())


def test_full_disk_leaves_what_was_there(flat, tmp_path, monkeypatch):
    path = tmp_path / "motion.gif"
    path.write_bytes(b"before")

    def full(self, path, **options):
        path.write_bytes(b"half a film")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(OSError, match=r"cannot write .*motion.gif: No space left on device"):
        animate(path, flat, width=120)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def texts_of(figure):
    """Boxes of all texts that a figure shows [pixels], with the texts; and the size of the figure."""
    figure.canvas.draw()
    renderer, shown = figure.canvas.get_renderer(), []
    for ax in figure.axes:
        shown += ax.texts
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            low, high = sorted(axis.get_view_interval())
            shown += [axis.label, *(t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high)]
    shown = [text for text in shown if text.get_visible() and text.get_text().strip()]
    return [(t.get_text(), t.get_window_extent(renderer).extents) for t in shown], figure.get_size_inches() * figure.dpi


def figures(trajectory, monkeypatch, draw):
    """The figures that `draw` renders."""
    seen, image_of = [], film.image_of
    monkeypatch.setattr(film, "image_of", lambda figure: seen.append(figure) or image_of(figure))
    draw(trajectory)
    return seen


@pytest.mark.parametrize("frames", [2, 4, 9])
def test_no_label_of_a_strip_is_cut_or_overlaps_another(trajectory, frames, monkeypatch):
    (figure,) = figures(trajectory, monkeypatch, lambda t: film_strip(t, frames))
    check_texts(figure)


@pytest.mark.parametrize("width", [64, 120, 240, 560])
def test_no_label_of_a_film_is_cut_or_overlaps_another(trajectory, width, tmp_path, monkeypatch):
    seen = figures(trajectory, monkeypatch, lambda t: animate(tmp_path / "motion.gif", t, fps=10.0, width=width))
    check_texts(seen[-1])


def check_texts(figure):
    shown, (width, height) = texts_of(figure)
    assert len(shown) >= (1 if width < 125 else 3)
    for k, (name, (x0, y0, x1, y1)) in enumerate(shown):
        assert x0 >= -0.5 and x1 <= width + 0.5 and y0 >= -0.5 and y1 <= height + 0.5, (name, x0, y0, x1, y1)
        for other, (u0, v0, u1, v1) in shown[:k]:
            assert min(x1 - u0, u1 - x0) < 1.0 or min(y1 - v0, v1 - y0) < 1.5, (name, other)


def test_every_axis_has_a_unit(trajectory, monkeypatch):
    (figure,) = figures(trajectory, monkeypatch, lambda t: film_strip(t, 4))
    names = {text for text, _ in texts_of(figure)[0]}
    if trajectory.scene.dim == 2:
        assert {"x [m]", "y [m]"} <= names
    else:
        assert {name.split("m  ")[1] for name in names if "m  (" in name} == {"(x)", "(y)", "(z)"}


GOAL_AT = {2: (0.5, 0.55), 3: (0.3, 0.2, 0.2)}  # outside of everything else


def marked(image):
    """Places of the pixels in the colour of goals, shape (n, 2): columns and rows."""
    return np.argwhere(np.abs(pixels(image) - GOAL).max(axis=2) < 0.06)[:, ::-1]


def test_goals_are_marked_where_they_are(trajectory, tmp_path):
    point = np.array(GOAL_AT[trajectory.scene.dim])
    assert not len(marked(film_strip(trajectory, 2)))
    strip = film_strip(trajectory, 2, goal=point)
    motion = collect(trajectory, [0, trajectory.steps], goal=point)
    camera = motion.camera()
    x, y = (camera.project(point) - camera.window[0]) / (camera.window[1] - camera.window[0])
    assert 0.0 < x < 1.0 and 0.0 < y < 1.0
    columns = columns_for(camera, 12.0, 2)
    (_, height), places = axes_layout(camera, 12.0, -(-2 // columns), columns)
    found = marked(strip)
    for left, bottom, w, h in places:
        at = 1200 * (left + x * w), 100 * height * (1 - bottom - y * h)
        near = found[np.abs(found - at).max(axis=1) < 4]
        assert len(near) > 2
        np.testing.assert_allclose(near.mean(axis=0), at, atol=1.5)
    film_path = animate(tmp_path / "motion.gif", trajectory, width=240, goal=np.stack([point, point]))
    assert all(len(marked(image)) for image, _ in frames_of(film_path))


@pytest.mark.parametrize("goal", [(0.0,), np.zeros((1, 1, 3)), (np.nan, 0.0)])
def test_a_wrong_goal_is_refused(flat, goal):
    with pytest.raises(ValueError, match=r"goal must be finite, of shape \(2,\) or \(n, 2\), got"):
        film_strip(flat, 2, goal=goal)
