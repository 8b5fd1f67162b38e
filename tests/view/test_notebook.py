"""What a notebook shows of a trajectory: a picture in every reader, a player without a kernel, a widget on request."""

import base64
import dataclasses
import html
import io
import json
import re
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from warpbots.surfaces.skin import skins_of
from warpbots.view import html_page, k3d_plot, live_view, mimebundle, notebook, save_html, show
from warpbots.view.k3d_plot import new_plot
from warpbots.view.motion import collect
from warpbots.view.palette import CONTRACT, body_colors, packed
from warpbots.view.upright_view import upright


@pytest.fixture
def live(monkeypatch):
    """As in a notebook with a kernel."""
    pytest.importorskip("k3d")
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("WARPBOTS_STATIC", raising=False)
    monkeypatch.setattr(notebook, "in_notebook", lambda: True)


def by_name(widget, name):
    return next(o for o in widget.children[0].objects if o.name == name)


def png(bundle):
    return Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))


def page_in(markup):
    """The page that the frame of a player opens."""
    starter = html.unescape(re.search(r'<iframe srcdoc="([^"]*)"', markup).group(1))
    return json.loads(re.search(r"^const page = (.*);$", starter, re.M).group(1))


def unpacked(page):
    """The header of the motion in a page, and the bytes that follow it."""
    block = zlib.decompress(base64.b64decode(re.search(r'<script id="motion"[^>]*>([^<]*)<', page).group(1)))
    length = int.from_bytes(block[:4], "little")
    return json.loads(block[4 : 4 + length]), block[4 + length :]


def header_of(page):
    return unpacked(page)[0]


def test_static_mode_has_a_picture_alone(flat, live, monkeypatch):
    monkeypatch.setenv("WARPBOTS_STATIC", "1")
    bundle = flat._repr_mimebundle_()
    assert list(bundle) == ["image/png", "text/plain"]
    assert png(bundle).size[0] == 1200
    assert "pip install" not in bundle["text/plain"]
    assert "480 particles" not in bundle["text/plain"]
    assert f"{len(flat.matter)} particles, 12 control intervals, 0.12 s" in bundle["text/plain"]


def test_a_picture_in_a_notebook_is_small_and_looks_like_the_strip(trajectory, monkeypatch):
    monkeypatch.setenv("WARPBOTS_STATIC", "1")
    view = show(trajectory)
    bundle = view._repr_mimebundle_()
    shown, strip = (np.asarray(image.convert("RGB")).astype(int) for image in (png(bundle), view.picture))
    away = np.abs(shown - strip).max(axis=2)
    assert np.quantile(away, 0.99) <= 12
    assert (away[(strip == 255).all(axis=2)] == 0).all()
    whole = io.BytesIO()
    view.picture.save(whole, format="PNG", optimize=True)
    assert len(bundle["image/png"]) * 0.75 < 0.6 * len(whole.getvalue())


def test_static_0_is_not_static(flat, live, monkeypatch):
    monkeypatch.setenv("WARPBOTS_STATIC", "0")
    assert "text/html" in mimebundle(flat)


def test_without_k3d_there_is_a_player_and_no_widget(flat, live, monkeypatch):
    monkeypatch.setattr(notebook, "missing_packages", lambda: ["k3d"])
    monkeypatch.setitem(sys.modules, "k3d", None)
    assert "text/html" in mimebundle(flat)
    with pytest.raises(ImportError, match=r'live_view needs k3d: pip install "warpbots\[notebook\]"'):
        live_view(flat)


def test_outside_of_a_notebook_there_is_a_picture(flat, monkeypatch):
    monkeypatch.delenv("WARPBOTS_STATIC", raising=False)
    view = show(flat)
    assert view.player == ""
    assert list(view._repr_mimebundle_()) == ["image/png", "text/plain"]


def test_what_a_cell_shows_needs_no_kernel(trajectory, live):
    """No widget, as readers prefer it even where its model is gone."""
    bundle = mimebundle(trajectory)
    assert list(bundle) == ["image/png", "text/plain", "text/html"]
    assert json.loads(json.dumps(bundle)) == bundle


def test_html_without_frames_and_scripts_is_the_picture(trajectory, live):
    bundle = mimebundle(trajectory)
    left = re.sub(r"<iframe.*?</iframe>", "", bundle["text/html"], flags=re.S)
    assert re.findall(r"<(\w+)", left) == ["div", "img"]
    assert f'src="data:image/png;base64,{bundle["image/png"]}"' in left
    assert html.escape(repr(trajectory)) in left


def test_a_player_is_a_page_without_references(trajectory, live):
    markup = mimebundle(trajectory)["text/html"]
    page = page_in(markup)
    assert header_of(page)["frames"] == trajectory.steps + 1
    for text in (markup, page):
        assert not re.search(r"""(src|href|action)\s*=\s*["'](?!data:)""", text)
        assert not re.search(r"@import|url\(\s*['\"]?http|import\(", text)
    assert "</script" not in re.search(r"const page = (.*);", html.unescape(markup)).group(1)


def test_a_player_is_not_too_large_and_says_which_states_it_shows(solid, live, monkeypatch):
    whole = mimebundle(solid)
    assert len(whole["text/html"]) < 1.1 * html_page._LARGEST
    assert "the player shows" not in whole["text/plain"]
    size = len(page_in(whole["text/html"]))
    monkeypatch.setattr(html_page, "_LARGEST", 0.98 * size)
    fewer = mimebundle(solid)
    page = page_in(fewer["text/html"])
    assert len(page) <= 0.98 * size
    count = header_of(page)["frames"]
    assert 2 <= count < solid.steps + 1
    assert f"the player shows {count} of {solid.steps + 1} states, which fit in" in fewer["text/plain"]
    assert f"{count} of {solid.steps + 1} states" in html.unescape(fewer["text/html"])


@pytest.mark.parametrize("every", [1, 5])
def test_frames_of_the_widget_are_those_of_the_trajectory(trajectory, live, every):
    view = live_view(trajectory, every)
    frames = list(trajectory.frames(every))
    times = [f"{time:.2f} s" for time, _, _ in frames]
    assert list(by_name(view, "time").text.values()) == times
    for skin in skins_of(trajectory.scene, trajectory.matter):
        mesh = by_name(view, trajectory.scene.bodies[skin.body].name)
        assert list(mesh.vertices) == [str(k) for k in range(len(frames))]
        for (_, x, _), shown in zip(frames, mesh.vertices.values(), strict=True):
            expected = skin.at(x.astype(np.float32))[0]
            if x.shape[1] == 2:  # an outline, filled between its vertices and the particles
                expected = np.concatenate([expected, x[skin.members]])
                expected = np.column_stack([expected[:, 0], np.zeros(len(expected)), expected[:, 1]])
            np.testing.assert_array_equal(shown, expected.astype(np.float32))


def test_bodies_without_a_skin_are_particles(flat, live):
    motion = dataclasses.replace(collect(flat, [0, 12]), skins=())
    points = next(o for o in new_plot(motion).objects if o.name == "particles")
    for x, shown in zip(motion.position, points.positions.values(), strict=True):
        np.testing.assert_array_equal(shown[:, [0, 2]], x)


def test_controls_are_linked_in_the_browser(flat, live, monkeypatch):
    import ipywidgets

    links = []
    monkeypatch.setattr(ipywidgets, "jslink", lambda source, target: links.append((source, target)))
    view = live_view(flat, 4)
    play, slider = view.children[1].children
    assert (play.max, slider.max) == (3, 3)
    assert play.interval == 40  # real time, 0.12 s in 3 frames
    assert links == [((play, "value"), (slider, "value")), ((slider, "value"), (view.children[0], "time"))]


def test_obstacles_stand_in_the_widget(flat, live):
    bump = by_name(live_view(flat, 12), "bump")
    assert len(bump.indices) > 100
    assert np.linalg.norm(bump.vertices[:, [0, 2]] - (0.75, 0.0), axis=1).max() == pytest.approx(0.04, abs=0.004)


def test_driven_regions_are_tinted_in_the_widget(flat, live):
    bar = skins_of(flat.scene, flat.matter)[0]
    inside = flat.matter.regions["left"][bar.members]
    colors = by_name(live_view(flat, 1), "bar").colors["12"][-len(inside) :]  # those of the particles
    last = colors[inside]
    assert len(np.unique(last)) == 1  # in 2D there is no shading
    red, expected = int(last[0]) >> 16, int(packed(CONTRACT[None])[0]) >> 16
    assert red == pytest.approx(expected, abs=12)  # the last signal is 0.8
    assert len(np.unique(colors[~inside])) == 1


def test_the_browser_is_not_sent_too_much(flat, monkeypatch):
    room = 5 * 12 * len(flat.matter)
    monkeypatch.setattr(k3d_plot, "_BYTES", room)
    assert k3d_plot.moments(flat, None).tolist() == [0, 3, 6, 9, 12]


def test_every_below_one_is_refused(flat):
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        show(flat, 0)


def test_a_page_needs_no_network(flat, tmp_path):
    page = save_html(tmp_path / "motion.html", flat, 4).read_text(encoding="utf-8")
    assert "<title>bar &amp; disc</title>" in page
    assert "<script src" not in page
    assert header_of(page)["times"] == pytest.approx([0.0, 0.04, 0.08, 0.12])
    assert [p.name for p in tmp_path.iterdir()] == ["motion.html"]


def test_a_page_that_cannot_be_written_leaves_nothing(flat, tmp_path):
    with pytest.raises(OSError, match=r"cannot write .*motion\.html"):
        save_html(tmp_path / "nowhere" / "motion.html", flat)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["flat", "solid"])
def test_a_page_holds_the_motion(request, name):
    """Unpacked as player.js does it: vertices of skins within half a step of a coordinate, and their colours."""
    trajectory = request.getfixturevalue(name)
    motion = collect(trajectory, range(trajectory.steps + 1))
    header, data = unpacked(html_page.page_of(motion))
    shape = header["frames"], header["vertices"], 3
    count = int(np.prod(shape))
    raw = np.frombuffer(data[header["geometry"] :], dtype=np.uint8)
    places = np.cumsum(
        (raw[:count] + 256 * raw[count : 2 * count].astype(np.uint16)).reshape(shape), axis=0, dtype=np.uint16
    )
    x = header["lower"] + np.array(header["step"]) * places
    rgba = np.cumsum(raw[2 * count : 2 * count + count * 4 // 3].reshape(*shape[:2], 4), axis=0, dtype=np.uint8)
    first = 0
    for skin in motion.skins:
        inner = len(skin.members) if motion.scene.dim == 2 else 0
        for k, (position, control) in enumerate(zip(motion.position, motion.control, strict=True)):
            expected = upright(skin.at(position)[0])
            part = slice(first, first + len(expected))
            np.testing.assert_allclose(x[k, part], expected, atol=0.51 * max(header["step"]) + 1e-7)
            color = body_colors(motion.scene, motion.particles, control)[skin.owner]
            np.testing.assert_array_equal(rgba[k, part, :3], np.round(255.0 * color))
        first += len(expected) + inner
    assert max(header["step"]) < 1e-4 * np.ptp(motion.position)
