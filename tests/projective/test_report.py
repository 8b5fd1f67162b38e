"""What a simulation says of its last step."""

import contextlib

import numpy as np
import pytest
import torch
from soft_bodies import forces_at

from warpbots.numerics import precision
from warpbots.scene import Box, Constraint, HalfSpace, Material, Scene, SoftBody, floor
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, ProjectiveDynamics

G, SIDE = 9.81, 0.08
MATTER = Material(1e5, 0.3, 1000.0, "corotated")
TOLERANCE = {"float32": 1e-5, "float64": 1e-9}[precision]


def cubes() -> Simulation:
    """One cube on a floor, another one that falls on it from a millimetre, in two worlds."""
    lower = SoftBody("lower", Box((0, 0, 0), (SIDE, SIDE, SIDE)), MATTER)
    upper = SoftBody("upper", Box((0.02, 0.02, SIDE + 1e-3), (0.02 + SIDE / 2, 0.02 + SIDE / 2, 1.5 * SIDE)), MATTER)
    scene = Scene((lower, upper), obstacles=(floor(friction=0.5),), gravity=(0.0, 0.0, -G))
    return Simulation(scene, ProjectiveDynamics(0.04, TOLERANCE), 1 / 60, worlds=2)


def test_forces_of_contacts_carry_what_is_above_them():
    """The floor carries both cubes, the lower cube the upper one, by Newton's third law; each in its own world."""
    sim = cubes()
    gravity = torch.tensor([[0.0, 0.0, -G], [0.0, 0.0, -0.5 * G]])
    state = sim.state()
    for _ in range(200):
        state = sim.step(state, torch.zeros(0), gravity=gravity)
    report, particles = sim.report(), sim.model.matter
    assert (report.correction <= report.tolerance).all()
    assert (report.iterations > 0).all()
    ends = particles.position[particles.edges]
    length, body = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1), particles.body[particles.edges[:, 0]]
    assert report.tolerance == pytest.approx(TOLERANCE * min(length[body == b].mean() for b in (0, 1)))
    mass = particles.density * particles.volume
    for force, g in zip(report.contact_force, (G, 0.5 * G), strict=True):
        on_upper, on_lower = (force[particles.body == b].sum(axis=0) for b in (1, 0))
        weight_upper, weight = g * mass[particles.body == 1].sum(), g * mass.sum()
        np.testing.assert_allclose(on_upper, [0.0, 0.0, weight_upper], atol=1e-3 * weight)
        np.testing.assert_allclose(on_lower, [0.0, 0.0, weight - weight_upper], atol=1e-3 * weight)
    assert (report.contacts >= 9 + 3).all()  # all nodes on the floor, and what carries the upper cube


def test_the_residual_is_a_force():
    """A bar that is held at an end and let go: one iteration leaves more than many do, and that is a force."""
    bar = SoftBody("bar", Box((0, 0, 0), (0.16, 0.04, 0.04)), MATTER, {"end": HalfSpace((1e-6, 0, 0), (1, 0, 0))})
    scene = Scene((bar,), constraints=(Constraint("end", name="end"),), gravity=(0.0, 0.0, -G))
    left = []
    for tolerance, limit in ((TOLERANCE, 1), (1000 * TOLERANCE, 2000), (TOLERANCE, 2000)):
        sim = Simulation(scene, ProjectiveDynamics(0.02, tolerance, limit, max_halvings=0), 0.02)
        with contextlib.suppress(SimulationError):  # after one iteration
            sim.step(sim.state(), torch.zeros(0))
        report = sim.report()
        assert not report.contacts.any()
        assert not report.contact_force.any()
        left.append((int(report.iterations[0]), float(report.residual[0])))
    mesh = sim.model.matter
    free = ~sim.model.topology.fixed
    fall = np.array([0.0, 0.0, -G * 0.02**2])
    weight = (mesh.density * mesh.volume)[:, None] * np.array([0.0, 0.0, -G])
    strained = forces_at(sim, mesh.position + free[:, None] * fall) - weight  # iterations begin with free flight
    assert left[0] == (1, pytest.approx(np.linalg.norm(strained[free], axis=1).max(), rel=1e-4))
    assert left[0][0] < left[1][0] <= left[2][0]
    assert left[0][1] > 1000 * left[1][1] >= 1000 * left[2][1]


def test_a_report_comes_right_after_a_step():
    sim = cubes()
    with pytest.raises(RuntimeError, match="the last thing that ran was not a step of 0.0167 s"):
        sim.report()
    start = sim.state().position.requires_grad_()
    end = sim.step(sim.state(position=start), torch.zeros(0))
    assert sim.report().iterations.shape == (2,)
    end.position.sum().backward()
    with pytest.raises(RuntimeError, match="a backward pass uses the same arrays"):
        sim.report()
    explicit = Simulation(Scene((SoftBody("block", Box((0, 0, 0), (0.5, 0.5, 0.5)), MATTER),)), MPM(0.125), 1e-4)
    with pytest.raises(TypeError, match="MPM reports nothing"):
        explicit.report()
