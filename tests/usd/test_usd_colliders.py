"""Colliders of rigid bodies in files: scale, approximations, and membership in bodies."""

import math

import numpy as np
import pytest
from rigid_prims import cube, notes, read
from usd_cases import prim

from warpbots.scene import (
    Box,
    Sphere,
    TriangleMesh,
)


def body_shape(folder, *colliders, text=""):
    return read(folder, prim("Xform", "Body", "PhysicsRigidBodyAPI", text=text + "".join(colliders))).rigid[0].shape


SCALED = 'double3 xformOp:scale = {}\n uniform token[] xformOpOrder = ["xformOp:scale"]\n'


TET = """point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (0,0,1), (0.1,0.1,0.1)]
int[] faceVertexCounts = [3,3,3{}]
int[] faceVertexIndices = [0,2,1, 0,1,3, 0,3,2{}]
"""


MESH = ("PhysicsCollisionAPI", "PhysicsMeshCollisionAPI")


def test_scale_and_mirrors_go_into_shapes(tmp_path):
    box = prim("Cube", "Box", "PhysicsCollisionAPI", text="double size = 1")
    assert body_shape(tmp_path, box, text=SCALED.format((1, 2, -4))) == Box((-0.5, -1, -2), (0.5, 1, 2))
    ball = prim("Sphere", "Ball", "PhysicsCollisionAPI", text="double radius = 1")
    assert body_shape(tmp_path, ball, text=SCALED.format((-2, -2, -2))) == Sphere((0, 0, 0), 2.0)
    mesh = prim("Mesh", "Tet", *MESH, text=TET.format(",3", ", 1,2,3"))
    assert body_shape(tmp_path, mesh, text=SCALED.format((-1, 1, 1))).volume == pytest.approx(1 / 6)
    many = body_shape(tmp_path, box, ball)
    assert [type(s) for s in many.shapes] == [Box, Sphere]


def test_approximations_of_meshes(tmp_path, heard):
    hull = 'uniform token physics:approximation = "{}"\n'
    opened, closed = TET.format("", ""), TET.format(",3", ", 1,2,3")
    shape = body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=opened + hull.format("convexHull")))
    assert isinstance(shape, TriangleMesh)
    assert shape.volume == pytest.approx(1 / 6)
    assert body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=closed + hull.format("boundingCube"))) == Box(
        (0, 0, 0), (1, 1, 1)
    )
    ball = body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=closed + hull.format("boundingSphere")))
    assert ball.radius == pytest.approx(math.sqrt(0.75))
    assert not heard.messages
    assert body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=opened)).volume == pytest.approx(1 / 6)
    assert "convex hull is used instead" in notes(heard)["/Body/Tet"]
    flat = prim(
        "Mesh",
        "Flat",
        *MESH,
        text="point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]\n int[] faceVertexCounts = [3]\n int[] faceVertexIndices = [0,1,2]",
    )
    assert body_shape(tmp_path, flat) is None
    assert "lie in a plane" in notes(heard)["/Body/Flat"]


def test_a_cone_is_a_mesh_of_its_volume(tmp_path, heard):
    cone = prim(
        "Cone", "Hat", "PhysicsCollisionAPI", text='double radius = 0.5\n double height = 2\n uniform token axis = "X"'
    )
    shape = body_shape(tmp_path, cone)
    assert shape.volume == pytest.approx(math.pi * 0.25 * 2 / 3)
    np.testing.assert_allclose(np.array(shape.bounds)[:, 0], [-1, 1])
    assert "a cone" in notes(heard)["/Body/Hat"]


def test_what_belongs_to_a_body(tmp_path):
    """Colliders below it, without visuals, colliders of bodies below it and colliders that are switched off."""
    inner = cube("Inner", (0, 0, 1))
    seen = prim("Sphere", "Seen")
    off = prim("Sphere", "Off", "PhysicsCollisionAPI", text="bool physics:collisionEnabled = 0")
    still = cube("Still", text="bool physics:kinematicEnabled = 1\n")
    scene = read(tmp_path, cube("Outer", inside=inner + seen + off), still)
    assert [b.name for b in scene.rigid] == ["Outer", "Inner"]
    assert all(type(b.shape) is Box for b in scene.rigid)
    assert [o.name for o in scene.obstacles] == ["Box"]  # the kinematic one never moves
