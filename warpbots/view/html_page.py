"""Makes HTML pages on which a motion can be played and rotated, in a file or in the output of a notebook cell."""

import html
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from warpbots.output_files import replacing
from warpbots.scene.field_types import checked
from warpbots.trajectory import Trajectory
from warpbots.view.k3d_plot import EXTRA, missing_packages, moments, new_plot, unsent
from warpbots.view.motion import Motion, collect, evenly

__all__ = ["cell_player", "page_of", "require_k3d", "save_html"]

_LARGEST = 3e6  # largest page in the output of a cell [bytes]; the player itself takes 1.2 MB of it
_HEIGHT = 420  # height of the player in the output of a cell [pixels]
_BUTTON = 34  # height of the button that starts it [pixels]
_BAR = 48  # height of the bar with the controls of a page [pixels]
_CONTROLS = """
const style = document.createElement("style");
style.textContent = `
  html, body { background: %(paper)s; }
  #canvasTarget { height: calc(100%% - %(bar)dpx); isolation: isolate; }  /* or its z-index covers the bar */
  #canvasTarget div { pointer-events: none !important; }  /* a mouse that begins on a label turns the view, too */
  #bar { position: fixed; left: 3%%; right: 3%%; bottom: 0; height: %(bar)dpx; z-index: 1; display: flex; gap: 12px;
         align-items: center; color-scheme: light; }
  #bar button { flex: none; width: 44px; height: 32px; border: 0; border-radius: 4px; cursor: pointer; }
  #bar input { flex: 1; min-width: 0; height: 32px; margin: 0; cursor: pointer; }`;
const bar = document.createElement("div"), button = document.createElement("button");
const slider = document.createElement("input");
bar.id = "bar";
button.type = "button";
Object.assign(slider, {type: "range", min: 0, max: %(last)d, step: "any", value: 0, ariaLabel: "Time"});
button.onclick = () => K3DInstance.autoPlayed ? K3DInstance.stopAutoPlay() : K3DInstance.startAutoPlay();
onkeydown = event => { if (event.key === " " && event.target === document.body) button.click(); };
slider.onpointerdown = () => K3DInstance.stopAutoPlay();
slider.oninput = () => { K3DInstance.stopAutoPlay(); K3DInstance.setTime(+slider.value); };
setInterval(() => {
    const playing = K3DInstance.autoPlayed, sign = playing ? "\\u275a\\u275a" : "\\u25b6";
    if (button.textContent !== sign) {
        button.textContent = sign;
        button.ariaLabel = button.title = playing ? "Pause" : "Play";
    }
    slider.value = K3DInstance.parameters.time;
}, 40);
bar.append(button, slider);
document.head.append(style);
document.body.append(bar);
K3DInstance.setCamera(%(camera)s);  // k3d places labels when the camera moves
K3DInstance.startAutoPlay();
"""  # a play button and a slider on a page without a kernel

_STARTER = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<button style="font:13px sans-serif;padding:5px 12px;cursor:pointer">&#9654; Rotate and play</button>
<small style="font:12px sans-serif;color:#777">%(shows)s</small>
<script>
const page = %(page)s;
document.querySelector("button").onclick = () => {
    const frame = window.frameElement || document.createElement("iframe");  // none where the reader has closed it off
    if (window.frameElement) frame.style.height = "%(height)dpx";
    else { frame.style = "position:fixed;inset:0;width:100%%;height:100%%;border:0"; document.body.append(frame); }
    frame.srcdoc = page;  // in a document that is written over, Chromium drags no slider
};
</script></body>"""  # nothing runs before it is asked for: a browser gives a page few WebGL contexts


def page_of(motion: Motion) -> str:
    """The HTML of a page that shows a motion in any browser, without a network connection."""
    with unsent() as widgets:
        plot = new_plot(motion)
        widgets += [*plot.objects, plot]
        plot.fps, plot.time_speed = 25.0, (len(motion) - 1) / float(motion.time[-1])
        paper, camera = f"#{plot.background_color:06x}", json.dumps(list(plot.camera))
        script = _CONTROLS % {"last": len(motion) - 1, "camera": camera, "bar": _BAR, "paper": paper}
        page = plot.get_snapshot(additional_js_code=script)
    title = f"<title>{html.escape(motion.scene.name)}</title>"
    return re.sub(r"<title>.*?</title>", lambda _: title, page, count=1)


@checked
def save_html(
    path: str | os.PathLike, trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0
) -> Path:
    """Write an HTML page on which a trajectory can be played, scrubbed and rotated in any browser, even offline.

    Args:
        path: The file.
        trajectory: The motion; it is simulated again.
        every: Number of control intervals between two states that are shown; None for at most 121 evenly spaced states
            and at most 40 MB.
        world: Index of the world.

    Returns:
        `path`.

    Raises:
        ImportError: k3d is not installed.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    require_k3d()
    path = Path(path)
    with replacing(path) as (temporary,):
        temporary.write_text(page_of(collect(trajectory, moments(trajectory, every), world)), encoding="utf-8")
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
    frame = f'<iframe srcdoc="{html.escape(starter)}" style="width:100%;height:{_BUTTON}px;border:0"></iframe>'
    return frame, shows


def require_k3d() -> None:
    """Raise if k3d, the package that makes the pages, is missing.

    Raises:
        ImportError: k3d is not installed.
    """
    if "k3d" in missing_packages():
        raise ImportError(f"save_html needs k3d: {EXTRA}")
