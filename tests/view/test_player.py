"""The player answers to a mouse, fingers and keys, and shows what was simulated: in a browser, where one is installed."""

import base64
import json
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from browser import chromium
from view_cases import GREEN, RED

from warpbots.quantities import cable_routes
from warpbots.view import save_html
from warpbots.view.browser.motion_data import motion_data
from warpbots.view.flat_matter import OUTLINE
from warpbots.view.html_page import cell_player
from warpbots.view.k3d_plot import moments
from warpbots.view.motion import collect
from warpbots.view.palette import GROUND, INK
from warpbots.view.upright_view import FIELD, perspective, smallest_aspect, upright

READ = """(() => {
    const inner = %(window)s, document = inner.document, root = document.querySelector(".wb-player");
    const frame = inner.frameElement ? inner.frameElement.getBoundingClientRect() : {x: 0, y: 0};
    const read = name => {
        const element = document.querySelector(name), box = element.getBoundingClientRect();
        const x = box.x + box.width / 2, y = box.y + box.height / 2;
        return {x: frame.x + x, y: frame.y + y, width: box.width, height: box.height,
                covered: document.elementFromPoint(x, y) !== element && !element.contains(document.elementFromPoint(x, y)),
                inside: box.x >= 0 && box.y >= 0 && box.right <= inner.innerWidth && box.bottom <= inner.innerHeight};
    };
    const names = ["play", "seek", "speed", "loop", "view", "full"];
    const found = Object.fromEntries(names.map(name => [name, read(`[data-do=${name}]`)]));
    const element = name => document.querySelector(`[data-do=${name}]`);
    const canvas = document.querySelector(".wb-view"), gl = canvas.getContext("webgl2");
    const pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    let sum = 7;
    for (let i = 0; i < pixels.length; i += 4) sum = (31 * sum + pixels[i] + 7 * pixels[i + 2]) %% 1000003;
    return {...found, canvas: read(".wb-view"), pixels: sum, clock: document.querySelector(".wb-clock").textContent,
            time: +element("seek").value, last: +element("seek").max, said: element("seek").ariaValueText,
            rate: +element("speed").value, repeats: element("loop").ariaPressed, name: element("play").ariaLabel,
            playing: element("play").ariaLabel === "Pause", filled: document.fullscreenElement === root,
            focus: document.activeElement.dataset.do || document.activeElement.tagName,
            labels: [...document.querySelectorAll(".wb-number")].filter(e => !e.hidden).map(e => {
                const b = e.getBoundingClientRect(); return [e.textContent, b.x, b.y, b.right, b.bottom]; })};
})()"""
READY = "!!%s.document.querySelector('.wb-player')?.dataset.frames"
NO_FAULT = "window.faults = []; onerror = (...all) => { faults.push(all.join(' ')); };" \
    "onunhandledrejection = event => { faults.push(String(event.reason)); };"  # fmt: skip


def read_header(text):
    """The words at the start of the data of a player."""
    block = zlib.decompress(base64.b64decode(text))
    return json.loads(block[4 : 4 + struct.unpack("<I", block[:4])[0]])


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=NO_FAULT)
        yield page


@pytest.fixture(scope="module")
def pages(flat, solid, tmp_path_factory):
    """Pages of their own, and a longer one in which the output of a cell stands."""
    folder = tmp_path_factory.mktemp("pages")
    frame, _ = cell_player(collect(flat, moments(flat, None), 0))
    (folder / "cell.html").write_text(
        f"<body><h1>above</h1>{frame}<p style='height: 900px'>below</p></body>", encoding="utf-8"
    )
    files = {name: save_html(folder / f"{name}.html", motion) for name, motion in (("flat", flat), ("solid", solid))}
    return files | {"cell": folder / "cell.html"}


class Player:
    """A page that is open."""

    def __init__(self, browser, path: Path, size=(900, 600)):
        self.browser, self.window = browser, "frames[0]" if path.stem == "cell" else "window"
        browser.resize(*size)
        browser.open(path)
        if path.stem == "cell":
            browser.until("!!frames[0].document.querySelector('button')")
            x, y = browser.run("(b => [b.x, b.y])(document.querySelector('iframe').getBoundingClientRect())")
            browser.click(x + 60, y + 15)
        browser.until(READY % self.window)

    def __call__(self):
        return self.browser.run(READ % {"window": self.window})

    def until(self, holds, seconds=20.0):
        """The first reading that holds."""
        end = time.monotonic() + seconds
        while not holds(found := self()):
            assert time.monotonic() < end, str(found)
            time.sleep(0.05)
        return found

    def click(self, name):
        box = self()[name]
        self.browser.click(box["x"], box["y"])

    def paused(self):
        """The player at rest, at the start, with nothing that has the focus."""
        if self()["playing"]:
            self.click("play")
        self.until(lambda s: not s["playing"])
        self.browser.key("Home", 36)
        return self.until(lambda s: s["time"] == 0.0)


@pytest.fixture(params=["flat", "cell", "solid"])
def player(request, browser, pages):
    yield Player(browser, pages[request.param])
    assert browser.run("faults") == []


@pytest.fixture
def wide(browser, pages):
    """The player of the motion in 3D, at rest."""
    made = Player(browser, pages["solid"])
    made.paused()
    return made


def place(seen, value):
    """Where the thumb of a slider is [pixels]."""
    box, thumb = seen["seek"], 16.0
    return box["x"] - box["width"] / 2 + thumb / 2 + (box["width"] - thumb) * value / seen["last"], box["y"]


def test_nothing_lies_over_the_controls_and_clicks_pause_and_play(browser, player):
    for size in ((900, 600), (360, 560), (320, 480)):
        browser.resize(*size)
        seen = player.until(lambda s, width=size[0]: abs(s["canvas"]["x"] - width / 2) < 10)
        for name in ("play", "seek", "speed", "loop", "view", "full"):
            assert not seen[name]["covered"] and seen[name]["inside"], (name, size)
            assert min(seen[name]["width"], seen[name]["height"]) >= 32.0, (name, size)
        assert seen["seek"]["width"] > 150
        assert seen["canvas"]["y"] + seen["canvas"]["height"] / 2 <= min(seen[n]["y"] for n in ("play", "seek"))
        rows = {round(seen[n]["y"]) for n in ("play", "speed", "loop", "view", "full")}
        assert len(rows) == 1, (rows, size)
    player.until(lambda s: s["playing"])
    player.click("play")
    paused = player.until(lambda s: not s["playing"] and s["name"] == "Play")
    time.sleep(0.3)
    assert player()["time"] == paused["time"]
    player.click("play")
    player.until(lambda s: s["playing"] and s["time"] != paused["time"])


def test_the_slider_is_dragged_and_the_motion_goes_on_from_there(browser, player):
    start = player.paused()
    for fraction in (0.7, 0.25):
        browser.drag(place(start, start["time"]), place(start, fraction * start["last"]))
        start = player.until(lambda s, f=fraction: abs(s["time"] - f * s["last"]) < 0.05 * s["last"])
        assert not start["playing"]
        now, end = (f"{start[name]:.{3 if start['last'] < 0.1 else 2}f}" for name in ("time", "last"))
        assert (start["clock"], start["said"]) == (f"{now} / {end} s", f"{now} of {end} seconds")
    player.click("play")
    on = player.until(lambda s: s["playing"] and s["time"] > start["time"])
    player.until(lambda s: s["time"] < on["time"])  # after the end it begins again


def test_keys(browser, player, flat, solid):
    start = player.paused()
    interval = start["last"] / (solid if start["last"] < 0.1 else flat).steps
    for key, code, frames in (("ArrowRight", 39, 1), ("ArrowRight", 39, 2), ("ArrowLeft", 37, 1)):
        browser.key(key, code)
        player.until(lambda s, t=frames * interval: s["time"] == pytest.approx(t, rel=1e-5))
    browser.key("End", 35)
    player.until(lambda s: s["time"] == s["last"])
    browser.key("Home", 36)
    player.until(lambda s: s["time"] == 0.0)
    browser.key(" ", 32, " ")
    player.until(lambda s: s["playing"])
    browser.key(" ", 32, " ")
    speed = player.until(lambda s: not s["playing"])["rate"]
    browser.key(">", 190, ">")
    player.until(lambda s: s["rate"] == 2.0 * speed)
    for _ in range(9):
        browser.key("<", 188, "<")
    player.until(lambda s: s["rate"] == 1.0 / 16.0)
    browser.key("l", 76, "l")
    player.until(lambda s: s["repeats"] == "false")
    browser.key("l", 76, "l")
    player.until(lambda s: s["repeats"] == "true")


def test_keys_of_a_control_that_has_the_focus_are_its_own(browser, player):
    player.paused()
    inner = player.window
    browser.run(f"{inner}.document.querySelector('[data-do=loop]').focus()")
    browser.key(" ", 32, " ")
    seen = player.until(lambda s: s["repeats"] == "false")
    assert not seen["playing"]
    browser.run(f"{inner}.document.querySelector('[data-do=speed]').focus()")
    browser.key("ArrowDown", 40)
    faster = player.until(lambda s: s["rate"] == 2.0 * seen["rate"])
    assert faster["time"] == 0.0
    browser.run(f"{inner}.document.querySelector('[data-do=seek]').focus()")
    browser.key("ArrowRight", 39)  # by a frame, not by the step of a slider
    player.until(lambda s: 0.0 < s["time"] < 0.2 * s["last"])


def test_tab_reaches_every_control_in_order(browser, wide):
    browser.run("document.querySelector('.wb-view').focus()")
    order = []
    for _ in range(6):
        browser.key("Tab", 9)
        order.append(wide()["focus"])
        ring = browser.run("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid", order
    assert order == ["play", "seek", "speed", "loop", "view", "full"]


def test_controls_have_names_for_who_does_not_see_them(browser, wide):
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    found = {(n["role"]["value"], n["name"]["value"]) for n in nodes if "name" in n and not n["ignored"]}
    assert {
        ("button", "Play"), ("slider", "Time"), ("combobox", "Speed"), ("button", "Repeat"), ("button", "First view"),
        ("button", "Full screen"), ("toolbar", "Player"), ("group", "Motion of block"),
    } <= found  # fmt: skip
    assert any(role in ("image", "img") and name.startswith("block, 3D, 0.06 seconds") for role, name in found)


def test_fingers(browser, player):
    start = player.paused()
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    try:
        browser.tap(start["play"]["x"], start["play"]["y"])
        player.until(lambda s: s["playing"])
        browser.tap(start["play"]["x"], start["play"]["y"])
        player.until(lambda s: not s["playing"])
        browser.touch([place(start, 0.1 * start["last"])], [place(start, 0.8 * start["last"])])
        there = player.until(lambda s: abs(s["time"] - 0.8 * s["last"]) < 0.06 * s["last"])
        x, y = there["canvas"]["x"], there["canvas"]["y"]
        browser.touch([(x, y)], [(x + 80, y + 10)])
        turned = player.until(lambda s: s["pixels"] != there["pixels"])
        browser.touch([(x - 40, y), (x + 40, y)], [(x - 90, y), (x + 90, y)])
        near = player.until(lambda s: s["pixels"] != turned["pixels"])
        browser.tap(near["view"]["x"], near["view"]["y"])
        player.until(lambda s: s["pixels"] == there["pixels"])
    finally:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_the_mouse_turns_moves_and_zooms_the_view(browser, player):
    start = player.paused()
    x, y = start["canvas"]["x"], start["canvas"]["y"]
    seen = [start["pixels"]]
    for action in (
        lambda: browser.drag((x, y), (x + 70, y + 20)),
        lambda: browser.drag((x, y), (x + 70, y + 20), modifiers=8),
        lambda: browser.wheel(x, y, -300.0),
    ):
        action()
        seen.append(player.until(lambda s: s["pixels"] not in seen)["pixels"])
    browser.key("v", 86, "v")
    player.until(lambda s: s["pixels"] == seen[0])
    assert not player()["canvas"]["covered"]


def test_a_wheel_scrolls_past_a_player_in_a_page_until_it_is_clicked(browser, player):
    start = player.paused()
    x, y = start["canvas"]["x"], start["canvas"]["y"]
    browser.wheel(x, y, 120.0)
    if player.window != "window":
        browser.until("scrollY > 50")
        time.sleep(0.3)
        assert player()["pixels"] == start["pixels"]
        browser.run("scrollTo(0, 0)")
        browser.click(x, y)
        browser.wheel(x, y, 120.0)
    player.until(lambda s: s["pixels"] != start["pixels"])
    assert browser.run("scrollY") == 0


def test_full_screen(browser, player):
    player.paused()
    for leave in (lambda: browser.key("f", 70, "f"), lambda: player.click("full")):
        player.click("full")
        player.until(lambda s: s["filled"])
        leave()
        player.until(lambda s: not s["filled"])


def test_without_repeat_it_stops_at_the_end(browser, player):
    player.paused()
    browser.key("l", 76, "l")
    for _ in range(6):
        browser.key(">", 190, ">")
    player.until(lambda s: s["repeats"] == "false" and s["rate"] == 4.0)
    player.click("play")
    player.until(lambda s: not s["playing"] and s["time"] == s["last"])
    for _ in range(9):
        browser.key("<", 188, "<")  # slowly, so that it is seen on its way
    player.click("play")  # once more, from the start
    player.until(lambda s: s["time"] < s["last"])


def test_the_speed_is_that_of_time(browser, pages):
    """At a sixteenth, 0.12 s take 1.9 s of a clock."""
    player = Player(browser, pages["flat"])
    player.paused()
    for _ in range(6):
        browser.key("<", 188, "<")
    measured = browser.run("""(async () => {
        const seek = document.querySelector("[data-do=seek]"), next = () => new Promise(requestAnimationFrame);
        document.querySelector("[data-do=play]").click();
        while (+seek.value < 0.01) await next();
        const begun = performance.now(), from = +seek.value;
        while (performance.now() < begun + 1000) await next();
        return (+seek.value - from) / ((performance.now() - begun) / 1000);
    })()""")
    assert measured == pytest.approx(1.0 / 16.0, rel=0.15)


def test_who_asks_for_less_motion_sees_none(browser, pages):
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    try:
        player = Player(browser, pages["flat"])
        time.sleep(0.4)
        seen = player()
        assert not seen["playing"] and seen["time"] == 0.0
        player.click("play")
        player.until(lambda s: s["playing"])
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


def test_without_webgl_the_page_says_so(browser, pages):
    script = "HTMLCanvasElement.prototype.getContext = () => null;"
    number = browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    try:
        browser.open(pages["flat"])
        browser.until("document.querySelector('[role=alert]')?.textContent.startsWith('This browser has no WebGL 2')")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=number)


@pytest.mark.parametrize("size", [(900, 600), (360, 560)])
def test_labels_have_units_and_do_not_overlap(browser, pages, size):
    for name in ("flat", "solid"):
        labels = Player(browser, pages[name], size)()["labels"]
        assert len(labels) >= 3
        axes = {"(x)", "(y)"} if name == "flat" else {"(x)", "(y)", "(z)"}
        assert {text.split()[-1] for text, *_ in labels if " " in text} == axes
        for i, (_, x0, y0, x1, y1) in enumerate(labels):
            assert x0 >= 0.0 and x1 <= size[0] and y0 >= 0.0
            for _, u0, v0, u1, v1 in labels[:i]:
                assert x1 <= u0 or u1 <= x0 or y1 <= v0 or v1 <= y0


def seen_at(browser, motion, point):
    """Where a point is seen [pixels]."""
    view = perspective(motion.camera())
    eye, center, up = (np.array(view[i : i + 3]) for i in (0, 3, 6))
    forward = (center - eye) / np.linalg.norm(center - eye)
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    width, height = browser.run(
        "[document.querySelector('.wb-view').clientWidth, document.querySelector('.wb-view').clientHeight]"
    )
    tangent = np.tan(np.radians(FIELD / 2.0)) * max(1.0, smallest_aspect(motion.camera()) / (width / height))
    arm = upright(point[None])[0] - eye
    scale = height / (2.0 * tangent * (arm @ forward))
    x, y = width / 2.0 + scale * (arm @ right), height / 2.0 - scale * (arm @ np.cross(right, forward))
    assert 0.0 < x < width and 0.0 < y < height
    return x, y


def color_at(browser, motion, point):
    """Colour of a page where a point is seen, in [0, 1]."""
    x, y = seen_at(browser, motion, point)
    return np.array(browser.run(f"""(() => {{
        const canvas = document.querySelector(".wb-view"), gl = canvas.getContext("webgl2"), p = new Uint8Array(4);
        gl.readPixels({round(x)}, canvas.height - 1 - {round(y)}, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, p);
        return [...p.subarray(0, 3)];
    }})()""")) / 255.0  # fmt: skip


@pytest.mark.parametrize("size", [(900, 600), (360, 560)])
def test_bodies_are_where_they_are(browser, pages, flat, solid, size):
    for name, trajectory in (("flat", flat), ("solid", solid)):
        player, motion = Player(browser, pages[name], size), collect(trajectory, range(trajectory.steps + 1))
        player.paused()
        browser.key("End", 35)
        player.until(lambda s: s["time"] == s["last"])
        ball = motion.position[-1][motion.particles.body == 1].mean(axis=0)
        color = color_at(browser, motion, ball)
        assert np.argmax(color) == np.argmax(GREEN) and color.max() > 2.0 * np.sort(color)[1]


def test_the_ground_lies_below_with_a_shadow_on_it(browser, pages, solid):
    """Far from the body the floor has the colour of the ground under light; right beside the body it is darker."""
    motion = collect(solid, range(solid.steps + 1))
    player = Player(browser, pages["solid"])
    player.paused()
    far, near = (color_at(browser, motion, np.array([x, y, 0.0])) for x, y in ((0.232, -0.01), (0.12, -0.003)))
    assert np.abs(far / far.max() - np.array(GROUND) / max(GROUND)).max() < 0.03 and far.min() > 0.75
    assert 0.74 < (near / far).mean() < 0.985, near / far
    assert np.abs(near / near.max() - far / far.max()).max() < 0.02


def test_goals_are_marked(browser, solid, tmp_path):
    point = np.array([0.3, 0.2, 0.2])
    player = Player(browser, save_html(tmp_path / "goal.html", solid, goal=point))
    player.paused()
    motion = collect(solid, [0, solid.steps], goal=point)
    x, y = browser.run(
        "(m => [m.e, m.f])(new DOMMatrix(getComputedStyle(document.querySelector('.wb-goal')).transform))"
    )
    np.testing.assert_allclose((x, y), seen_at(browser, motion, point), atol=1.0)
    assert browser.run("document.querySelector('.wb-goal').textContent") == "goal"


def test_cables_and_outlines_are_lines(browser, pages, flat, solid):
    """A cable is seen through the block that contains it, and a flat bar has a darker border than inside."""
    motion = collect(solid, range(solid.steps + 1))
    Player(browser, pages["solid"]).paused()
    middle = motion.position[0][cable_routes(motion.scene, motion.particles)[1]].mean(axis=0)
    assert np.abs(color_at(browser, motion, middle) - INK).max() < 0.2  # mixed with red at the edge of a line
    motion = collect(flat, range(flat.steps + 1))
    Player(browser, pages["flat"]).paused()
    inside, *across = (color_at(browser, motion, np.array([0.3, y])) for y in (0.08, *np.linspace(0.096, 0.104, 9)))
    border = min(across, key=sum)
    np.testing.assert_allclose(border, OUTLINE * np.array(RED), atol=0.1)
    assert inside[0] > 1.4 * border[0]


@pytest.mark.parametrize("color", [None, "stress"])
def test_outlines_are_neutral_where_colours_show_values(flat, color):
    """Beside a scale of colours a shade of the body, here dark red and dark green, would be misread."""
    motion = collect(flat, [0, flat.steps], color=color)
    lines = read_header(motion_data(motion))["lines"]
    expected = [INK, INK] if color else [tuple(OUTLINE * np.array(c)) for c in (RED, GREEN)]
    np.testing.assert_allclose([line["color"] for line in lines], expected)
