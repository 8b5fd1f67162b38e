"""A trajectory in a notebook: a picture that every reader shows, and a player that needs no kernel.

A notebook is read in many places, most of them without a kernel, many without scripts. The default view is therefore no
widget; docs/design/notebooks.md lists what each reader shows.
"""

import base64
import dataclasses
import html
import io
import os
from typing import TYPE_CHECKING, Any

from warpbots.notebook_cells import in_notebook
from warpbots.scene.field_types import checked
from warpbots.trajectory import Trajectory
from warpbots.view.color_reduction import palette_of, reduced
from warpbots.view.film import strip
from warpbots.view.html_page import cell_player
from warpbots.view.k3d_plot import EXTRA, missing_packages, moments, new_plot, with_controls
from warpbots.view.motion import collect, evenly

if TYPE_CHECKING:
    from ipywidgets import Widget
    from PIL.Image import Image


__all__ = ["View", "live_view", "mimebundle", "show"]

_PICTURES = 6  # pictures in a film strip


@dataclasses.dataclass(frozen=True)
class View:
    """A picture with a player; a notebook displays it if it is the last expression of a cell.

    Attributes:
        picture: The picture that every reader shows, such as a film strip.
        text: Description, for readers without pictures.
        player: HTML below the picture for readers that run scripts; empty for none.
    """

    picture: "Image"
    text: str
    player: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """The picture, and as HTML the picture with the player below it.

        Readers show one of several representations and prefer HTML. Readers that do not trust the HTML remove its
        frames and scripts; the picture is part of the HTML and remains.
        """
        data = io.BytesIO()
        reduced(self.picture, palette_of([self.picture], 256)).save(data, format="PNG", optimize=True)
        png = base64.b64encode(data.getvalue()).decode("ascii")
        bundle = {"image/png": png, "text/plain": self.text}
        if self.player:
            picture = f'<img src="data:image/png;base64,{png}" alt="{html.escape(self.text)}" style="max-width:100%">'
            bundle["text/html"] = f"<div>{picture}</div>\n{self.player}"
        return bundle


@checked
def show(trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0) -> View:
    """A film strip of a trajectory and, in a notebook, a player to rotate, play and scrub it, with or without a kernel.

    The player takes 1.2 to 3 MB of the notebook; if all states need more, it shows fewer and says so. There is no
    player outside a notebook, without k3d, or if the environment variable ``WARPBOTS_STATIC`` is set to anything but 0,
    which keeps notebooks small. In the player 2D scenes are upright in the x-z plane.

    Args:
        trajectory: The motion; it is simulated again.
        every: Show every `every`-th state; None for at most 121 states.
        world: Which of the independent copies.

    Raises:
        ValueError: `every` is below 1, or there is no such world.
    """
    steps, text = moments(trajectory, every), repr(trajectory)
    if _static() or not in_notebook():
        return View(strip(collect(trajectory, evenly(trajectory.steps, _PICTURES), world)), text)
    if "k3d" in missing_packages():
        picture = strip(collect(trajectory, evenly(trajectory.steps, _PICTURES), world))
        return View(picture, f"{text}; a player needs k3d: {EXTRA}")
    motion = collect(trajectory, steps, world)
    picture = strip(motion.pick(evenly(len(motion) - 1, _PICTURES)))
    player, shows = cell_player(motion)
    return View(picture, f"{text}; the player shows {shows}" if shows else text, player)


@checked
def live_view(trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0) -> "Widget":
    """A trajectory as a widget, for notebooks with a kernel that change the view after it has been shown.

    Its first child is a `k3d.Plot`. A notebook that is opened again without its kernel does not show the widget; `show`
    does not have this limitation.

    Args:
        trajectory: The motion; it is simulated again.
        every: Show every `every`-th state; None for at most 121 states and 40 MB.
        world: Which of the independent copies.

    Raises:
        ImportError: k3d or ipywidgets is not installed.
        ValueError: `every` is below 1, or there is no such world.
    """
    if missing := missing_packages():
        raise ImportError(f"live_view needs {' and '.join(missing)}: {EXTRA}")
    motion = collect(trajectory, moments(trajectory, every), world)
    return with_controls(new_plot(motion), motion)


@checked
def mimebundle(trajectory: "Trajectory[Any]") -> dict:
    """Representations of a trajectory for a notebook: MIME type -> data."""
    return show(trajectory)._repr_mimebundle_()


def _static() -> bool:
    return os.environ.get("WARPBOTS_STATIC", "") not in ("", "0")
