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


def boxes_of(*shapes: S.Shape | None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the boxes around bodies with the axes `TURN` at (1, 2, 3), and of the box around all of them."""
    bodies, device = tuple(wb.RigidBody(f"body {k}", shape) for k, shape in enumerate(shapes)), wp.get_device("cpu")
    links, n = Links(), len(bodies)
    links.body_rotation = device_array(np.tile(TURN, (n, 1, 1)), device, wp.mat33d)
    links.body_position = device_array(np.tile([1.0, 2.0, 3.0], (n, 1)), device, vec3)
    solids, boxes = body_solids(bodies, CELL, 0.0, device), body_boxes(bodies, CELL, device)
    sizes = ((n, wp.mat33d), (n, vec3), (n + 1, vec3), (n + 1, vec3))
    outputs = [wp.zeros(size, dtype=t, device=device) for size, t in sizes]
    wp.launch(place_solids_kernel, (1, 1), [n, solids, boxes, 1, links], [*outputs, None], device=device)
    return outputs[2].numpy(), outputs[3].numpy()


def box_of(shape: S.Shape | None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box around one body."""
    lower, upper = boxes_of(shape)
    return lower[0], upper[0]


def test_the_last_box_is_around_all_bodies():
    lower, upper = boxes_of(*SHAPES.values(), None)
    assert (lower[-1] == lower[:-1].min(axis=0)).all() and (upper[-1] == upper[:-1].max(axis=0)).all()
    assert (lower[-1] < lower[0]).any() and np.isfinite([lower[-1], upper[-1]]).all()


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
