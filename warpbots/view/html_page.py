"""A trajectory as an HTML page."""

import html
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpbots.output_files import replacing
from warpbots.view.motion import collect
from warpbots.view.widget import EXTRA, missing_packages, moments, new_plot

if TYPE_CHECKING:
    from warpbots.trajectory import Trajectory

__all__ = ["require_k3d", "save_html"]

_CONTROLS = """
const bar = document.createElement("div"), button = document.createElement("button");
const slider = document.createElement("input");
Object.assign(slider, {type: "range", min: 0, max: %(last)d, step: 0.01, value: 0});
bar.style = "position:fixed;left:3%%;right:3%%;bottom:14px;display:flex;gap:12px";
button.style = "width:44px;border:0;border-radius:4px";
slider.style = "flex:1";
button.onclick = () => K3DInstance.autoPlayed ? K3DInstance.stopAutoPlay() : K3DInstance.startAutoPlay();
slider.oninput = () => { K3DInstance.stopAutoPlay(); K3DInstance.setTime(+slider.value); };
setInterval(() => {
    button.textContent = K3DInstance.autoPlayed ? "\\u275a\\u275a" : "\\u25b6";
    if (K3DInstance.autoPlayed) slider.value = K3DInstance.parameters.time;
}, 40);
bar.append(button, slider);
document.body.append(bar);
K3DInstance.setCamera(%(camera)s);  // k3d places labels when the camera moves
K3DInstance.startAutoPlay();
"""  # a play button and a slider on a page without a kernel


def save_html(
    path: str | os.PathLike, trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0
) -> Path:
    """Write a trajectory as a page to rotate, play and scrub in any browser, without a network.

    Args:
        path: The file.
        trajectory: The motion; it is simulated again.
        every: Show every `every`-th state; None for at most 121 states and 40 MB.
        world: Which of the independent copies.

    Returns:
        `path`.

    Raises:
        ImportError: k3d is not installed.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    require_k3d()
    path = Path(path)
    with replacing(path) as (temporary,):
        motion = collect(trajectory, moments(trajectory, every), world)
        plot = new_plot(motion)
        plot.fps, plot.time_speed = 25.0, (len(motion) - 1) / float(motion.time[-1])
        script = _CONTROLS % {"last": len(motion) - 1, "camera": json.dumps(list(plot.camera))}
        page = plot.get_snapshot(additional_js_code=script)
        title = f"<title>{html.escape(motion.scene.name)}</title>"
        temporary.write_text(re.sub(r"<title>.*?</title>", lambda _: title, page, count=1), encoding="utf-8")
    return path


def require_k3d() -> None:
    """Raise if the package that makes pages is missing.

    Raises:
        ImportError: k3d is not installed.
    """
    if "k3d" in missing_packages():
        raise ImportError(f"save_html needs k3d: {EXTRA}")
