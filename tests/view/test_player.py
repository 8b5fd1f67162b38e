"""The player answers to a mouse, a finger and keys: in a browser, where one is installed."""

import time

import pytest
from browser import chromium

from warpbots.view import save_html
from warpbots.view.html_page import cell_player
from warpbots.view.k3d_plot import moments
from warpbots.view.motion import collect

READ = """(async () => {
    const inner = %(window)s, player = await inner.K3DInstance, document = inner.document;
    const frame = inner.frameElement ? inner.frameElement.getBoundingClientRect() : {x: 0, y: 0};
    const read = element => {
        const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        return {x: frame.x + x, y: frame.y + y, width: box.width, height: box.height,
                covered: document.elementFromPoint(x, y) !== element};
    };
    const texts = [...document.querySelectorAll("#canvasTarget div")].map(element => element.innerText);
    const [button, slider] = ["#bar button", "#bar input"].map(name => document.querySelector(name));
    return {button: read(button), slider: read(slider), canvas: read(document.querySelector("canvas")),
            playing: player.autoPlayed, time: player.parameters.time, value: +slider.value, last: +slider.max,
            label: texts.find(text => /^\\d+\\.\\d\\d s$/.test(text)), name: button.ariaLabel,
            eye: player.getWorld().camera.position.toArray()};
})()"""


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("k3d")
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def pages(flat, tmp_path_factory):
    """A page of its own, and a longer one in which the output of a cell stands."""
    folder = tmp_path_factory.mktemp("pages")
    frame, _ = cell_player(collect(flat, moments(flat, None), 0))
    (folder / "cell.html").write_text(f"<body><h1>above</h1>{frame}<p>below</p></body>", encoding="utf-8")
    return {"file": save_html(folder / "file.html", flat), "cell": folder / "cell.html"}


@pytest.fixture(params=["file", "cell"])
def player(request, browser, pages):
    """Opens a page, and reads its player."""
    browser.resize(900, 600)
    browser.open(pages[request.param])
    window = {"file": "window", "cell": "frames[0]"}[request.param]
    if request.param == "cell":
        browser.until("!!frames[0].document.querySelector('button')")
        x, y = browser.run("(b => [b.x, b.y])(document.querySelector('iframe').getBoundingClientRect())")
        browser.click(x + 60, y + 15)
    browser.until(f"!!{window}.document.querySelector('#bar button')")
    return lambda: browser.run(READ % {"window": window})


def eventually(read, holds, seconds=20.0):
    """The first reading that holds."""
    end = time.monotonic() + seconds
    while not holds(found := read()):
        assert time.monotonic() < end, str(found)
        time.sleep(0.05)
    return found


def place(seen, value):
    """Where the thumb of a slider is [pixels]."""
    box, thumb = seen["slider"], 16.0
    return box["x"] - box["width"] / 2 + thumb / 2 + (box["width"] - thumb) * value / seen["last"], box["y"]


def test_nothing_lies_over_the_controls_and_clicks_pause_and_play(browser, player):
    seen = eventually(player, lambda s: s["playing"] and s["time"] > 0.5)
    for size in ((900, 600), (360, 560)):
        browser.resize(*size)
        seen = eventually(player, lambda s: abs(s["slider"]["x"] - s["canvas"]["x"]) < 60)
        assert not seen["button"]["covered"] and not seen["slider"]["covered"]
        assert seen["button"]["height"] >= 24 and seen["slider"]["width"] > 150
        assert seen["canvas"]["y"] + seen["canvas"]["height"] / 2 <= seen["button"]["y"]
    browser.click(seen["button"]["x"], seen["button"]["y"])
    paused = eventually(
        player, lambda s: not s["playing"] and s["name"] == "Play" and abs(s["value"] - s["time"]) < 1e-6
    )
    time.sleep(0.2)
    assert player()["time"] == paused["time"]
    browser.click(seen["button"]["x"], seen["button"]["y"])
    eventually(player, lambda s: s["playing"] and s["name"] == "Pause" and s["time"] != paused["time"])


def test_the_slider_is_dragged_and_the_motion_goes_on_from_there(browser, player, flat):
    seen = eventually(player, lambda s: s["playing"])
    browser.click(*place(seen, 1.0))
    start = eventually(player, lambda s: not s["playing"])
    for fraction in (0.7, 0.25):
        browser.drag(place(start, start["value"]), place(start, fraction * start["last"]))
        start = eventually(player, lambda s, f=fraction: abs(s["time"] - f * s["last"]) < 0.05 * s["last"])
        assert abs(start["value"] - start["time"]) < 1e-6 and not start["playing"]
        shown = f"{round(start['time']) * flat.control_interval:.2f} s"
        eventually(player, lambda s, shown=shown: s["label"] == shown)
    browser.click(start["button"]["x"], start["button"]["y"])
    on = eventually(player, lambda s: s["playing"] and s["time"] != start["time"])
    eventually(player, lambda s: s["time"] < on["time"])  # after the end it begins again


def test_keys_and_fingers(browser, player):
    seen = eventually(player, lambda s: s["playing"])
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    browser.tap(seen["button"]["x"], seen["button"]["y"])
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    paused = eventually(player, lambda s: not s["playing"])
    browser.key(" ", 32, " ")  # the button has the focus
    eventually(player, lambda s: s["playing"])
    browser.key(" ", 32, " ")
    paused = eventually(player, lambda s: not s["playing"])
    browser.click(*place(paused, 0.5 * paused["last"]))
    middle = eventually(player, lambda s: abs(s["time"] - 0.5 * s["last"]) < 0.05 * s["last"])
    browser.key("ArrowRight", 39)
    eventually(player, lambda s: 0.0 < s["time"] - middle["time"] < 0.2 * s["last"])


def test_the_view_turns_by_a_mouse_that_begins_anywhere_on_it(browser, player):
    seen = eventually(player, lambda s: s["playing"])
    middle = seen["canvas"]["x"], seen["canvas"]["y"]
    browser.drag(middle, (middle[0] + 70, middle[1] + 20))
    turned = eventually(player, lambda s: s["eye"] != seen["eye"])
    browser.key(" ", 32, " ")  # nothing has the focus: the page takes it
    eventually(player, lambda s: not s["playing"])
    assert not turned["canvas"]["covered"]
