"""The bench under a real mouse, in a browser: positions change as they should, and nothing lies over the controls."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from bench_cases import flat_bar, press, soft_floor
from browser import chromium

import warpbots as wb
from warpbots.trajectory import obstacles_at
from warpbots.view.upright_view import upright

PLACE = "(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector(%r).getBoundingClientRect())"
PIXELS = """(() => {
    const canvas = document.querySelector(".wb-view"), gl = canvas.getContext("webgl2");
    const pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    let sum = 7;
    for (let i = 0; i < pixels.length; i += 4) sum = (31 * sum + pixels[i] + 7 * pixels[i + 2]) % 1000003;
    return sum;
})()"""
"""A number that differs if the picture does."""
HIDDEN = """[...document.querySelector('.wb-bench').parentElement.querySelectorAll('.jp-OutputArea-child')]
    .every(output => output.style.display === 'none' && output.querySelector('img'))"""
COVERED = "document.elementFromPoint(%f, %f) !== document.querySelector(%r)"


@contextlib.contextmanager
def jupyter(folder):
    """A JupyterLab that serves a folder, and the address of a notebook in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", f"--notebook-dir={folder}",
        "--IdentityProvider.token=key", "--ip=127.0.0.1",
    ]  # fmt: skip
    places = os.pathsep.join([str(Path(wb.__file__).parents[1]), str(Path(__file__).parents[1])])
    settings = os.environ | {"PYTHONPATH": places, "JUPYTER_ALLOW_INSECURE_WRITES": "1"}
    server = subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120.0
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            assert time.monotonic() < end and server.poll() is None
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/lab/tree/live.ipynb?token=key&reset"
    finally:
        server.terminate()
        server.wait(60.0)


def stroke(page, key, code, shift=False, ctrl=False):
    """Press a key with others."""
    modifiers = 8 * shift + 2 * ctrl
    for kind in ("keyDown", "keyUp"):
        named = {"key": key, "code": key if len(key) > 1 else f"Key{key.upper()}", "windowsVirtualKeyCode": code}
        page.call("Input.dispatchKeyEvent", type=kind, modifiers=modifiers, **named)


class Served:
    """A bench that is served from a thread, and the page that shows it."""

    def __init__(self, bench, page):
        self.bench, self.page, address = bench, page, []
        self.thread = threading.Thread(target=bench.serve, args=(0, address.append), daemon=True)
        self.thread.start()
        end = time.monotonic() + 60.0
        while not address:
            assert time.monotonic() < end and self.thread.is_alive()
            time.sleep(0.02)
        page.resize(720, 560)
        page.faults = []
        page.call("Page.navigate", url=address[0])
        page.until("+(document.querySelector('#bench')?.dataset.frames || 0) > 0")
        self.address = address[0]

    def place(self, name):
        """Centre of an element [pixels], which nothing covers."""
        x, y = self.page.run(PLACE % name)
        assert not self.page.run(COVERED % (x, y, name)), name
        return x, y

    def click(self, name):
        self.page.click(*self.place(name))

    def pixel_of_the_body(self):
        """Where the centre of mass is seen [pixels]."""
        return self.pixel(upright(self.bench.simulation.center_of_mass(self.bench.state)[0].numpy()))

    def pixel(self, point):
        """Where a point is seen [pixels]."""
        bench = self.bench
        view = bench.header()["camera"]
        eye, center, up = map(np.array, (view["eye"], view["center"], view["up"]))
        forward = (center - eye) / np.linalg.norm(center - eye)
        right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
        arm = point - eye
        across = np.array([arm @ right, -arm @ np.cross(right, forward)]) / (arm @ forward)
        x, y, width, height = self.page.run(
            "(b => [b.x, b.y, b.width, b.height])(document.querySelector('.wb-view').getBoundingClientRect())"
        )
        tangent = np.tan(np.radians(view["field"] / 2.0)) * max(1.0, view["aspect"] / (width / height))
        scale = height / 2.0 / tangent
        return (np.array([x + width / 2, y + height / 2]) + scale * across).tolist()

    def until(self, holds):
        end = time.monotonic() + 60.0
        while not holds():
            assert time.monotonic() < end, self.bench.message
            time.sleep(0.02)


@contextlib.contextmanager
def watched():
    """A page of a new browser that notes what goes wrong in scripts."""
    pytest.importorskip("tornado")
    with chromium() as page:
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="window.faults = []; onerror = (...all) => { faults.push(all.join(' ')); };"
            "onunhandledrejection = event => { faults.push(String(event.reason)); };",
        )
        yield page


@pytest.fixture(scope="module")
def page():
    with watched() as page:
        yield page


@pytest.fixture(params=[flat_bar, soft_floor])
def served(request, page):
    made = Served(request.param().bench(), page)
    yield made
    assert page.run("faults") == []
    page.call("Page.navigate", url="about:blank")
    made.bench.close()
    made.thread.join(30.0)
    assert not made.thread.is_alive()


def test_it_plays_pauses_steps_and_resets(served):
    bench, page = served.bench, served.page
    served.click("[data-do=play]")
    served.until(lambda: bench.time > 0.05)
    page.until("document.querySelector('[data-do=play]').ariaLabel === 'Pause'")
    served.click("[data-do=play]")
    served.until(lambda: not bench.playing)
    stood = bench.time
    served.click("[data-do=step]")
    served.until(lambda: bench.time > stood)
    assert bench.time == pytest.approx(stood + bench.simulation.dt)
    page.until(f"document.querySelector('.wb-clock').innerText === '{bench.time:.2f} s'")
    served.click("[data-do=reset]")
    served.until(lambda: bench.time == 0.0)
    page.run("document.querySelector('.wb-view').focus()")
    page.key(" ", 32, " ")
    served.until(lambda: bench.playing)
    page.key(" ", 32, " ")
    served.until(lambda: not bench.playing)


def test_the_mouse_pulls_at_a_body_and_turns_the_view_beside_it(served):
    bench, page = served.bench, served.page

    def height():
        return float(bench.simulation.center_of_mass(bench.state)[0, -1])

    bench.step(100)  # it lies on the floor: a body that falls may leave the pointer before the press arrives
    x, y = served.pixel_of_the_body()
    served.click("[data-do=play]")
    served.until(lambda: bench.time > 100.5 * bench.simulation.dt)
    page.mouse("mousePressed", x, y)
    served.until(lambda: bench.pulled is not None)
    start = height()
    for i in range(1, 9):
        page.mouse("mouseMoved", x, y - 12 * i)
    served.until(lambda: height() > start + 0.01)
    assert bench.pulled[1][2] > bench.pulled[0][2] - 0.05
    page.mouse("mouseReleased", x, y - 96)
    served.until(lambda: bench.pulled is None)
    served.click("[data-do=play]")
    served.until(lambda: not bench.playing)
    time.sleep(0.3)
    before = page.run(PIXELS)
    left, top = page.run("(b => [b.x, b.y])(document.querySelector('.wb-view').getBoundingClientRect())")
    page.drag((left + 15, top + 60), (left + 90, top + 60))
    page.until(f"{PIXELS} !== {before}")
    assert bench.pulled is None
    served.click("[data-do=home]")
    page.until(f"{PIXELS} === {before}")


def test_a_finger_pulls_at_a_body_and_two_fingers_zoom():
    """The page neither scrolls nor zooms, and what a finger held is let go when a second one comes."""
    with watched() as page:  # its own: after two fingers, Chromium loses those on the next page
        page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
        served = Served(soft_floor().bench(), page)
        bench = served.bench
        bench.step(100)
        x, y = served.pixel_of_the_body()
        page.tap(*served.place("[data-do=play]"))
        served.until(lambda: bench.time > 100.5 * bench.simulation.dt)

        def fingers(kind, *places):
            points = [{"x": a, "y": b, "id": k} for k, (a, b) in enumerate(places)]
            page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

        def height():
            return float(bench.simulation.center_of_mass(bench.state)[0, -1])

        fingers("touchStart", (x, y))
        served.until(lambda: bench.pulled is not None)
        start = height()
        for i in range(1, 9):
            fingers("touchMove", (x, y - 12 * i))
        served.until(lambda: height() > start + 0.01)
        fingers("touchStart", (x, y - 96), (x + 60, y - 96))
        served.until(lambda: bench.pulled is None)
        fingers("touchEnd")
        page.tap(*served.place("[data-do=play]"))
        served.until(lambda: not bench.playing)
        time.sleep(0.3)
        before, here = page.run(PIXELS), (x, y)
        page.touch([here, (x + 60, y)], [(x - 60, y), (x + 120, y)])
        page.until(f"{PIXELS} !== {before}")
        assert bench.pulled is None
        assert page.run("[scrollX, scrollY, visualViewport.scale]") == [0, 0, 1]
        assert page.run("faults") == []
        bench.close()
        served.thread.join(30.0)


def test_a_wheel_scrolls_past_the_view_and_zooms_what_was_clicked(page):
    served = Served(soft_floor().bench(), page)
    page.resize(720, 400)
    page.until("document.querySelector('.wb-view').height > 200")
    x, y = served.place(".wb-view")
    time.sleep(0.3)
    before = page.run(PIXELS)
    page.wheel(x, y, 100.0)
    page.until("scrollY > 50")
    time.sleep(0.3)
    assert page.run(PIXELS) == before
    page.run("scrollTo(0, 0)")
    page.click(x, y)
    page.wheel(x, y, 100.0)
    page.until(f"{PIXELS} !== {before}")
    page.wheel(x, y, -100.0)
    page.until(f"{PIXELS} === {before}")
    assert page.run("scrollY") == 0
    assert page.run("faults") == []
    served.bench.close()
    served.thread.join(30.0)


def test_sliders_change_controls_and_parameters(served):
    bench, page = served.bench, served.page
    sliders = page.run(
        "[...document.querySelectorAll('.wb-panel input')].map(e => { const b = e.getBoundingClientRect();"
        "return [e.ariaLabel, b.x, b.y + b.height / 2, b.width]; })"
    )
    names = [name for name, *_ in sliders]
    for name in names[:: len(names) - 1]:
        _, x, y, width = sliders[names.index(name)]
        page.drag((x + width / 2, y), (x + 0.75 * width, y))
    expected = names[-1].replace(" ", "_")
    served.until(lambda: bench.factors[expected] == pytest.approx(2.0, rel=0.1))
    if bench.simulation.channels:
        served.until(lambda: bench.control[0] == pytest.approx(0.52, abs=0.06))


def test_it_records_and_shows_gradients(served):
    bench, page = served.bench, served.page
    served.click("[data-do=play]")
    served.click("[data-do=record]")
    served.until(lambda: (bench.recorded_time or 0.0) > 0.03)
    page.until("document.querySelector('[data-do=record]').classList.contains('wb-on')")  # else it begins anew
    served.click("[data-do=record]")
    served.until(lambda: bench.recording is not None)
    page.until("!document.querySelector('.wb-time').hidden")
    x, y, width = page.run(
        "(b => [b.x, b.y + b.height / 2, b.width])(document.querySelector('[data-do=seek]').getBoundingClientRect())"
    )
    page.click(x + 0.01 * width, y)
    served.until(lambda: not bench.playing and bench.time == pytest.approx(bench.recorded_span[0]))
    served.click("[data-do=arrows]")
    page.until("document.querySelector('.wb-message').innerText.startsWith('loss ')")
    assert len(bench.arrows()) and not bench.playing
    served.click("[data-do=stiffness]")
    served.until(lambda: not len(bench.arrows()))


def test_the_mouse_moves_a_tool(page):
    down = wb.actuators.VelocityDrive("down", "plate", 0.2, axis=(0.0, 0.0, -1.0))
    served = Served(press(down).bench(), page)
    x, y = served.pixel(np.array([0.0, -0.06, 0.11]))  # the middle of its near side
    served.click("[data-do=play]")
    page.mouse("mousePressed", x, y)
    served.until(lambda: served.bench.pulled is not None)
    below = served.pixel(np.array([0.0, -0.06, 0.06]))
    for i in range(1, 9):
        page.mouse("mouseMoved", *(np.array([x, y]) + (np.array(below) - (x, y)) * i / 8).tolist())
    served.until(lambda: obstacles_at(served.bench.simulation, served.bench.state)[0][0, 2] < -0.04)
    page.mouse("mouseReleased", *below)
    served.until(lambda: served.bench.pulled is None)
    served.until(lambda: served.bench.control.tolist() == [0.0])
    assert page.run("faults") == []
    served.bench.close()
    served.thread.join(30.0)


def test_only_who_has_the_key_gets_in(served):
    import urllib.error
    import urllib.request

    base = served.address.split("?")[0]
    for address in (base, base + "?key=wrong", base + "live?key=wrong"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address, timeout=30)
    assert not base.startswith("http://0.0.0.0")


@pytest.mark.slow
def test_it_lives_in_jupyterlab_and_leaves_a_picture_in_the_notebook(tmp_path):
    """Run by keys, pulled with the mouse, saved while it is live, and opened again without its kernel."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("jupyterlab")
    cells = [
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})",
        "from bench_cases import flat_bar\nbench = flat_bar().bench()",
        "bench",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, tmp_path / "live.ipynb")
    with jupyter(tmp_path) as address:
        with chromium() as page:
            page.resize(1200, 1000)
            page.call("Page.navigate", url=address)
            page.until("!!document.querySelector('.jp-Notebook.jp-mod-scrollPastEnd, .jp-Cell .cm-content')", 120)
            time.sleep(3.0)
            page.run("document.querySelector('.jp-Cell .cm-content').focus()")
            for _ in cells:
                stroke(page, "Enter", 13, shift=True)
                time.sleep(1.0)
            page.until("+(document.querySelector('.wb-bench')?.dataset.frames || 0) > 0", 120)
            page.until(HIDDEN)
            page.run("document.querySelector('.wb-bench').scrollIntoView({block: 'center'})")
            page.click(*page.run(PLACE % "[data-do=play]"))
            page.until("parseFloat(document.querySelector('.wb-clock').innerText) > 0.2", 120)
            page.click(*page.run(PLACE % "[data-do=play]"))
            stroke(page, "s", 83, ctrl=True)
            time.sleep(2.0)
            page.run("document.querySelector('.wb-bench').dataset.old = 1")
            page.run("document.querySelectorAll('.jp-Cell .cm-content')[2].focus()")
            stroke(page, "Enter", 13, shift=True)  # run again: the first view goes
            page.until("document.querySelectorAll('.wb-bench').length === 1 && "
                       "+document.querySelector('.wb-bench:not([data-old])')?.dataset.frames > 0 && "
                       "parseFloat(document.querySelector('.wb-clock').innerText) > 0.2", 120)  # fmt: skip
            page.until(HIDDEN)
            stroke(page, "s", 83, ctrl=True)
            time.sleep(2.0)
        stored = nbformat.read(tmp_path / "live.ipynb", 4).cells[2].outputs
        assert [sorted(output.data) for output in stored] == [["image/png", "text/plain"]]
        with chromium() as page:
            page.call("Page.navigate", url=address.replace("/lab/", "/lab/workspaces/other/"))
            page.until("!!document.querySelector('.jp-Cell img')", 120)
            assert "not found" not in page.run("document.querySelector('.jp-Notebook').innerText")
