"""The code that draws scenes in a browser, by WebGL 2 and without a library: for the player and for the live bench."""

from pathlib import Path

__all__ = ["drawing_code"]

_HERE = Path(__file__).parent


def drawing_code() -> str:
    """The common part of all pages and widgets, in JavaScript without imports, which stands before their own code.

    A page or a widget has to be a single text, so that it works without a server and without a network.
    """
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in ("shaders.js", "camera.js", "picture.js"))
