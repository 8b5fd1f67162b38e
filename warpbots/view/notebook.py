"""A trajectory in a notebook: a 3D view to rotate, play and scrub, or a film strip where that is not possible.

The view uses k3d and ipywidgets. All data come from the kernel, none from the network; the frames are sent once and
played by the browser, with or without a running kernel.
"""

import base64
import dataclasses
import io
import os
from typing import TYPE_CHECKING, Any

from warpbots.gradients import in_notebook as _in_notebook
from warpbots.view.color_reduction import palette_of, reduced
from warpbots.view.film import strip
from warpbots.view.motion import collect, evenly
from warpbots.view.widget import EXTRA, missing_packages, moments, new_plot, with_controls

if TYPE_CHECKING:
    import k3d
    from ipywidgets import Widget
    from PIL.Image import Image

    from warpbots.trajectory import Trajectory

__all__ = ["View", "mimebundle", "show"]

_PICTURES = 6  # in a film strip


@dataclasses.dataclass(frozen=True)
class View:
    """Result of `show`, which is displayed as the last expression of a cell.

    Attributes:
        picture: A film strip.
        text: Description, and packages that are missing for a widget.
        widget: The view with its controls; None if there is only a picture.
        plot: The k3d plot in `widget`, which users can modify; None if there is only a picture.
    """

    picture: "Image"
    text: str
    widget: "Widget | None" = None
    plot: "k3d.Plot | None" = None

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """The view for a live notebook, the picture for all other readers, such as GitHub."""
        png = io.BytesIO()
        reduced(self.picture, palette_of([self.picture], 256)).save(png, format="PNG", optimize=True)
        bundle = {"text/plain": self.text, "image/png": base64.b64encode(png.getvalue()).decode("ascii")}
        if self.widget is not None:
            live = self.widget._repr_mimebundle_()
            kind = "application/vnd.jupyter.widget-view+json"
            bundle[kind] = live[kind]
        return bundle


def show(trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0) -> View:
    """A trajectory to rotate, play and scrub in JupyterLab; 2D scenes are upright in the x-z plane.

    A film strip is shown instead if the environment variable ``WARPBOTS_STATIC`` is set to anything but 0 (which keeps
    saved notebooks small and readable anywhere), outside a notebook, and without k3d and ipywidgets.

    Args:
        trajectory: The motion; it is simulated again.
        every: Show every `every`-th state; None for at most 121 states and 40 MB.
        world: Which of the independent copies.

    Raises:
        ValueError: `every` is below 1, or there is no such world.
    """
    steps, missing = moments(trajectory, every), missing_packages()
    text = repr(trajectory)
    if _static() or missing or not _in_notebook():
        if missing and not _static():
            text += f"; an interactive view needs {' and '.join(missing)}: {EXTRA}"
        return View(strip(collect(trajectory, evenly(trajectory.steps, _PICTURES), world)), text)
    motion = collect(trajectory, steps, world)
    plot = new_plot(motion)
    picture = strip(motion.pick(evenly(len(motion) - 1, _PICTURES)))
    return View(picture, text, with_controls(plot, motion), plot)


def mimebundle(trajectory: "Trajectory[Any]") -> dict:
    """Representations of a trajectory for a notebook: MIME type -> data."""
    return show(trajectory)._repr_mimebundle_()


def _static() -> bool:
    return os.environ.get("WARPBOTS_STATIC", "") not in ("", "0")
