"""Friction between rigid bodies and several soft bodies under `Coupled`: the mean of both coefficients for each pair."""

import pytest
import torch

import warpbots as wb

STILL = torch.zeros(1, 0)
SOFT, RIGID = {"smooth": 0.1, "rough": 0.7}, 0.3


def sliding(dt: float, substeps: int | None = None) -> wb.Simulation:
    """Two strips that are glued to a floor, with other coefficients each, and a block that slides on each."""
    strips, blocks, joints = [], [], []
    for k, (name, mu) in enumerate(SOFT.items()):
        y, at = 0.06 * k, (0.03, 0.02 + 0.06 * k, 0.03)
        shape = wb.shapes.Box((0, y, 0), (0.08, y + 0.04, 0.02))
        strips.append(wb.SoftBody(name, shape, wb.Material(1e5, 0.3, 1000.0, damping=2e-3), friction=mu))
        box = wb.shapes.Box((-0.015, -0.015, -0.01), (0.015, 0.015, 0.01))
        blocks.append(wb.RigidBody(f"on {name}", box, 1500.0, position=at, friction=RIGID))
        speed = (1.0, 0.0, -0.1, 0.0, 0.0, 0.0)
        joints.append(wb.Joint(f"free {name}", "free", None, f"on {name}", start_velocity=speed))
    scene = wb.Scene([*strips, *blocks], obstacles=[wb.floor(0.0, condition="sticky")], joints=joints,
                     domain=((-0.02, -0.02, 0), (0.1, 0.12, 0.06)))  # fmt: skip
    return wb.Simulation(scene, wb.Coupled(wb.MPM(0.01), wb.Articulated(tolerance=1e-12)), dt, substeps)


def test_a_block_has_the_mean_of_its_coefficient_and_that_of_the_soft_body_below():
    sim = sliding(1e-3)
    state, force = sim.state(), torch.zeros(2, 3)
    for _ in range(4):
        state = sim.step(state, STILL)
        force = force + sim.sense(state, STILL).matter_force[0]
    for k, mu in enumerate(SOFT.values()):
        assert (-force[k, 0] / force[k, 2]).item() == pytest.approx((mu + RIGID) / 2, rel=0.02)


@pytest.mark.verification
def test_the_gradient_by_the_friction_of_each_body_is_that_of_differences():
    sim = sliding(1e-4, 1)

    def speed(body_friction):
        state = sim.state()
        for _ in range(4):
            state = sim.step(state, STILL, body_friction=body_friction)
        return state.qd[0, 0] + 3.0 * state.qd[0, 6]

    mu = sim.parameter("body_friction").requires_grad_(True)
    (gradient,) = torch.autograd.grad(speed(mu), mu)
    for k in range(4):
        e = torch.zeros_like(mu)
        e[0, k] = 1e-5
        with torch.no_grad():
            difference = float(speed(mu + e) - speed(mu - e)) / 2e-5
        assert difference < -1e-3
        assert gradient[0, k].item() == pytest.approx(difference, rel=1e-5)
