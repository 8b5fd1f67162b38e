"""An arm with two soft pads holds a cloth between them: Coulomb's law."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from loose_bodies import G

from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"))
from cloth import CELLS, DENSITY, FRICTION, LENGTH, STEP, THICKNESS, WIDTH, Fold, cloth_scene
from grasping import small_arm

MOTOR = 20.0
"""Force of a finger for u = -1 [N]."""


def test_pads_hold_a_cloth_whose_weight_is_below_twice_mu_n():
    """Weights of 0.5 and 2 times 2 mu N: one is held, the other falls with g - 2 mu N / m."""
    load = np.array([0.5, 2.0])
    sim = Simulation(cloth_scene(*small_arm(), CELLS), ProjectiveDynamics(0.3), STEP, substeps=1, worlds=len(load))
    grips = DENSITY * THICKNESS * WIDTH * LENGTH * G / load / (2.0 * FRICTION)
    own = sim.model.mesh.body == [b.name for b in sim.scene.bodies].index("cloth")
    mass = (sim.model.matter.volume * sim.model.matter.density)[own]
    state, control, speeds = sim.state(), np.zeros((len(load), len(sim.scene.actuators))), []
    for forces, steps in ((np.ones(2), 8), (grips, 8)):  # later its edge slips out of the pads
        control[:, -2:] = -forces[:, None] / MOTOR
        for _ in range(steps):
            state = sim.step(state, control)
            speeds.append(mass @ state.velocity[:, own, 2].double().numpy().T / mass.sum())
    acceleration = (speeds[-1] - speeds[-5]) / (4.0 * STEP)
    np.testing.assert_allclose(acceleration, [0.0, -G / 2.0], atol=0.05 * G)


@pytest.mark.slow
def test_motion_of_a_gripped_cloth_has_a_gradient():
    """The rims of the pads are opposite each other across the cloth, and pass through it before it holds them apart.

    They were then held against each other at a frozen plane along the rims, in steps 18 and 23. The tolerance of a step
    limits a difference over 1e-3 to 1 % and over 1e-4 to 6 %; in double precision and at 1e-8 it agrees to 1e-4.
    """
    fold, steps = Fold(*small_arm()), 24
    control = fold.plan[:steps].clone().requires_grad_()
    along = (
        torch.as_tensor(np.random.default_rng(0).normal(size=control.shape[1])).to(control).expand_as(control).clone()
    )
    along[:, -2:] = 0.0  # the grip stays

    def distance(control: torch.Tensor) -> torch.Tensor:
        return fold.distance(fold.sim.rollout(control, steps).final)

    (gradient,) = torch.autograd.grad(distance(control), control)
    with torch.no_grad():
        there, back = (float(distance(control + s * along)) for s in (1e-3, -1e-3))
    np.testing.assert_allclose(float((gradient * along).sum()), (there - back) / 2e-3, rtol=0.03)
