"""Faces of meshes that are holes do not belong to the surface."""

import numpy as np
import pytest
from pxr import Usd
from usd_cases import ROUND, prim, write_text

from warpbots import usd
from warpbots.scene import Box, SceneError, Sheet, SoftBody, TriangleMesh

CUBE = """
    point3f[] points = [(0,0,0), (1,0,0), (1,1,0), (0,1,0), (0,0,1), (1,0,1), (1,1,1), (0,1,1)]
    int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
    int[] faceVertexIndices = [3,2,1,0, 4,5,6,7, 0,1,5,4, 1,2,6,5, 2,3,7,6, 3,0,4,7]
"""
GROUND = """
    point3f[] points = [(0,0,0), (1,0,0), (2,0,0), (3,0,0), (0,1,0), (1,1,0), (2,1,0), (3,1,0), (2,2,9)]
    int[] faceVertexCounts = [4, 4, 4, 3]
    int[] faceVertexIndices = [0,1,5,4, 1,2,6,5, 2,3,7,6, 0,3,8]
"""
BODY, CLOTH, COLLIDER = "PhysicsDeformableBodyAPI", "PhysicsSurfaceDeformableSimAPI", "PhysicsCollisionAPI"
BLOCK = prim("Cube", "Block", BODY)


def read(folder, *prims):
    header = '(\n upAxis = "Z"\n metersPerUnit = 1\n)\n'
    return usd.read(write_text(folder / "holes.usda", header + "\n".join(prims)), material=ROUND)


def mesh(holes, *apis, text=CUBE, more=""):
    return prim("Mesh", "Cup", *apis, text=f"{text}\nint[] holeIndices = {holes}\n{more}")


def test_a_sheet_has_its_holes(tmp_path):
    (body,) = read(tmp_path, mesh([1, 2], BODY, CLOTH)).bodies
    assert isinstance(body.shape, Sheet) and len(body.shape.faces) == 8
    corners = body.shape.vertices[body.shape.faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2.0
    assert areas.sum() == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("holes", "words"),
    [
        ([1], "TriangleMesh is not watertight: .* its holeIndices leave out 1 of 6 faces, remove them from the file"),
        ([0, 6], "its holeIndices must index faces 0 to 5, got 0 to 6"),
        ([-1], "its holeIndices must index faces 0 to 5, got -1 to -1"),
        ([0, 1, 2, 3, 4, 5], "its holeIndices leave out all of its 6 faces"),
    ],
)
def test_a_solid_with_holes_is_refused(holes, words, tmp_path):
    with pytest.raises(SceneError, match=f"/Cup: {words}"):
        read(tmp_path, mesh(holes, BODY))


def test_the_ground_of_an_obstacle_has_its_holes(tmp_path, heard):
    """One in the middle, and one that is not in the plane."""
    (obstacle,) = read(tmp_path, BLOCK, mesh([1, 3], COLLIDER, text=GROUND)).obstacles
    assert obstacle.shape.volume == pytest.approx(2.0 * 0.1)
    assert "/Cup: an open surface" in heard.text


def test_a_hull_leaves_out_points_of_holes_alone(tmp_path):
    """The point in the hole is at a height of 9 m."""
    said = 'uniform token physics:approximation = "boundingCube"'
    shape = mesh([3], COLLIDER, text=GROUND.replace("(3,1,0)", "(3,1,2)"), more=said)
    (obstacle,) = read(tmp_path, BLOCK, shape).obstacles
    assert obstacle.shape == Box((0, 0, 0), (3, 1, 2))


def test_a_hole_that_is_cut_into_a_file_of_ours_counts(tmp_path):
    """The exact values beside the geometry have no holes."""
    scene = read(tmp_path, BLOCK)
    vertices = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1.0 / 3.0)])
    sheet = Sheet(vertices, np.array([(0, 1, 2), (1, 3, 2)]), 1e-2)
    usd.write(tmp_path / "a.usda", type(scene)([SoftBody("b", sheet, ROUND)]))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    (found,) = (p for p in stage.Traverse() if p.GetTypeName() == "Mesh")
    found.GetAttribute("holeIndices").Set([1])
    stage.Save()
    assert len(usd.read(tmp_path / "a.usda").bodies[0].shape.faces) == 1


def test_no_holes_are_no_matter(tmp_path):
    (body,) = read(tmp_path, mesh([], BODY)).bodies
    assert isinstance(body.shape, TriangleMesh) and body.shape.volume == pytest.approx(1.0)
