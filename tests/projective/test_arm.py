"""An arm with two soft pads grips a rigid cube: Coulomb's law, gradients, and the motion in USD."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from loose_bodies import G
from pxr import Usd, UsdGeom

import warpbots as wb
from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"))
from grasping import Arm, Cube, Plan, around, grasp_scene, small_arm

CUBE = Cube("cube", (0.26, 12.0), 0.03, 2700.0)
DOUBLE = precision == "float64"
LIFTED = dataclasses.replace(CUBE, height=0.05)
"""The cube in the air, between the pads."""


def gripping(cube: Cube, dt: float, worlds: int = 1, cells: float = 1.6e-2, friction: float = 0.6, **options):
    """A simulation whose hand is around a cube, and its plan."""
    robot, hand = small_arm()
    robot = around(robot, hand, cube.center, cube.side)
    scene = grasp_scene(robot, hand, [cube], cells=cells, friction=friction)
    sim = Simulation(scene, ProjectiveDynamics(0.1, **options), dt, substeps=1, worlds=worlds)
    return sim, Plan(Arm(robot, hand), dt)


@pytest.mark.parametrize(
    ("dt", "cells", "friction"),
    (
        (1e-2, 1.6e-2, 0.6),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((5e-3, 1.6e-2, 0.6), (1e-2, 4e-3, 0.6), (1e-2, 1.6e-2, 0.3))),
    ),
    ids=("usual", "half the step", "finer pads", "another coefficient"),
)  # fmt: skip
def test_pads_hold_what_coulomb_allows(dt, cells, friction):
    """Weights of 0.5 and 0.9 times 2 mu N are held; 1.3 and 2 times it fall with 2 mu N / m - g."""
    load, weight = np.array([0.5, 0.9, 1.3, 2.0]), CUBE.mass * G
    sim, plan = gripping(LIFTED, dt, len(load), cells, friction)
    grips = weight / load / (2.0 * friction)
    plan.wait(dt, grips[0])
    state, body, speeds = sim.state(), sim.model.robot.body(CUBE.name), []
    control = plan.control[-1:].repeat(len(load), 1)
    for _ in range(round(0.05 / dt)):
        state = sim.step(state, control)
    control[:, -2:] = -torch.as_tensor(grips)[:, None] / plan.force
    for _ in range(round(0.07 / dt)):
        state = sim.step(state, control)
        speeds.append(sim.sense(state).velocity[:, body, 2].numpy())
    first = round(0.03 / dt)
    acceleration = (speeds[-1] - speeds[first - 1]) / (dt * (len(speeds) - first))
    slips = load > 1.0
    np.testing.assert_allclose(acceleration[slips], -G * (1.0 - 1.0 / load[slips]), rtol=0.02)
    np.testing.assert_allclose(acceleration[~slips], 0.0, atol=0.02 * G)


@pytest.mark.verification
def test_gradients_through_a_grasp_are_those_of_differences():
    """Of a lift that slips a little, by mass, friction, the pads' modulus, the servos and the force of the fingers."""
    sim, plan = gripping(LIFTED, 1e-2, tolerance=1e-12)
    plan.wait(1e-2, CUBE.mass * G / 2.0 / 0.6 / 1.1)
    begun, control = sim.state(), plan.control[-1:].double()  # rounded to float32, differences would be off by 2e-4
    with torch.no_grad():
        for _ in range(3):
            begun = sim.step(begun, control)
    values = {n: sim.parameter(n).clone() for n in ("mass", "body_friction", "youngs_modulus", "motor_target")}
    values["control"] = control

    def loss(values: dict) -> torch.Tensor:
        state = begun
        for _ in range(3):
            state = sim.step(state, **values)
        weights = torch.linspace(1.0, 2.0, state.q.shape[1])
        return (state.q[0] * weights).sum() + 0.01 * (state.qd[0] * weights[: state.qd.shape[1]]).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in values.items()}
    loss(leaves).backward()
    with torch.no_grad():
        start = float(loss(values))
    assert sim.report().contacts[0] >= 8
    for k, (name, value) in enumerate(values.items()):
        way = torch.randn(value.shape, generator=torch.Generator().manual_seed(k)) * value.abs().clamp(min=0.02)
        slope = float((leaves[name].grad * way).sum())
        assert slope != 0.0, name
        slopes, rests = [], []
        for size in (1e-3, 1e-4):  # below, another set of contacts that share a load moves the end by 1e-10
            with torch.no_grad():
                ends = [float(loss(values | {name: value + s * size * way})) for s in (1.0, -1.0)]
            slopes.append((ends[0] - ends[1]) / (2.0 * size))
            rests.append(abs(ends[0] - start - size * slope))
        assert min(abs(slope - s) for s in slopes) < 1e-5 * abs(slope), (name, slope, slopes)
        assert rests[1] < 0.03 * rests[0] or rests[1] < 2e-9, (name, rests)


LONG = {"mass": -8.50645e-3, "youngs_modulus": 9.53726e-3, "control": -0.1123855}
"""Slopes of the test below in double precision, which agree with differences."""


@pytest.mark.slow
@pytest.mark.verification(float32=True)
def test_gradients_through_fifty_steps_of_a_grasp():
    """The pads grip and hold a rigid cube for half a second; single precision has the slopes of double precision."""
    sim, plan = gripping(LIFTED, 1e-2, tolerance=1e-12 if DOUBLE else None)
    plan.wait(1e-2, CUBE.mass * G / 2.0 / 0.6 / 0.7)
    values = {n: sim.parameter(n).clone() for n in ("mass", "youngs_modulus")}
    values["control"] = plan.control[-1:].double()
    found = {}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state()
        for _ in range(50):
            state = sim.step(state, **values)
        q = state.q[0].double()
        return (q * torch.linspace(1.0, 2.0, len(q))).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in values.items()}
    end = loss(leaves)
    assert sim.report().contacts[0] >= 8
    end.backward()
    for k, (name, value) in enumerate(values.items()):
        way = torch.randn(value.shape, generator=torch.Generator().manual_seed(k)) * value.abs().clamp(min=0.02)
        found[name] = float((leaves[name].grad * way).sum())
        if DOUBLE:
            with torch.no_grad():
                ends = [float(loss(values | {name: value + s * 1e-4 * way})) for s in (1.0, -1.0)]
            assert found[name] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-5), name
    for name, slope in LONG.items():
        assert found[name] == pytest.approx(slope, rel=1e-3), found


def test_the_motion_of_the_bundled_scene_in_usd(tmp_path):
    """Frames of links, of the rigid cube and of the pads are the states of the motion."""
    scene = wb.usd.read(Path(__file__).resolve().parents[2] / "usd_scenes" / "arm.usda")
    sim = wb.Simulation(scene, ProjectiveDynamics(scene.task.cell_size))
    robot, hand = small_arm()
    plan = Plan(Arm(robot, hand), sim.dt)
    plan.go(plan.arm.middle() + [0.0, 0.01, -0.005], 0.04, 0.5)
    motion = sim.rollout(plan.control, len(plan))
    wb.usd.write(tmp_path / "motion.usda", motion)
    stage, moved = Usd.Stage.Open(str(tmp_path / "motion.usda")), []
    for (time, position, rotation), (_, points, _) in zip(motion.poses(), motion.frames(), strict=True):
        code = round(time * stage.GetTimeCodesPerSecond(), 6)
        cache = UsdGeom.XformCache(code)
        for body, x, R in zip(scene.rigid, position, rotation, strict=True):
            world = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(f"/World/Bodies/{body.name}"))).T
            np.testing.assert_allclose(world[:3], np.column_stack([R, x]), rtol=0.0, atol=1e-12)
        for body, surface in zip(scene.soft, motion.matter.surfaces, strict=True):
            prim = stage.GetPrimAtPath(f"/World/Bodies/{body.name.replace(' ', '_')}/Shape")
            found = np.asarray(UsdGeom.PointBased(prim).GetPointsAttr().Get(code))
            np.testing.assert_allclose(found, points[surface.nodes], rtol=0.0, atol=1e-6)
        moved.append(points.mean(axis=0))
    assert np.linalg.norm(moved[-1] - moved[0]) > 1e-3
