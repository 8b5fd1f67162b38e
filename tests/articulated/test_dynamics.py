"""Equations of motion against MuJoCo, and against quantities that a motion keeps."""

import dataclasses

import mujoco
import numpy as np
import pytest
from cases import dynamics
from mechanisms import mujoco_model, random_state, random_tree, set_state, to_mujoco

from warpbots.solvers import Articulated


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("seed", range(10))
def test_mass_matrix_bias_and_acceleration_are_those_of_mujoco(seed):
    rng = np.random.default_rng(seed)
    scene = random_tree(rng, 2 * seed + 2)
    solver = Articulated()
    model = solver.build(scene)
    reference = mujoco_model(scene)
    data, state = mujoco.MjData(reference), solver.state(model)
    q, v = random_state(model.robot, rng)
    state.q.assign(q[None])
    state.qd.assign(v[None])
    set_state(scene, model.robot, reference, data, q, v)
    M, T = np.zeros((reference.nv, reference.nv)), to_mujoco(scene, model.robot, reference)
    mujoco.mj_fullM(reference, data, M)
    found = dynamics(model, state)
    assert relative(found.mass_matrix[0], T.T @ M @ T) < 1e-11
    assert relative(found.bias[0] - found.force[0], T.T @ (data.qfrc_bias - data.qfrc_passive)) < 1e-11
    assert relative(found.acceleration[0], T.T @ data.qacc) < 1e-9


def test_the_order_of_bodies_and_joints_changes_nothing():
    rng = np.random.default_rng(5)
    scene = random_tree(rng, 8)
    turned = dataclasses.replace(scene, bodies=scene.bodies[::-1], joints=scene.joints[::-1])
    solver, found = Articulated(), {}
    q, v = random_state(solver.build(scene).robot, rng)
    robots = [solver.build(s) for s in (scene, turned)]
    for model in robots:
        state = solver.state(model)
        own_q, own_v = np.zeros_like(q), np.zeros_like(v)
        for joint in model.robot.joints:
            name = joint.name
            own_q[model.robot.coordinates[name]] = q[robots[0].robot.coordinates[name]]
            own_v[model.robot.velocities[name]] = v[robots[0].robot.velocities[name]]
        state.q.assign(own_q[None])
        state.qd.assign(own_v[None])
        acceleration = dynamics(model, state).acceleration[0]
        for joint in model.robot.joints:
            found.setdefault(joint.name, []).append(acceleration[model.robot.velocities[joint.name]])
    for a, b in found.values():
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)
