"""What does not depend on motion: a thing that moves by nothing stays, and a scene that moves as a whole is the same."""

import dataclasses

import numpy as np
import pytest
import torch

import warpbots as wb

SOLVERS = {
    f"MassSpring {integrator}": (wb.MassSpring(0.04, integrator=integrator, damping=1e-4), 20)
    for integrator in ("euler", "verlet", "rk4")
}
SOLVERS["ProjectiveDynamics"] = (wb.ProjectiveDynamics(0.04, elements="tetrahedra"), 1)
"""Solvers that take obstacles and constraints that move, each with its substeps in 2 ms."""
SPEED = np.array([0.4, -0.2, 0.3])


def scene(motion=None, velocity=(0.0, 0.0, 0.0), belt=None):
    """A bar that is clamped at one end and swings onto a ball."""
    ends = {"left": wb.shapes.Box((-1, -1, -1), (0.01, 1, 1))}
    bar = wb.SoftBody(
        "bar", wb.shapes.Box((0, 0, 0), (0.24, 0.08, 0.08)), wb.Material(2e5, 0.25, 1000.0), ends, velocity=velocity
    )  # fmt: skip
    ball = wb.Obstacle(wb.shapes.Sphere((0.2, 0.02, -0.051), 0.05), "friction", 0.3, name="ball", motion=motion)
    return wb.Scene([bar], obstacles=[ball], constraints=[wb.Constraint("left", motion=motion)], gravity=(0, 0.5, -4))


def final(scene, name, steps=40):
    solver, substeps = SOLVERS[name]
    sim = wb.Simulation(scene, solver, dt=2e-3, substeps=substeps)
    with torch.no_grad():
        state = sim.rollout(None, steps).final
    return state.position[0].double().numpy(), state.velocity[0].double().numpy()


@pytest.mark.verification
@pytest.mark.parametrize("name", SOLVERS)
def test_what_moves_by_nothing_stays(name):
    still = final(scene(), name)
    moved = final(scene(wb.PrescribedMotion([0.0, 1.0], [[0, 0, 0], [0, 0, 0]])), name)
    for a, b in zip(still, moved, strict=True):
        assert b == pytest.approx(a, abs=1e-12)


@pytest.mark.verification
@pytest.mark.parametrize("name", SOLVERS)
def test_a_scene_that_moves_as_a_whole_is_the_same(name):
    """Galileo's principle: every relative position and velocity agrees with the scene at rest."""
    still = final(scene(), name)
    motion = wb.PrescribedMotion([0.0, 1.0], [[0, 0, 0], SPEED])
    x, v = final(scene(motion, tuple(SPEED)), name)
    assert x - SPEED * 0.08 == pytest.approx(still[0], abs=1e-10)
    assert v - SPEED == pytest.approx(still[1], abs=1e-8)
    assert np.abs(still[1]).max() > 0.05


@pytest.mark.parametrize("name", SOLVERS)
def test_a_run_that_is_interrupted_in_contact_goes_on_to_the_same_bits(name):
    t = np.linspace(0.0, 1.0, 21)
    motion = wb.PrescribedMotion(t, 0.02 * np.sin(9.0 * t)[:, None] * [1.0, 0.5, 1.0])
    solver, substeps = SOLVERS[name]
    sim = wb.Simulation(scene(motion), solver, dt=2e-3, substeps=substeps)
    with torch.no_grad():
        whole = sim.rollout(None, 30).final
        half = sim.rollout(None, 17).final
        rest = sim.rollout(None, 13, half).final
    for field in dataclasses.fields(whole):
        assert torch.equal(getattr(whole, field.name), getattr(rest, field.name)), field.name


@pytest.mark.parametrize("name", SOLVERS)
def test_worlds_move_by_themselves(name):
    """Each world has its own table, and the result of a world does not depend on the others."""
    motion = wb.PrescribedMotion([0.0, 0.05, 0.1], [[0, 0, 0], [0, 0, 0.01], [0, 0, 0.03]])
    solver, substeps = SOLVERS[name]
    both = wb.Simulation(scene(motion), solver, dt=2e-3, substeps=substeps, worlds=2)
    one = wb.Simulation(scene(motion), solver, dt=2e-3, substeps=substeps)
    tables = both.parameter("motion_position").clone()
    tables[1] *= -0.5
    with torch.no_grad():
        found = both.rollout(None, 20, motion_position=tables).final.position
        alone = one.rollout(None, 20, motion_position=tables[1:]).final.position
    assert torch.equal(found[1], alone[0])
    assert (found[0] - found[1]).abs().max() > 1e-3
