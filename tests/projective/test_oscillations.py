"""Oscillations of matter: lengths at rest of every tetrahedron, and a bar that follows them."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import to_numpy
from soft_bodies import CELL, DT, beam, simulation

from warpbots.scene import Expansion, Oscillation, SceneError
from warpbots.solvers import ProjectiveDynamics

pytestmark = pytest.mark.verification(float32=True)


@pytest.mark.parametrize("u", [0.0, 0.5, -1.0])
def test_a_wave_runs_along_its_vector(u):
    """Every tetrahedron has the strain at rest of its own phase when the last step ends, beside that of an expansion."""
    wave = np.array((30.0, -10.0, 5.0))
    rhythm = Oscillation("wave", "top", 0.1, 3.0, 0.4, direction=(1, 0, 0), wave=tuple(wave))
    growth = Expansion("growth", "top", 0.2, (0, 1, 0))
    scene = dataclasses.replace(beam(), actuators=(rhythm, growth), loads=())
    sim = simulation(scene, tolerance=None)
    end = sim.rollout(torch.tensor([[u, 0.5]] * 3), 3).final
    assert float(end.time) == pytest.approx(3 * DT)
    mesh = sim.model.matter
    center = mesh.position[mesh.tets].mean(axis=1)
    strain = (1.0 + u) * 0.1 * np.sin(2.0 * np.pi * 3.0 * 3 * DT + 0.4 - center @ wave)
    inside = mesh.element_regions["top"]
    expected = np.where(inside, (1.0 + strain) * 1.1, 1.0)
    assert inside.any() and not inside.all()
    found = sim.model.of_kind("tets").volume.numpy() / mesh.element_volume
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_bar_follows_its_oscillation():
    """A slow oscillation of all matter lengthens a bar by (1 + e), to a hundredth of the amplitude."""
    scene = beam(youngs_modulus=1e6)
    body = scene.bodies[0]
    body = dataclasses.replace(body, regions=body.regions | {"all": body.shape})
    beat = Oscillation("beat", "all", 0.1, 1.0, 0.3, direction=(1, 0, 0))
    scene = dataclasses.replace(scene, bodies=(body,), actuators=(beat,), loads=(), gravity=(0.0,) * 3, constraints=())
    sim = simulation(scene, tolerance=None)
    end = sim.rollout(torch.zeros(40, 1), 40).final
    length = np.ptp(to_numpy(end.position)[0][:, 0]) / 0.16 - 1.0
    assert length == pytest.approx(0.1 * np.sin(2.0 * np.pi * 40 * DT + 0.3), abs=1e-2 * 0.1 + 0.004)


def test_amplitudes_that_leave_no_length_are_refused():
    beat = Oscillation("beat", "top", 0.3, 1.0)
    scene = dataclasses.replace(beam(), actuators=(beat, Expansion("growth", "top", 0.5)))
    with pytest.raises(SceneError, match="'growth', 'beat': together they strain matter by up to 1.1"):
        ProjectiveDynamics(CELL).build(scene)


def test_replaced_amplitudes_that_leave_no_length_are_refused():
    """Alone an amplitude below 1/2 is possible, but not beside growth."""
    beat = Oscillation("beat", "top", 0.1, 1.0)
    scene = dataclasses.replace(beam(), actuators=(beat, Expansion("growth", "top", 0.5)))
    sim = simulation(scene)
    said = "^parameter 'amplitude': actuators 'growth', 'beat': together they strain matter by up to 1.1, which leaves"
    with pytest.raises(ValueError, match=said):
        sim.rollout(None, 1, amplitude=0.3)
