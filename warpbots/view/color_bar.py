"""The colour bar below pictures whose colours show values."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.quantities import ColorMap
from warpbots.view.palette import QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BAR_HEIGHT", "add_color_bar", "range_text"]

BAR_HEIGHT = 0.56
"""Height of the strip for the colour bar, its numbers and its label [inch]."""

_LEFT, _WIDTH = 0.3, 0.4  # of the bar, relative to the figure
_THICK, _ABOVE = 0.09, 0.06  # thickness of the bar, and room above it [inch]
_SHADES = 256


def add_color_bar(figure: "Figure", color_map: ColorMap) -> None:
    """Draw the colours of the range of `color_map` at the bottom of a figure, with numbers, name and unit."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    height = figure.get_size_inches()[1]
    ax = figure.add_axes((_LEFT, (BAR_HEIGHT - _ABOVE - _THICK) / height, _WIDTH, _THICK / height))
    lower, upper = color_map.lower, color_map.upper
    share = np.linspace(0.0, 1.0, _SHADES)
    shades = lower * (upper / lower) ** share if color_map.logarithmic else lower + share * (upper - lower)
    scale = ScalarMappable((LogNorm if color_map.logarithmic else Normalize)(lower, upper))
    scale.set_cmap(ListedColormap(color_map.colors(shades)))
    bar = figure.colorbar(scale, cax=ax, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.set_label(color_map.label, color=QUIET, fontsize=8, labelpad=1.0)
    ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=8, width=0.7, length=3, which="major")
    ax.tick_params(which="minor", length=0)


def range_text(color_map: ColorMap) -> str:
    """The range of values and its colours in words, where there is no colour bar."""
    first, last = ("blue", "red") if color_map.diverging else ("violet", "yellow")
    scale = ", logarithmic" if color_map.logarithmic else ""
    return f"{color_map.label}: {color_map.lower:.3g} ({first}) to {color_map.upper:.3g} ({last}){scale}"
