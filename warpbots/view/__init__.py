"""Pictures, films, plots and a notebook view of simulations.

Matplotlib, Pillow, k3d and ipywidgets are imported only when something is drawn.
"""

from warpbots.view.camera import Camera
from warpbots.view.film import animate, film_strip
from warpbots.view.html_page import save_html
from warpbots.view.notebook import View, live_view, mimebundle, show
from warpbots.view.picture import draw
from warpbots.view.plots import controls, loss_curve, save_loss, save_losses
from warpbots.view.still import table_with_picture

__all__ = [
    "Camera",
    "View",
    "animate",
    "controls",
    "draw",
    "film_strip",
    "live_view",
    "loss_curve",
    "mimebundle",
    "save_html",
    "save_loss",
    "save_losses",
    "show",
    "table_with_picture",
]
