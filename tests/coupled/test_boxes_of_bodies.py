"""Boxes around rigid bodies: points of matter outside of them are not compared with the bodies themselves."""

import numpy as np
import pytest
import warp as wp

import warpbots as wb
from warpbots.contact import signed_distance
from warpbots.solvers.articulated.spatial import vec3
from warpbots.solvers.articulated.step_arrays import Links
from warpbots.solvers.coupled.body_solids import body_boxes, body_solids
from warpbots.solvers.coupled.touching_points import place_solids_kernel
from warpbots.solvers.device_arrays import device_array

S = wb.shapes
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
TURN *= np.linalg.det(TURN)
CELL = 0.05
SHAPES = {
    "sphere": S.Sphere((0.1, 0.0, -0.2), 0.3),
    "box": S.Box((-0.1, 0.0, -0.2), (0.3, 0.05, 0.2)),
    "capsule": S.Capsule((0.0, 0.1, 0.0), (0.2, 0.3, -0.4), 0.05),
    "cylinder": S.Cylinder((0.0, 0.1, 0.0), (0.2, 0.3, -0.4), 0.1),
    "turned box": S.Posed(S.Box((-0.1, 0.0, -0.2), (0.3, 0.05, 0.2)), (0.1, 0.2, 0.3), TURN.tolist()),
    "union": S.Union((S.Sphere((0.2, 0.0, 0.0), 0.1), S.Box((-0.3, -0.02, -0.02), (0.2, 0.02, 0.02)))),
}


def box_of(shape: S.Shape | None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box around a body with the axes `TURN` at (1, 2, 3)."""
    body, device = wb.RigidBody("body", shape), wp.get_device("cpu")
    links = Links()
    links.body_rotation = device_array(TURN[None], device, wp.mat33d)
    links.body_position = device_array(np.array([[1.0, 2.0, 3.0]]), device, vec3)
    solids, boxes = body_solids((body,), CELL, 0.0, device), body_boxes((body,), CELL, device)
    outputs = [wp.zeros(n, dtype=t, device=device) for n, t in ((1, wp.mat33d), (1, vec3), (2, vec3), (2, vec3))]
    wp.launch(place_solids_kernel, (1, 1), [1, solids, boxes, 1, links], [*outputs, None], device=device)
    return outputs[2].numpy()[0], outputs[3].numpy()[0]


@pytest.mark.parametrize("name", SHAPES)
def test_no_point_is_nearer_to_a_body_than_to_the_box_around_it(name):
    lower, upper = box_of(SHAPES[name])
    x = np.random.default_rng(2).uniform(-0.6, 0.6, (4000, 3))
    distance = signed_distance(SHAPES[name], x)
    y = x @ TURN.T + [1.0, 2.0, 3.0]
    beyond = np.maximum(lower - y, y - upper).max(axis=1)
    assert (beyond <= np.maximum(distance, 0.0) + 1e-12).all()
    assert (beyond > 0.0).mean() > 0.1


def test_every_point_is_in_the_box_of_a_half_space_and_none_in_that_of_a_body_without_shape():
    lower, upper = box_of(S.HalfSpace((0.0, 0.0, 0.0), (0.0, 0.6, 0.8)))
    assert (lower == -np.inf).all() and (upper == np.inf).all()
    lower, upper = box_of(None)
    assert (lower == np.inf).all() and (upper == -np.inf).all()
