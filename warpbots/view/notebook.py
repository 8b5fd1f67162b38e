"""Shows a trajectory in a notebook: a picture that every notebook viewer shows, and a player that needs no kernel.

Most programs and web sites that display notebooks have no kernel, and many run no scripts. Therefore the default view
is not a widget. docs/design/notebooks.md lists what each viewer shows.
"""

import dataclasses
import html
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.notebook_cells import in_notebook
from warpbots.scene.field_types import checked
from warpbots.trajectory import Trajectory
from warpbots.view.color_reduction import png_of
from warpbots.view.film import strip
from warpbots.view.html_page import cell_player
from warpbots.view.k3d_plot import EXTRA, missing_packages, moments, new_plot, with_controls
from warpbots.view.motion import collect, evenly

if TYPE_CHECKING:
    from ipywidgets import Widget
    from PIL.Image import Image


__all__ = ["View", "is_static", "live_view", "mimebundle", "show"]

_PICTURES = 6  # pictures in a film strip


@dataclasses.dataclass(frozen=True)
class View:
    """A picture with a player; a notebook displays the view if it is the last expression of a cell.

    Attributes:
        picture: The picture that every notebook viewer shows, such as a film strip.
        text: Description of the picture, for viewers that do not show pictures.
        player: HTML of the player below the picture, for viewers that run scripts; empty if there is no player.
    """

    picture: "Image"
    text: str
    player: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """Two representations: the picture alone, and HTML with the picture and the player below the picture.

        Notebook viewers show one representation, preferably HTML. Viewers that do not trust the HTML remove frames and
        scripts from it; the picture remains.
        """
        png = png_of(self.picture)
        bundle = {"image/png": png, "text/plain": self.text}
        if self.player:
            picture = f'<img src="data:image/png;base64,{png}" alt="{html.escape(self.text)}" style="max-width:100%">'
            bundle["text/html"] = f"<div>{picture}</div>\n{self.player}"
        return bundle


@checked
def show(
    trajectory: "Trajectory[Any]",
    every: int | None = None,
    *,
    world: int = 0,
    goal: np.ndarray | Sequence[Any] | None = None,
    color: str | None = None,
) -> View:
    """A film strip of a trajectory and, in a notebook, a player in which the motion can be played and rotated.

    The player works with and without a kernel. It takes at most 3 MB of the notebook; if all states need more, the
    player shows fewer states and says so. There is no player outside a notebook, or if the environment variable
    ``WARPBOTS_STATIC`` is set to anything but 0, which keeps notebooks small. In the player a 2D scene stands upright
    in the x-z plane.

    Args:
        trajectory: The motion; it is simulated again.
        every: Number of control intervals between two states that are shown; None for at most 121 evenly spaced states.
        world: Index of the world.
        goal: Points that are the goal of a task [m], shape (dim,) or (n, dim), which are marked; None for no marks.
        color: Quantity that the colours of soft bodies show, with a colour bar: ``"stress"``, ``"strain"``,
            ``"activation"``, or a parameter of elements such as ``"youngs_modulus"``; see `warpbots.usd.write`. None
            for the colours of the bodies.

    Raises:
        ValueError: `every` is below 1, there is no such world, `goal` has the wrong shape, or `color` is not the name
            of a quantity.
    """
    steps, text = moments(trajectory, every), repr(trajectory)
    if is_static() or not in_notebook():
        return View(strip(collect(trajectory, evenly(trajectory.steps, _PICTURES), world, goal, color)), text)
    motion = collect(trajectory, steps, world, goal, color)
    picture = strip(motion.pick(evenly(len(motion) - 1, _PICTURES)))
    player, shows = cell_player(motion)
    return View(picture, f"{text}; the player shows {shows}" if shows else text, player)


@checked
def live_view(trajectory: "Trajectory[Any]", every: int | None = None, *, world: int = 0) -> "Widget":
    """A widget that shows a trajectory, for notebooks with a kernel whose code changes the view after it was shown.

    The first child of the widget is a `k3d.Plot`. A notebook that is opened again without its kernel does not show the
    widget; `show` does not have this limitation.

    Args:
        trajectory: The motion; it is simulated again.
        every: Number of control intervals between two states that are shown; None for at most 121 evenly spaced states
            and at most 40 MB.
        world: Index of the world.

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


def is_static() -> bool:
    """Whether the environment variable ``WARPBOTS_STATIC`` asks for pictures alone."""
    return os.environ.get("WARPBOTS_STATIC", "") not in ("", "0")
