"""Makes HTML pages on which a motion can be played and rotated, in a file or in the output of a notebook cell."""

import html
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from warpbots.output_files import replacing
from warpbots.scene.field_types import checked
from warpbots.trajectory import Trajectory
from warpbots.view.browser import drawing_code
from warpbots.view.browser.motion_data import motion_data
from warpbots.view.k3d_plot import moments
from warpbots.view.motion import Motion, collect, evenly

__all__ = ["cell_player", "page_of", "save_html"]

_BROWSER = Path(__file__).parent / "browser"

_LARGEST = 3e6  # largest page in the output of a cell [bytes]
_HEIGHT = 420  # height of the player in the output of a cell [pixels]
_BUTTON = 34  # height of the button that starts it [pixels]
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
$style</style>
<body><div id="player"></div>
<noscript>This page shows a motion by JavaScript, which is switched off.</noscript>
<script id="motion" type="text/plain">$motion</script>
<script type="module">
$script</script>
</body>
</html>
"""

_STARTER = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<button style="font:13px sans-serif;padding:5px 12px;cursor:pointer">&#9654; Rotate and play</button>
<small style="font:12px sans-serif;color:#777">%(shows)s</small>
<script>
const page = %(page)s;
document.querySelector("button").onclick = () => {
    const frame = window.frameElement || document.createElement("iframe");  // none where the reader has closed it off
    frame.allow = "fullscreen *";
    if (window.frameElement) frame.style.height = "%(height)dpx";
    else { frame.style = "position:fixed;inset:0;width:100%%;height:100%%;border:0"; document.body.append(frame); }
    frame.srcdoc = page;  // in a document that is written over, Chromium drags no slider
};
</script></body>"""  # nothing runs before it is asked for: a browser gives a page few WebGL contexts


def page_of(motion: Motion, note: str = "") -> str:
    """The HTML of a page that shows a motion in any browser, without a network connection.

    Args:
        motion: The motion.
        note: A line of text above the motion; empty for none.
    """
    return Template(_PAGE).substitute(
        title=html.escape(motion.scene.name),
        style=(_BROWSER / "player.css").read_text(encoding="utf-8"),
        motion=motion_data(motion, note),
        script=drawing_code() + (_BROWSER / "player.js").read_text(encoding="utf-8"),
    )


@checked
def save_html(
    path: str | os.PathLike,
    trajectory: "Trajectory[Any]",
    every: int | None = None,
    *,
    world: int = 0,
    note: str = "",
    goal: np.ndarray | Sequence[Any] | None = None,
    color: str | None = None,
) -> Path:
    """Write an HTML page on which a trajectory can be played, scrubbed and rotated in any browser, even offline.

    Args:
        path: The file.
        trajectory: The motion; it is simulated again.
        every: Number of control intervals between two states that are shown; None for at most 121 evenly spaced states
            and at most 40 MB.
        world: Index of the world.
        note: A line of text that is shown above the motion.
        goal: Points that are the goal of a task [m], shape (dim,) or (n, dim), which are marked; None for no marks.
        color: Quantity that the colours of soft bodies show, with its range above the motion: ``"stress"``,
            ``"strain"``, ``"activation"``, or a parameter of elements such as ``"youngs_modulus"``; see
            `warpbots.usd.write`. None for the colours of the bodies.

    Returns:
        `path`.

    Raises:
        ValueError: `goal` has the wrong shape, or `color` is not the name of a quantity.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    path = Path(path)
    with replacing(path) as (temporary,):
        motion = collect(trajectory, moments(trajectory, every), world, goal, color)
        temporary.write_text(page_of(motion, note), encoding="utf-8")
    return path


def cell_player(motion: Motion) -> tuple[str, str]:
    """HTML that shows a motion in the output of a notebook cell: a button that opens the page in a frame.

    Notebook viewers that remove scripts also remove the frame.

    Args:
        motion: The motion to show; some frames are left out if all frames together take more than 3 MB.

    Returns:
        Self-contained HTML, and a note that is empty unless frames were left out.
    """
    states, page = len(motion), page_of(motion)
    while len(page) > _LARGEST and len(motion) > 2:
        motion = motion.pick(evenly(len(motion) - 1, max(2, math.floor(len(motion) * min(0.9, _LARGEST / len(page))))))
        page = page_of(motion)
    shows = "" if len(motion) == states else f"{len(motion)} of {states} states, which fit in {_LARGEST / 1e6:g} MB"
    source = json.dumps(page).replace("</", "<\\/")  # no end of the script within the string
    starter = _STARTER % {"page": source, "shows": shows, "height": _HEIGHT}
    style = f"width:100%;height:{_BUTTON}px;border:0"
    return f'<iframe srcdoc="{html.escape(starter)}" style="{style}" allow="fullscreen *"></iframe>', shows
