"""What a notebook gets: a widget whose frames are the trajectory, or a picture and the reason."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from warpbots.view import mimebundle, notebook, save_html, show, widget
from warpbots.view.palette import CONTRACT, packed

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def live(monkeypatch):
    """As in a notebook with a kernel."""
    pytest.importorskip("k3d")
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("WARPBOTS_STATIC", raising=False)
    monkeypatch.setattr(notebook, "_in_notebook", lambda: True)


def by_name(plot, name):
    return next(o for o in plot.objects if o.name == name)


def png(bundle):
    return Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))


def test_static_mode_has_a_picture_and_no_widget(flat, live, monkeypatch):
    monkeypatch.setenv("WARPBOTS_STATIC", "1")
    bundle = flat._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png"}
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
    assert WIDGET in mimebundle(flat)


def test_without_the_extra_the_text_says_how_to_get_it(flat, live, monkeypatch):
    monkeypatch.setattr(widget, "missing_packages", lambda: ["k3d"])
    monkeypatch.setattr(notebook, "missing_packages", lambda: ["k3d"])
    bundle = mimebundle(flat)
    assert set(bundle) == {"text/plain", "image/png"}
    assert 'needs k3d: pip install "warpbots[notebook]"' in bundle["text/plain"]


def test_outside_of_a_notebook_there_is_a_picture(flat, monkeypatch):
    monkeypatch.delenv("WARPBOTS_STATIC", raising=False)
    view = show(flat)
    assert view.widget is None
    assert view.plot is None
    assert set(view._repr_mimebundle_()) == {"text/plain", "image/png"}


def test_a_bundle_is_json_with_all_three(flat, live):
    bundle = mimebundle(flat)
    assert set(bundle) == {"text/plain", "image/png", WIDGET}
    assert json.loads(json.dumps(bundle))[WIDGET]["model_id"]


@pytest.mark.parametrize("every", [1, 5])
def test_frames_of_the_widget_are_those_of_the_trajectory(trajectory, live, every):
    view = show(trajectory, every)
    positions = by_name(view.plot, "particles").positions
    frames = list(trajectory.frames(every))
    assert list(positions) == [str(k) for k in range(len(frames))]
    for (_, x, _), shown in zip(frames, positions.values(), strict=True):
        upright = x if x.shape[1] == 3 else np.column_stack([x[:, 0], np.zeros(len(x)), x[:, 1]])
        np.testing.assert_array_equal(shown, upright.astype(np.float32))
    assert list(by_name(view.plot, "time").text.values()) == [f"{time:.2f} s" for time, _, _ in frames]


def test_controls_are_linked_in_the_browser(flat, live, monkeypatch):
    import ipywidgets

    links = []
    monkeypatch.setattr(ipywidgets, "jslink", lambda source, target: links.append((source, target)))
    view = show(flat, 4)
    play, slider = view.widget.children[1].children
    assert (play.max, slider.max) == (3, 3)
    assert play.interval == 40  # real time, 0.12 s in 3 frames
    assert links == [((play, "value"), (slider, "value")), ((slider, "value"), (view.plot, "time"))]


def test_obstacles_stand_in_the_widget(flat, live):
    bump = by_name(show(flat, 12).plot, "bump")
    assert len(bump.indices) > 100
    assert np.linalg.norm(bump.vertices[:, [0, 2]] - (0.75, 0.0), axis=1).max() == pytest.approx(0.04, abs=0.004)


def test_driven_regions_are_tinted_in_the_widget(flat, live):
    colors = by_name(show(flat, 1).plot, "particles").colors
    inside = flat.matter.regions["left"]
    last = colors["12"][inside]
    assert len(np.unique(last)) == 1  # in 2D there is no shading
    red, expected = int(last[0]) >> 16, int(packed(CONTRACT[None])[0]) >> 16
    assert red == pytest.approx(expected, abs=12)  # the last signal is 0.8
    assert len(np.unique(colors["12"][~inside])) == 2


def test_the_browser_is_not_sent_too_much(flat, monkeypatch):
    room = 5 * 12 * len(flat.matter)
    monkeypatch.setattr(widget, "_BYTES", room)
    assert widget.moments(flat, None).tolist() == [0, 3, 6, 9, 12]


def test_every_below_one_is_refused(flat):
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        show(flat, 0)


def test_a_page_needs_no_network(flat, tmp_path):
    pytest.importorskip("k3d")
    page = save_html(tmp_path / "motion.html", flat, 4).read_text(encoding="utf-8")
    assert "<title>bar &amp; disc</title>" in page
    assert "<script src" not in page
    assert "max: 3" in page
    assert [p.name for p in tmp_path.iterdir()] == ["motion.html"]


def test_a_page_that_cannot_be_written_leaves_nothing(flat, tmp_path):
    pytest.importorskip("k3d")
    with pytest.raises(OSError, match=r"cannot write .*motion\.html"):
        save_html(tmp_path / "nowhere" / "motion.html", flat)
    assert not list(tmp_path.iterdir())


def test_a_page_without_k3d_says_how_to_get_it(flat, tmp_path, monkeypatch):
    from warpbots.view import html_page

    monkeypatch.setattr(html_page, "missing_packages", lambda: ["k3d"])
    with pytest.raises(ImportError, match=r'save_html needs k3d: pip install "warpbots\[notebook\]"'):
        save_html(tmp_path / "motion.html", flat)
