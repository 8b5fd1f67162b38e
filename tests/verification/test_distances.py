"""Signed distances and normals of every shape against closed forms.

Distances are float64 except for meshes, which Warp queries in float32.
"""

import typing

import numpy as np
import pytest
from cases import DIMENSIONS

from warpbots.contact import normal, signed_distance
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)

ROOT2, ROOT3 = np.sqrt(2.0), np.sqrt(3.0)
LOWER, SIDES = np.array([0.0, 0.0, 0.0]), np.array([2.0, 4.0, 6.0])


def cuboid(lower, sides) -> TriangleMesh:
    """A box as twelve triangles."""
    corners = np.array(lower) + np.array(sides) * np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return TriangleMesh(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def turn(dim: int, angle: float) -> tuple:
    """Rotation by `angle` in the plane of the first two axes."""
    R = np.eye(dim)
    c, s = np.cos(angle), np.sin(angle)
    R[:2, :2] = [[c, -s], [s, c]]
    return tuple(map(tuple, R))


def axis_grid(dim: int, spacing: float, n: int) -> np.ndarray:
    """Grid positions, shape (n, ..., dim), from 0."""
    return spacing * np.stack(np.meshgrid(*(np.arange(n),) * dim, indexing="ij"), axis=-1)


# Shape, points and their distances, normals at them (None: not unique or not smooth there).
CASES = {
    "Box 2D": (
        Box((0, 0), (2, 4)),
        # centre: the nearest face is 1 away; beside a face; beyond a corner (3, 4, 5); on a face
        [[1, 2], [0.25, 2], [-0.5, 1], [5, 8], [2, 1]],
        [-1, -0.25, 0.5, 5, 0],
        [None, [-1, 0], [-1, 0], [0.6, 0.8], [1, 0]],
    ),
    "Box 3D": (
        Box((0, 0, 0), (2, 4, 6)),
        [[1, 2, 3], [1, 2, 5.75], [1, 2, 6.5], [3, 5, 7], [3, 6, 8]],
        [-1, -0.25, 0.5, ROOT3, 3],
        [None, [0, 0, 1], [0, 0, 1], [1 / ROOT3] * 3, [1 / 3, 2 / 3, 2 / 3]],
    ),
    "Sphere 2D": (Sphere((1, 1), 0.5), [[1, 1.25], [4, 5], [1.5, 1]], [-0.25, 4.5, 0], [[0, 1], [0.6, 0.8], [1, 0]]),
    "Sphere 3D": (
        Sphere((1, 1, 1), 0.5), [[1, 1, 1], [2, 3, 3], [1, 1, 0.75]], [-0.5, 2.5, -0.25],
        [None, [1 / 3, 2 / 3, 2 / 3], [0, 0, -1]],
    ),
    "Capsule 2D": (
        Capsule((0, 0), (2, 0), 0.5), [[1, 0.25], [1, 2], [5, 4], [-3, -4]], [-0.25, 1.5, 4.5, 4.5],
        [[0, 1], [0, 1], [0.6, 0.8], [-0.6, -0.8]],
    ),
    "Capsule 3D": (
        Capsule((0, 0, 0), (0, 0, 2), 0.5), [[0, 3, 1], [0, 3, 6], [0.3, 0.4, 1]], [2.5, 4.5, 0],
        [[0, 1, 0], [0, 0.6, 0.8], [0.6, 0.8, 0]],
    ),
    "Cylinder 2D": (  # the rectangle from (0, -0.5) to (2, 0.5)
        Cylinder((0, 0), (2, 0), 0.5), [[1, 0.25], [1.9, 0], [5, 0], [5, 4.5]], [-0.25, -0.1, 3, 5],
        [[0, 1], [1, 0], [1, 0], [0.6, 0.8]],
    ),
    "Cylinder 3D": (  # about the slope y = x
        Cylinder((0, 0, 0), (1, 1, 0), 1.0),
        [[0.5, 0.5, 0.75], [0.5, 0.5, 3], [3, 3, 0], [2, 2, 3]],
        [-0.25, 2, 2 * ROOT2, np.hypot(ROOT2, 2)],
        [[0, 0, 1], [0, 0, 1], [1 / ROOT2, 1 / ROOT2, 0], np.array([1, 1, 2]) / np.sqrt(6)],
    ),
    "HalfSpace 2D": (HalfSpace((0, 1), (0, 2)), [[7, 3], [7, -1], [0, 1]], [2, -2, 0], [[0, 1]] * 3),
    "HalfSpace 3D": (HalfSpace((1, 0, 0), (3, 0, 4)), [[1, 5, 5], [-4, 0, 0]], [4, -3], [[0.6, 0, 0.8]] * 2),
    "Heightfield 2D": (  # z = 3/4 x: distance is 4/5 of the height above it
        Heightfield((0,), 0.5, 0.75 * 0.5 * np.arange(5)), [[1, 0.75], [1, 2], [1.3, 0]], [0, 1, -0.78],
        [[-0.6, 0.8]] * 3,
    ),
    "Heightfield 3D": (  # z = 2x + 2y: distance is 1/3 of the height above it
        Heightfield((0, 0), 0.5, 2 * axis_grid(2, 0.5, 5).sum(-1)), [[1, 0.5, 6], [0.8, 0.3, 0]], [1, -2.2 / 3],
        [np.array([-2, -2, 1]) / 3] * 2,
    ),
    "DistanceGrid 2D": (  # samples of a plane's distance are interpolated exactly
        DistanceGrid(axis_grid(2, 0.5, 5) @ [0.6, 0.8] - 1, (1, 1), 0.5), [[1.5, 2.3], [2.9, 1.1]], [0.34, 0.22],
        [[0.6, 0.8]] * 2,
    ),
    "DistanceGrid 3D": (
        DistanceGrid(axis_grid(3, 0.5, 5) @ [1 / 3, 2 / 3, 2 / 3] - 1, (0, 0, 0), 0.5), [[0.7, 1.1, 0.2]], [0.1],
        [np.array([1, 2, 2]) / 3],
    ),
    "Silhouette": (  # two pixels of 0.5 m side by side above an empty row: half a pixel inwards, and upwards out
        Silhouette([[True, True], [False, False]], (0, 0), 0.5), [[0.25, 0.75], [0.5, 1.25], [0.5, 0.25]],
        [-0.25, 0.25, 0.25], [None, [0, 1], [0, -1]],
    ),
    "TriangleMesh": (
        cuboid(LOWER, SIDES),
        [[1, 2, 3], [0.25, 2, 3], [1, 2, 6.5], [3, 5, 7], [3, 6, 8]],
        [-1, -0.25, 0.5, ROOT3, 3],
        [None, [-1, 0, 0], [0, 0, 1], [1 / ROOT3] * 3, [1 / 3, 2 / 3, 2 / 3]],
    ),
    "TetMesh": (  # the corner of a cube of 6 m; its slanted face has the normal (1, 1, 1)
        TetMesh([[0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6]], [[0, 1, 2, 3]]),
        [[0.25, 1, 1], [-0.5, 1, 1], [3, 3, 3], [-3, 1, -4], [1.75, 1.75, 1.75]],
        [-0.25, 0.5, ROOT3, 5, -0.75 / ROOT3],
        [[-1, 0, 0], [-1, 0, 0], [1 / ROOT3] * 3, [-0.6, 0, -0.8], [1 / ROOT3] * 3],
    ),
    "Sheet": (  # a plate of 0.5 m about z = 1, with round edges
        Sheet.rectangle((0, 0), (2, 4), 0.5, (2, 1), height=1.0),
        [[0.7, 2, 1.125], [0.7, 2, 3], [0.7, 2, -1], [5, 2, 5], [-1, 6, 3]],
        [-0.125, 1.75, 1.75, 4.75, 2.75],
        [[0, 0, 1], [0, 0, 1], [0, 0, -1], [0.6, 0, 0.8], [-1 / 3, 2 / 3, 2 / 3]],
    ),
    "Truss": (  # two capsules
        Truss([[0, 0], [2, 0], [2, 3]], [[0, 1], [1, 2]], [0.5, 0.25]), [[1, 0.25], [-3, -4], [2.75, 2], [2.1, 2.5]],
        [-0.25, 4.5, 0.5, -0.15], [[0, 1], [-0.6, -0.8], [1, 0], [1, 0]],
    ),
    "Points 2D": (  # discs of the particles' areas: radius 1
        Points([[0, 0], [5, 0]], [np.pi, np.pi]), [[3, 4], [5, 0.5]], [np.hypot(2, 4) - 1, -0.5],
        [np.array([-2, 4]) / np.hypot(2, 4), [0, 1]],
    ),
    "Points 3D": (Points([[0, 0, 0]], [4 * np.pi / 3]), [[2, 3, 6]], [6], [np.array([2, 3, 6]) / 7]),
    "Union": (
        Union((Sphere((0, 0), 1), Box((3, -1), (5, 1)))), [[0, 2], [4, 3], [4, 0.5], [0, 0.5]], [1, 2, -0.5, -0.5],
        [[0, 1], [0, 1], [0, 1], [0, 1]],
    ),
    "Posed 2D": (  # x and y of the box change places: from (-4, 0) to (0, 2), then moved by (10, 0)
        Posed(Box((0, 0), (2, 4)), (10, 0), turn(2, np.pi / 2)), [[8, 0.25], [5, 1], [14, 6]], [-0.25, 1, 4 * ROOT2],
        [[0, -1], [-1, 0], [1 / ROOT2, 1 / ROOT2]],
    ),
    "Posed half-space": (
        Posed(HalfSpace((0, 0, 0), (1, 0, 0)), (0, 1, 0), turn(3, np.pi / 2)), [[3, 3, 7]], [2], [[0, 1, 0]]
    ),
}  # fmt: skip


def test_every_shape_is_listed():
    assert {type(shape) for shape, *_ in CASES.values()} == set(typing.get_args(Shape))


@pytest.mark.parametrize("name", CASES)
def test_distance(name):
    shape, points, distances, _ = CASES[name]
    tolerance = 1e-6 if isinstance(shape, TriangleMesh | TetMesh | Sheet) else 1e-12
    np.testing.assert_allclose(signed_distance(shape, np.array(points, dtype=float)), distances, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_normal(name):
    """By differences over 1e-3 m: exact where the distance is linear, 1e-6 (step^2 over curvature^2) elsewhere.

    A triangle mesh is queried in float32, so there it is 1e-6 of distance over 1e-3 of step.
    """
    shape, points, _, normals = CASES[name]
    found = normal(shape, np.array(points, dtype=float), 1e-3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-12)
    for point, n, unit in zip(points, found, normals, strict=True):
        if unit is not None:
            tolerance = 2e-3 if isinstance(shape, TriangleMesh | TetMesh | Sheet) else 1e-6
            np.testing.assert_allclose(n, unit, rtol=0, atol=tolerance, err_msg=f"{name} at {point}")


UNBOUNDED = ("HalfSpace 2D", "HalfSpace 3D", "Heightfield 2D", "Heightfield 3D", "Posed half-space")


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_has_no_end_has_infinite_bounds(name):
    lower, upper = CASES[name][0].bounds
    assert not np.isnan([lower, upper]).any()
    assert lower[-1] == -np.inf


SAMPLES = ("DistanceGrid 2D", "DistanceGrid 3D", "Points 2D", "Points 3D")
"""Their bounds are those of the samples and of the particles' centres, and say so."""


@pytest.mark.parametrize("name", [n for n in CASES if n not in UNBOUNDED + SAMPLES])
def test_bounds_hold_the_shape(name, rng):
    """Nothing inside lies outside of the bounds, and (where nothing is turned) the bounds touch the shape."""
    shape = CASES[name][0]
    lower, upper = shape.bounds
    room = 0.3 * (upper - lower)
    x = rng.uniform(lower - room, upper + room, size=(40000, len(lower)))
    inside = x[signed_distance(shape, x) < -1e-6]
    assert len(inside) > 100
    assert (inside >= lower).all()
    assert (inside <= upper).all()
    assert (inside.min(0) < lower + 0.1 * (upper - lower)).all()
    assert (inside.max(0) > upper - 0.1 * (upper - lower)).all()


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_sphere_sampled_on_a_grid(dim, rng):
    """Multilinear interpolation of a distance of curvature 1/r is off by at most dim h^2 / (8 r)."""
    h, r = 0.1, 1.0
    grid = axis_grid(dim, h, 41) - 2.0
    sampled = DistanceGrid(np.linalg.norm(grid, axis=-1) - r, (-2.0,) * dim, h)
    x = rng.uniform(-1.4, 1.4, size=(500, dim))
    x = x[np.linalg.norm(x, axis=1) > 0.7]
    bound = dim * h**2 / (8 * 0.6)
    exact = Sphere((0.0,) * dim, r)
    assert np.abs(signed_distance(sampled, x) - signed_distance(exact, x)).max() < bound
    outside = np.array([[3.0, *(0.0,) * (dim - 1)]])  # beyond the samples the distance to them is added
    assert signed_distance(sampled, outside)[0] == pytest.approx(2.0, abs=1e-12)


def test_a_silhouette_is_right_to_half_a_pixel():
    """A disc of radius 20 pixels: pixel edges are within half a diagonal of its rim."""
    pixel = 0.01
    rows, columns = np.mgrid[:64, :64]
    centre = np.array([32.0, 32.0])
    mask = np.hypot(columns + 0.5 - centre[0], rows + 0.5 - centre[1]) < 20
    shape = Silhouette(mask, (0.0, 0.0), pixel)
    x = pixel * (np.mgrid[4:60:3, 4:60:3].reshape(2, -1).T + 0.37)
    exact = Sphere(tuple(pixel * centre), 20 * pixel)
    assert np.abs(signed_distance(shape, x) - signed_distance(exact, x)).max() < 0.75 * pixel
