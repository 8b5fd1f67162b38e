"""A headless Chromium, driven through its DevTools protocol: pages, real mouse events, keys, pictures."""

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--remote-debugging-port=0", "--window-size=900,640",
)  # fmt: skip


class Page:
    """The one page of a browser."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, itertools.count(1)
        self.events: list[dict] = []  # of the domains that a test has enabled

    def call(self, method: str, **parameters):
        """What a method of the protocol returns."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def run(self, script: str):
        """The value of an expression in JavaScript."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 60.0):
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return value

    def open(self, path: Path) -> None:
        """Show a file."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until(f"document.readyState === 'complete' && location.href === {json.dumps(path.resolve().as_uri())}")

    def resize(self, width: int, height: int, **more) -> None:
        """Change the size of the window [pixels]."""
        device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False} | more
        self.call("Emulation.setDeviceMetricsOverride", **device)

    def mouse(self, kind: str, x: float, y: float, modifiers: int = 0) -> None:
        """A ``mousePressed``, ``mouseMoved`` or ``mouseReleased`` of the left button [pixels]; Shift is 8."""
        button = {"button": "left", "buttons": int(kind != "mouseReleased"), "clickCount": 1, "modifiers": modifiers}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8, modifiers: int = 0) -> None:
        """Press at one place, move, and release at another."""
        self.mouse("mousePressed", *start, modifiers)
        for i in range(1, steps + 1):
            self.mouse("mouseMoved", *(a + (b - a) * i / steps for a, b in zip(start, end, strict=True)), modifiers)
        self.mouse("mouseReleased", *end, modifiers)

    def wheel(self, x: float, y: float, down: float) -> None:
        """Turn the wheel [pixels]."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)

    def tap(self, x: float, y: float) -> None:
        """Touch with a finger."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def touch(self, starts: list[tuple[float, float]], ends: list[tuple[float, float]], steps: int = 8) -> None:
        """Move fingers, each from its start to its end."""
        for i in range(steps + 1):
            points = [
                {"x": a[0] + (b[0] - a[0]) * i / steps, "y": a[1] + (b[1] - a[1]) * i / steps, "id": k}
                for k, (a, b) in enumerate(zip(starts, ends, strict=True))
            ]
            self.call("Input.dispatchTouchEvent", type="touchMove" if i else "touchStart", touchPoints=points)
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def key(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        common = {"key": key, "code": key if len(key) > 1 else "Space", "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path) -> None:
        """Write a PNG of what is shown."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def chromium():
    """A page of a new browser with an empty profile."""
    websocket = pytest.importorskip("websocket", reason="needs websocket-client, which comes with Jupyter")
    if EXECUTABLE is None:
        pytest.skip("needs Chromium, which is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # a child may still write into it
        command = [EXECUTABLE, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = _port(Path(profile) / "DevToolsActivePort")
            listed = f"http://127.0.0.1:{port}/json/list"
            import urllib.request

            with urllib.request.urlopen(listed, timeout=30) as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=60, suppress_origin=True)
            with contextlib.closing(socket):
                page = Page(socket)
                page.call("Page.enable")
                yield page
        finally:
            browser.terminate()
            try:
                browser.wait(timeout=10)
            except subprocess.TimeoutExpired:
                browser.kill()
                browser.wait()


def _port(file: Path) -> int:
    """The port that a browser has chosen."""
    end = time.monotonic() + 60.0
    while not file.exists() or not file.read_text().strip():
        if time.monotonic() > end:
            pytest.skip("Chromium does not start here")
        time.sleep(0.05)
    return int(file.read_text().splitlines()[0])
