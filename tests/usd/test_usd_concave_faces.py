"""Polygons of meshes that are not convex, as modelling programs write them."""

import numpy as np
import pytest
from pxr import Usd, UsdGeom

from warpbots import usd
from warpbots.contact import signed_distance
from warpbots.usd.geometry.polygons import triangulated

ELL = np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0)])
SPIRAL = np.array([(0, 0), (4, 0), (4, 4), (1, 4), (1, 2), (2, 2), (2, 3), (3, 3), (3, 1), (0, 1)], dtype=float)


def area_of(points, faces):
    corner = points[faces]
    return np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]) / 2.0


@pytest.mark.parametrize(("polygon", "area"), [(ELL, 3.0), (SPIRAL, 10.0)])
def test_triangles_of_a_polygon_do_not_overlap(polygon, area):
    for first in range(len(polygon)):
        points = np.insert(np.roll(polygon, -first, axis=0), 2, 0.7, axis=1)
        faces = triangulated(points, np.array([len(points)]), np.arange(len(points)))
        areas = area_of(points, faces)
        assert len(faces) == len(points) - 2 and (areas[:, 2] > 0.0).all()
        assert areas[:, 2].sum() == pytest.approx(area)


@pytest.mark.parametrize("first", range(6))
def test_nothing_covers_the_notch_of_an_angle(first, tmp_path):
    n, flat = len(ELL), np.roll(ELL, -first, axis=0)
    points = np.concatenate([np.insert(flat, 2, z, axis=1) for z in (0.0, 1.0)])
    sides = [(k, (k + 1) % n, n + (k + 1) % n, n + k) for k in range(n)]
    stage = Usd.Stage.CreateNew(str(tmp_path / "angle.usda"))
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/angle")
    mesh.CreatePointsAttr(points.tolist())
    mesh.CreateFaceVertexCountsAttr([n, n, *[4] * n])
    mesh.CreateFaceVertexIndicesAttr([*range(n - 1, -1, -1), *range(n, 2 * n), *(k for side in sides for k in side)])
    stage.Save()
    (shape,) = usd.read_meshes(tmp_path / "angle.usda").values()
    assert shape.volume == pytest.approx(3.0)
    found = signed_distance(shape, np.array([[1.2, 1.2, 0.95], [1.1, 1.1, 0.02], [0.5, 0.5, 0.95]]))
    np.testing.assert_allclose(found, [0.2, 0.1, -0.05], atol=1e-6)
