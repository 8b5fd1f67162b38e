"""Obstacles that move, under every solver that takes them, against closed forms."""

import dataclasses

import numpy as np
import pytest
import torch

import warpbots as wb

G, MU = 9.81, 0.3
STEP = 2e-3
"""Control interval of all runs [s]."""
SOLVERS = {
    "MassSpring": (wb.MassSpring(0.04, damping=3e-3), 40),
    "MPM": (wb.MPM(0.02), 6),
    "ProjectiveDynamics": (wb.ProjectiveDynamics(0.04, elements="tetrahedra"), 1),
}
"""Solvers that take obstacles that move, each with its substeps in `STEP`."""


def block_on(obstacle, velocity=(0.0, 0.0, 0.0), actuators=()):
    """A block of 0.12 m x 0.12 m x 0.04 m that rests on the plane z = 0."""
    shape = wb.shapes.Box((0, 0, 0), (0.12, 0.12, 0.04))
    block = wb.SoftBody("block", shape, wb.Material(3e5, 0.25, 1000.0), velocity=velocity)
    return wb.Scene([block], actuators, obstacles=[obstacle])


def plate(friction=MU, condition="friction", **motion):
    return wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1)), condition, friction, name="plate", **motion)


def centers(scene, name, steps, control=None):
    """Mean position and mean velocity of all points after each interval, each of shape (steps, 3)."""
    solver, substeps = SOLVERS[name]
    sim = wb.Simulation(scene, solver, dt=STEP, substeps=substeps)
    with torch.no_grad():
        run = sim.rollout(control, steps, observe=lambda s: torch.stack([s.position.mean(1), s.velocity.mean(1)], 1))
    x, v = run.observation[0].double().unbind(1)
    return (x - sim.state().position.double().mean(1)).numpy(), v.numpy()


def shaken(amplitude, rate, duration):
    """Motion A (1 - cos w t) along x."""
    t = np.linspace(0.0, duration, 1 + round(duration / 5e-4))
    return wb.PrescribedMotion(t, amplitude * (1.0 - np.cos(rate * t))[:, None] * [1.0, 0.0, 0.0], beyond="hold")


@pytest.mark.parametrize("name", SOLVERS)
def test_a_block_sticks_to_a_plate_that_is_shaken_gently(name):
    rate, steps = 8.0, 300
    amplitude = 0.6 * MU * G / rate**2
    x, _ = centers(block_on(plate(motion=shaken(amplitude, rate, STEP * steps))), name, steps)
    t = STEP * np.arange(1, steps + 1)
    assert x[:, 0] == pytest.approx(amplitude * (1.0 - np.cos(rate * t)), abs=0.02 * amplitude)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_block_slips_from_the_phase_at_which_friction_is_exceeded(name):
    """From the phase at which the plate accelerates faster than mu g, the block has mu g until their speeds agree."""
    rate, steps = 8.0, 180
    amplitude = 1.6 * MU * G / rate**2
    x, v = centers(block_on(plate(motion=shaken(amplitude, rate, STEP * steps))), name, steps)
    expected = np.zeros(steps)
    speed, h = 0.0, STEP / 100  # Coulomb's law by small explicit steps
    for k in range(steps):
        for j in range(100):
            gap = amplitude * rate * np.sin(rate * (k * STEP + (j + 1) * h)) - speed
            speed += np.clip(gap, -MU * G * h, MU * G * h)
        expected[k] = speed
    assert v[:, 0] == pytest.approx(expected, abs=0.03 * amplitude * rate)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("drive", [False, True])
def test_a_conveyor_accelerates_a_block_with_mu_g_up_to_its_speed(name, drive):
    speed, steps = 0.6, 150
    belt = () if not drive else [wb.actuators.VelocityDrive("belt", "plate", 2.0 * speed, (0, 1, 0), kind="surface")]
    moved = {} if drive else {"surface_velocity": (0.0, speed, 0.0)}
    control = torch.full((steps, 1), 0.5) if drive else None
    x, v = centers(block_on(plate(**moved), actuators=belt), name, steps, control)
    t = STEP * np.arange(1, steps + 1)
    assert v[:, 1] == pytest.approx(np.minimum(MU * G * t, speed), abs=0.03 * speed)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_table_that_turns_carries_a_block_that_sticks(name):
    drive = wb.actuators.VelocityDrive("turn", "plate", 0.8, (0, 0, 1), kind="rotation", pivot=(0.5, 0.1, 0.0))
    steps = 200
    scene = block_on(plate(condition="sticky"), actuators=[drive])
    x, _ = centers(scene, name, steps, torch.ones(steps, 1))
    angle = 0.8 * STEP * np.arange(1, steps + 1)
    arm = np.array([0.06, 0.06]) - [0.5, 0.1]
    turned = np.stack(
        [np.cos(angle) * arm[0] - np.sin(angle) * arm[1], np.sin(angle) * arm[0] + np.cos(angle) * arm[1]], 1
    )
    assert x[:, :2] == pytest.approx(turned - arm, abs=3e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_lift_raises_a_block(name):
    t = np.linspace(0.0, 0.4, 81)
    lift = wb.PrescribedMotion(t, (0.05 * (1.0 - np.cos(np.pi * t / 0.4)))[:, None] * [0.0, 0.0, 1.0])
    x, _ = centers(block_on(plate(motion=lift)), name, 200)
    assert x[-1, 2] == pytest.approx(0.1, abs=2e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_time_does_not_drift(name):
    """In single precision, too, the time of prescribed motions is the number of steps times their exact length."""
    solver, substeps = SOLVERS[name]
    sim = wb.Simulation(block_on(plate(motion=shaken(1e-3, 8.0, 0.1))), solver, dt=1.1 * STEP, substeps=substeps)
    with torch.no_grad():
        end = sim.rollout(None, 20).final
    assert float(end.time[0]) == pytest.approx(20 * 1.1 * STEP, rel=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_run_past_the_end_of_a_table_stops_with_the_reason(name):
    """A rollout before it begins, a single step during the step."""
    motion = wb.PrescribedMotion([0.0, 0.01], [[0, 0, 0], [0, 0, 1e-3]])
    words = r"prescribed motion of Obstacle 'plate' ends at 0\.01 s.* at most 5 of them.*beyond='hold'"
    with pytest.raises(ValueError, match=words):
        centers(block_on(plate(motion=motion)), name, 6)
    solver, substeps = SOLVERS[name]
    sim = wb.Simulation(block_on(plate(motion=motion)), solver, dt=STEP, substeps=substeps)
    end = sim.rollout(None, 5).final
    with pytest.raises(ValueError, match=r"begin at 0\.01 s end at 0\.012 s; simulate at most 0 of them"):
        sim.rollout(None, 1, end)
    with pytest.raises(wb.SimulationError, match=r"prescribed motion of 'plate' ends at 0\.01 s.*beyond='hold'"):
        sim.step(end, torch.zeros(1, 0))


@pytest.mark.parametrize("name", SOLVERS)
def test_plates_that_meet_are_refused_with_the_place(name):
    """A press that goes down through the floor: at any speed, no matter is left in both plates."""
    for duration in (0.05, 0.2):
        motion = wb.PrescribedMotion([0.0, duration], [[0, 0, 0], [0, 0, -0.06]], beyond="hold")
        press = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0.0401), (0, 0, -1)), name="press", motion=motion)
        scene = block_on(plate())
        scene = dataclasses.replace(scene, obstacles=[*scene.obstacles, press])
        with pytest.raises(wb.SimulationError, match=r"(plate|press)' and '(plate|press)'.* they have met"):
            centers(scene, name, round(1.5 * duration / STEP))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_belt_does_not_push_through_its_surface(name):
    """The velocity of a belt counts along the surface alone: a plate whose belt would run upwards is a plate at rest."""
    x, v = centers(block_on(plate(surface_velocity=(0.0, 0.0, 0.5))), name, 50)
    still, _ = centers(block_on(plate(surface_velocity=(0.0, 0.0, 0.0))), name, 50)
    assert x == pytest.approx(still, abs=1e-6)
    assert np.abs(v).max() < 0.1
