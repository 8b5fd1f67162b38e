"""Pairs, cloth and bones beside obstacles that move: a scene that moves as a whole is the same (Galileo's principle)."""

import dataclasses

import bare_bones
import numpy as np
import pytest
import torch

import warpbots as wb

SPEED = np.array([0.4, -0.2, 0.3])
FLESH = wb.Material(1e5, 0.3, 1000.0, "neo_hookean")


def cubes(shift):
    """A cube that falls askew onto another one."""
    boxes = ((0, 0, 0.0005), (0.1, 0.1, 0.1)), ((0.031, 0.027, 0.104), (0.131, 0.127, 0.2))
    velocities = np.array([(0, 0, -0.2), (0.1, 0, -1.2)]) + shift
    bodies = [
        wb.SoftBody(name, wb.shapes.Box(*box), FLESH, velocity=tuple(v))
        for name, box, v in zip(("low", "high"), boxes, velocities, strict=True)
    ]
    return bodies, [wb.floor(friction=0.5)], 0.05


def cloth(shift):
    """A sheet that falls onto the edge of a table."""
    sheet = wb.shapes.Sheet.rectangle((-0.05, -0.04), (0.05, 0.04), 5e-4, (4, 2), height=0.0005, bending=1e-5)
    velocity = tuple(np.array([0.1, 0.0, -0.3]) + shift)
    body = wb.SoftBody("cloth", sheet, wb.Material(5e5, 0.3, 300.0), velocity=velocity)
    return [body], [wb.Obstacle(wb.shapes.Box((-1.0, -1.0, -1.0), (0.01, 1.0, 0.0)), friction=0.4)], 0.02


def bones(shift):
    """Flesh with bare bones under it that slide over a floor."""
    velocity = tuple(np.array([0.5, 0.0, -0.5]) + shift)
    return bare_bones.sled((0.0, 0.0, 0.0005), velocity=velocity), [wb.floor(friction=0.3)], bare_bones.CELL


@pytest.mark.verification
@pytest.mark.parametrize("make", [cubes, cloth, bones])
def test_what_touches_is_the_same_beside_an_obstacle_that_moves(make):
    ends, steps, dt = [], 6, 4e-3
    for shift in (np.zeros(3), SPEED):
        bodies, obstacles, cell = make(shift)
        if shift.any():
            motion = wb.PrescribedMotion([0.0, 1.0], [np.zeros(3), shift])
            obstacles = [dataclasses.replace(o, motion=motion) for o in obstacles]
        scene = wb.Scene(tuple(bodies), obstacles=obstacles)
        sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell, tolerance=1e-10), dt)
        start = sim.state().position.clone().requires_grad_(True)
        state = sim.rollout(None, steps, sim.state(position=start)).final
        weight = torch.as_tensor(np.random.default_rng(0).normal(size=tuple(start.shape)))
        (gradient,) = torch.autograd.grad((weight * state.position).sum(), start)
        ends.append((state.position[0].detach().numpy() - shift * steps * dt, gradient.numpy()))
    (still, still_gradient), (moved, gradient) = ends
    assert moved == pytest.approx(still, abs=1e-8)
    assert gradient == pytest.approx(still_gradient, abs=1e-4 * np.abs(still_gradient).max())
