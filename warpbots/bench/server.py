"""A bench in a browser without a notebook: a page and a connection, served on this computer alone."""

import asyncio
import json
import secrets
import struct
import webbrowser
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from warpbots.view.browser import drawing_code

if TYPE_CHECKING:
    from warpbots.bench.bench import Bench

__all__ = ["client_module", "require_tornado", "served"]

_HERE = Path(__file__).parent


def client_module() -> str:
    """The ES module of the browser's side, for a page and for a widget."""
    return drawing_code() + (_HERE / "client.js").read_text(encoding="utf-8")


def require_tornado() -> None:
    """Raise if tornado, the package that serves the page, is missing.

    Raises:
        ImportError: tornado is not installed.
    """
    try:
        import tornado  # noqa: F401
    except ImportError as fault:
        raise ImportError('a bench in the browser needs tornado: pip install "warpbots[notebook]"') from fault


async def served(bench: "Bench", port: int, opened: Callable[[str], object] = webbrowser.open) -> None:
    """Serve a bench until it is closed.

    The server listens on this computer alone, and answers only to addresses that contain a random key.

    Args:
        bench: The bench.
        port: Port to listen on; 0 for a free one.
        opened: A function that gets the address, such as one that opens it in a browser.

    Raises:
        ImportError: tornado is not installed.
        OSError: The port is taken.
    """
    require_tornado()
    import tornado.escape
    import tornado.httpserver
    import tornado.netutil
    import tornado.web

    key = secrets.token_urlsafe(16)
    page = Template((_HERE / "page.html").read_text(encoding="utf-8"))

    class Page(tornado.web.RequestHandler):
        def get(self) -> None:
            if not secrets.compare_digest(self.get_query_argument("key", ""), key):
                raise tornado.web.HTTPError(403)
            title = tornado.escape.xhtml_escape(bench.simulation.scene.name)
            self.finish(page.substitute(title=title, key=key))

    class File(tornado.web.RequestHandler):
        def get(self, name: str) -> None:
            script = name == "client.js"
            self.set_header("Content-Type", "text/javascript" if script else "text/css")
            self.finish(client_module() if script else (_HERE / name).read_bytes())

    application = tornado.web.Application(
        [("/", Page), (r"/(client\.js|client\.css)", File), ("/live", _live_handler(bench, key))]
    )
    server = tornado.httpserver.HTTPServer(application)
    sockets = tornado.netutil.bind_sockets(port, "127.0.0.1")
    server.add_sockets(sockets)
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    bench.at_end(lambda: loop.call_soon_threadsafe(closed.set))
    try:
        opened(f"http://127.0.0.1:{sockets[0].getsockname()[1]}/?key={key}")
        await closed.wait()
    finally:
        server.stop()
        bench.close()
        await server.close_all_connections()


def _live_handler(bench: "Bench", key: str) -> type:
    """The class that connects a browser with a bench."""
    import tornado.web
    import tornado.websocket

    class Live(tornado.websocket.WebSocketHandler):
        def prepare(self) -> None:
            if not secrets.compare_digest(self.get_query_argument("key", ""), key):
                raise tornado.web.HTTPError(403)

        def open(self, *_: Any, **__: Any) -> None:
            self.set_nodelay(True)
            bench.conversation.join(self, self._send)

        def _send(self, message: dict, buffers: list[bytes]) -> None:
            header = json.dumps({"what": message, "sizes": [len(b) for b in buffers]}).encode()
            if self.ws_connection is not None and not self.ws_connection.is_closing():
                self.write_message(b"".join([struct.pack("<I", len(header)), header, *buffers]), binary=True)

        def on_message(self, text: str | bytes) -> None:
            bench.conversation.hear(self, json.loads(text))

        def on_close(self) -> None:
            bench.conversation.leave(self)

    return Live
