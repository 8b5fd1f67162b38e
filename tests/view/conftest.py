"""Motions that are simulated once, and figures that no pyplot knows."""

import numpy as np
import pytest
from view_cases import flat_scene, moved, solid_scene


@pytest.fixture(scope="session")
def flat():
    """A trajectory in 2D, 12 control intervals."""
    return moved(flat_scene(), 12)


@pytest.fixture(scope="session")
def solid():
    """A trajectory in 3D, 6 control intervals."""
    return moved(solid_scene(), 6)


@pytest.fixture(params=["flat", "solid"])
def trajectory(request):
    """Both of them."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def axes():
    """Makes axes of a figure that no pyplot knows, of 100 pixels per inch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def make():
        figure = Figure(figsize=(6.0, 4.0), dpi=100)
        FigureCanvasAgg(figure)
        return figure.add_axes((0.1, 0.1, 0.85, 0.85))

    return make


@pytest.fixture
def pixels():
    """What a figure looks like: RGB in [0, 1], shape (rows, columns, 3), first row at the bottom."""

    def look(figure) -> np.ndarray:
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3] / 255.0

    return look
