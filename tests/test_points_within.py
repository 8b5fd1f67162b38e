"""Points spread over shapes represent all of their volume, and lie inside."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from warpbots.contact import points_within, signed_distance, volume
from warpbots.scene import Box, Capsule, Points, Posed, Sheet, Sphere, Truss, Union

TURN = Rotation.from_euler("xyz", [0.4, -0.7, 1.1]).as_matrix()
GRID = np.array([[x, y, 0.1] for x in (0.0, 0.5, 1.0) for y in (0.0, 0.5, 1.0)])
FACES = [f for i in (0, 1) for k in (0, 1) for a in [3 * i + k] for f in ((a, a + 3, a + 4), (a, a + 4, a + 1))]
SHAPES = {
    "box": (Box((0, 0, 0), (1.0, 0.2, 0.1)), (0.5, 0.1, 0.05)),
    "disc": (Sphere((0.3, 0.4), 0.2), (0.3, 0.4)),
    "turned capsule": (
        Posed(Capsule((0, 0, 0), (0, 0, 1.0), 0.1), (1.0, 2.0, 3.0), TURN),
        TURN @ [0, 0, 0.5] + [1, 2, 3],
    ),
    "union": (Union((Box((0, 0), (1, 1)), Box((1, 0), (3, 1)))), (1.5, 0.5)),
    "points": (Points(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([1.0, 3.0])), (0.75, 0.0)),
    "sheet": (Sheet(GRID, FACES, 1e-3), (0.5, 0.5, 0.1)),
    "truss": (Truss(np.array([[0.0, 0, 0], [1.0, 0, 0]]), [[0, 1]], 0.01), (0.5, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_points_have_the_volume_and_the_centre_of_their_shape(name):
    shape, center = SHAPES[name]
    position, share = points_within(shape, 1 << 12)
    assert share.sum() == pytest.approx(volume(shape), rel=0.02)  # a capsule has ends that its bar has not
    size = np.ptp(position, axis=0).max()
    np.testing.assert_allclose(share @ position / share.sum(), center, atol=5e-3 * size)
    assert (signed_distance(shape, position) <= 2e-6 * size).all()


@pytest.mark.parametrize("name", ["box", "sheet", "truss"])
def test_points_of_a_region_are_those_within_it(name):
    shape, _ = SHAPES[name]
    half = Box((-1.0, -1.0, -1.0), (0.5, 2.0, 1.0))
    position, share = points_within(shape, 1 << 12, half)
    assert position[:, 0].max() <= 0.5 + 1e-5
    assert share.sum() == pytest.approx(0.5 * volume(shape), rel=0.02 if name != "sheet" else 0.6)
    assert len(points_within(shape, 1 << 12, Box((5.0, 5.0, 5.0), (6.0, 6.0, 6.0)))[0]) == 0


def test_a_region_that_is_flat_has_points_of_its_face():
    position, _ = points_within(Box((0, 0, 0), (1, 1, 1)), 1 << 12, Box((0, 0, 1), (1, 1, 2)))
    assert len(position) > 1000
    np.testing.assert_allclose(position[:, 2], 1.0, atol=1e-5)
