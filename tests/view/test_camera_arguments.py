"""Arguments of views that gave a wrong picture without a word."""

import numpy as np
import pytest

from warpbots.scene import RigidBody, Scene, Sphere
from warpbots.view import Camera, draw

SCENE = Scene([RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.1), points=0)])


@pytest.mark.parametrize("elevation", [-20.0, 0.0, 120.0])
def test_a_viewer_stands_above_the_horizon(elevation):
    with pytest.raises(ValueError, match=r"Camera.around: elevation must be in \(0, 90\] degrees"):
        Camera.around(SCENE, np.eye(3), elevation=elevation)


@pytest.mark.parametrize("position", [np.array([[0.0, np.nan, 0.0]]), np.zeros((0, 3)), np.zeros((4, 2))])
def test_a_view_needs_points(position):
    with pytest.raises(ValueError, match="Camera.around: position must be"):
        Camera.around(SCENE, position)


def test_a_label_needs_values():
    with pytest.raises(ValueError, match="draw: label is the name of value, which is missing"):
        draw(SCENE, label="stress [Pa]")
