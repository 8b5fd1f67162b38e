"""An arm with two soft pads holds a cloth between them: Coulomb's law."""

import sys
from pathlib import Path

import numpy as np
import pytest
from loose_bodies import G

from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"))
from cloth import CELLS, DENSITY, FRICTION, LENGTH, STEP, THICKNESS, WIDTH, cloth_scene
from grasping import small_arm

MOTOR = 20.0
"""Force of a finger for u = -1 [N]."""


@pytest.mark.slow
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
