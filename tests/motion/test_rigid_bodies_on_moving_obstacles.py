"""Rigid bodies on obstacles that move, with both integrators, against closed forms."""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.actuators import VelocityDrive

pytestmark = pytest.mark.articulated

G, MU = 9.81, 0.3
STEP = 2e-3
"""Length of all steps [s]."""
METHODS = ("sdirk2", "bdf1")
PLANE = wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1))


def block_on(obstacle, actuators=(), friction=MU, start=(0.0, 0.0, 0.0)):
    """A block of 0.12 m x 0.12 m x 0.04 m that rests on the plane z = 0, with its centre above `start`."""
    block = wb.RigidBody("block", wb.shapes.Box((-0.06, -0.06, 0), (0.06, 0.06, 0.04)), 1000.0, points=26)
    free = wb.Joint("block", "free", None, "block", start=(*start, 0.0, 0.0, 0.0, 1.0))
    contact = wb.Contact("block", obstacle.name, 5e6, 5e8, friction, 1e8, restitution=0.0)
    return wb.Scene([block], actuators, obstacles=[obstacle], joints=[free], contacts=[contact])


def plate(shape=PLANE, **motion):
    return wb.Obstacle(shape, name="plate", **motion)


def run(scene, method, steps, control=None):
    """Coordinates and velocities after each step, each of shape (steps, n)."""
    sim = wb.Simulation(scene, wb.Articulated(method), dt=STEP)
    with torch.no_grad():
        motion = sim.rollout(control, steps, observe=lambda s: torch.cat([s.q, s.qd], 1))
    return motion.observation[0, :, :7].numpy(), motion.observation[0, :, 7:].numpy()


def shaken(amplitude, rate, duration, along=(1.0, 0.0, 0.0)):
    """Motion A (1 - cos w t) along an axis."""
    t = np.linspace(0.0, duration, 1 + round(duration / 5e-4))
    return wb.PrescribedMotion(t, amplitude * (1.0 - np.cos(rate * t))[:, None] * along, beyond="hold")


@pytest.mark.parametrize("method", METHODS)
def test_a_block_sticks_to_a_plate_that_is_shaken_gently(method):
    """It follows the plate within the creep of friction, also where three quarters of the friction are needed."""
    rate, steps = 8.0, 300
    amplitude = 0.75 * MU * G / rate**2
    q, _ = run(block_on(plate(motion=shaken(amplitude, rate, STEP * steps))), method, steps)
    t = STEP * np.arange(1, steps + 1)
    assert q[:, 0] == pytest.approx(amplitude * (1.0 - np.cos(rate * t)), abs=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_block_slips_from_the_phase_at_which_friction_is_exceeded(method):
    """From the phase at which the plate accelerates faster than mu g, the block has mu g until their speeds agree."""
    rate, steps = 8.0, 180
    amplitude = 1.6 * MU * G / rate**2
    _, v = run(block_on(plate(motion=shaken(amplitude, rate, STEP * steps))), method, steps)
    expected = np.zeros(steps)
    speed, h = 0.0, STEP / 100  # Coulomb's law by small explicit steps
    for k in range(steps):
        for j in range(100):
            gap = amplitude * rate * np.sin(rate * (k * STEP + (j + 1) * h)) - speed
            speed += np.clip(gap, -MU * G * h, MU * G * h)
        expected[k] = speed
    assert v[:, 0] == pytest.approx(expected, abs=0.01 * amplitude * rate)


@pytest.mark.parametrize("drive", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_conveyor_accelerates_a_block_with_mu_g_up_to_its_speed(method, drive):
    speed, steps = 0.6, 150
    belt = [VelocityDrive("belt", "plate", 2.0 * speed, (0, 1, 0), kind="surface")] if drive else ()
    moved = {} if drive else {"surface_velocity": (0.0, speed, 0.0)}
    control = torch.full((steps, 1), 0.5, dtype=torch.float64) if drive else None
    _, v = run(block_on(plate(**moved), belt), method, steps, control)
    t = STEP * np.arange(1, steps + 1)
    assert v[:, 1] == pytest.approx(np.minimum(MU * G * t, speed), abs=0.01 * speed)


@pytest.mark.parametrize("method", METHODS)
def test_a_body_sticks_to_a_belt_that_turns_with_its_frame(method):
    """The velocity of a surface is given in the axes of the obstacle, and has no part along its normal."""
    steps, speed = 60, 0.4
    turn = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.2], [0.0, 0.0, 1.2]])
    motion = wb.PrescribedMotion([0.0, 0.02, 1.0], rotations=turn, pivot=(0, 0, 0), interpolation="linear")
    scene = block_on(plate(motion=motion, surface_velocity=(speed, 0.0, 5.0)), friction=2.0)
    _, v = run(scene, method, steps)
    assert v[-1, :3] == pytest.approx([speed * np.cos(1.2), speed * np.sin(1.2), 0.0], abs=1e-3 * speed)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_that_turns_carries_a_block_that_sticks(method):
    """It stays in its place on the table, also where nine tenths of the friction hold it on its circle.

    Under BDF1 the points of the block slip on the table by h w^2 / 2 times their distance from its centre.
    """
    steps, arm = 200, 0.4
    rate = np.sqrt(0.9 * MU * G / arm)
    drive = VelocityDrive("turn", "plate", 2.0 * rate, (0, 0, 1), kind="rotation", pivot=(0.0, 0.0, 0.0))
    scene = block_on(plate(), [drive], start=(arm, 0.0, 0.0))
    velocity = (0.0, arm * rate, 0.0, 0.0, 0.0, rate)
    scene = wb.Scene(
        scene.bodies, scene.actuators, obstacles=scene.obstacles, contacts=scene.contacts,
        joints=[wb.Joint("block", "free", None, "block", start=scene.joints[0].start, start_velocity=velocity)],
    )  # fmt: skip
    q, v = run(scene, method, steps, torch.full((steps, 1), 0.5, dtype=torch.float64))
    angle = rate * STEP * np.arange(1, steps + 1)
    circle = arm * np.stack([np.cos(angle), np.sin(angle)], 1)
    assert q[:, :2] == pytest.approx(circle, abs={"sdirk2": 3e-5, "bdf1": 4e-4}[method])
    half = np.stack([np.sin(0.5 * angle), np.cos(0.5 * angle)], 1)
    assert q[:, 5:] * np.sign(q[:, 6:]) == pytest.approx(half * np.sign(half[:, 1:]), abs=2e-5)
    assert v[:, 5] == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("shape", [PLANE, wb.shapes.Box((-0.3, -0.3, -0.2), (0.3, 0.3, 0.0))])
@pytest.mark.parametrize("method", METHODS)
def test_a_lift_raises_a_block(method, shape):
    """The block follows the lift; its weight grows with the acceleration, and so does the force on the lift."""
    t = np.linspace(0.0, 0.4, 81)
    lift = wb.PrescribedMotion(t, (0.05 * (1.0 - np.cos(np.pi * t / 0.4)))[:, None] * [0.0, 0.0, 1.0])
    scene = block_on(plate(shape, motion=lift))
    sim = wb.Simulation(scene, wb.Articulated(method), dt=STEP)
    mass = float(sim.parameter("mass"))
    with torch.no_grad():
        motion = sim.rollout(
            None, 200, observe=lambda s: torch.cat([s.q[:, 2:3], sim.sense(s).obstacle_force[:, 0]], 1)
        )
    z, force = motion.observation[0, :, 0].numpy(), motion.observation[0, :, 1:].numpy()
    t = STEP * np.arange(1, 201)
    assert z == pytest.approx(0.05 * (1.0 - np.cos(np.pi * t / 0.4)), abs=1.2e-4)
    expected = -mass * (G + 0.05 * (np.pi / 0.4) ** 2 * np.cos(np.pi * t / 0.4))
    assert force[20:, 2] == pytest.approx(expected[20:], abs=0.02 * mass * G)
    assert np.abs(force[:, :2]).max() < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_run_past_the_end_of_a_table_stops_with_the_reason(method):
    motion = wb.PrescribedMotion([0.0, 0.01], [[0, 0, 0], [0, 0, 1e-3]])
    sim = wb.Simulation(block_on(plate(motion=motion)), wb.Articulated(method), dt=STEP)
    state = sim.rollout(None, 5).final
    with pytest.raises(wb.SimulationError, match=r"prescribed motion of 'plate' ends at 0\.01 s.*beyond='hold'"):
        sim.step(state, torch.zeros(0))


@pytest.mark.parametrize("method", METHODS)
def test_weight_is_a_force_and_a_torque_on_an_obstacle(method):
    """Of the points of a box on a plane, and of the points of a box as obstacle below a ball."""
    table = plate(wb.shapes.Box((-0.5, -0.5, -0.2), (0.5, 0.5, 0.0)), surface_velocity=(0.0, 0.0, 0.0))
    scene = block_on(table, start=(0.1, 0.3, 0.0))
    ball = wb.RigidBody("ball", wb.shapes.Sphere((-0.2, 0.1, 0.05), 0.05), 1000.0, points=26)
    law = wb.Contact("ball", "plate", 1e6, 1e8, MU, 1e8, restitution=0.0)
    scene = wb.Scene(
        [*scene.bodies, ball], obstacles=[table, wb.floor(-1.0)], joints=scene.joints, contacts=[*scene.contacts, law]
    )
    sim = wb.Simulation(scene, wb.Articulated(method), dt=STEP)
    state = sim.rollout(None, 300).final
    read, mass = sim.sense(state), sim.parameter("mass")[0].numpy()
    force = read.obstacle_force[0].numpy()
    assert force[0] == pytest.approx([0.0, 0.0, -G * mass.sum()], abs=5e-4)
    assert force[1] == pytest.approx(np.zeros(3))
    arms = mass @ np.array([[0.1, 0.3], [-0.2, 0.1]])
    assert read.obstacle_torque[0, 0].numpy() == pytest.approx([-G * arms[1], G * arms[0], 0.0], abs=5e-4)


def thrown(method, speed, e=0.7):
    """A ball without weight, 20 mm above a plate that begins to move towards it."""
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0.07), 0.05), 1000.0, points=8)
    t = np.linspace(0.0, 0.2, 21)
    motion = wb.PrescribedMotion(t, speed(t)[:, None] * [0.0, 0.0, 1.0], beyond="hold")
    law = wb.Contact("ball", "plate", 1e7, 1e9, restitution=e, impact="instant")
    paddle = plate(motion=motion, friction=0.0)
    scene = wb.Scene([ball], obstacles=[paddle], contacts=[law], gravity=(0, 0, 0))
    return run(scene, method, 90)


@pytest.mark.parametrize("method", METHODS)
def test_a_paddle_throws_a_ball_in_no_time(method):
    """At the time at which it meets the ball, with (1 + e) times its velocity then."""
    q, v = thrown(method, lambda t: 3.0 * t**2)
    met = np.sqrt(0.02 / 3.0)
    t = STEP * np.arange(1, 91)
    leaves = 1.7 * 6.0 * met
    error = {"sdirk2": 1e-9, "bdf1": 1.7 * 3.0 * STEP}[method]  # BDF1 takes the mean velocity of the step
    assert v[:, 2] == pytest.approx(np.where(t < met, 0.0, leaves), abs=error)
    assert q[:, 2] == pytest.approx(np.maximum(0.0, leaves * (t - met)), abs=0.1 * error + 1e-9)
    assert 0.0 < t[0] < met < t[-1]


@pytest.mark.parametrize("method", METHODS)
def test_a_stored_state_goes_on_to_the_bit(method):
    """In the middle of contact, in several worlds with controls and parameters of their own."""
    t = np.linspace(0.0, 0.2, 11)
    lift = wb.PrescribedMotion(t, 0.2 * t[:, None] ** 2 * [1.0, 0.0, 0.2])
    drives = [VelocityDrive("turn", "plate", 2.0, (0, 0, 1), kind="rotation", pivot=(0.1, 0.0, 0.0))]
    scene = block_on(plate(motion=lift, surface_velocity=(0.1, 0.0, 0.0)), drives)
    control = torch.tensor(np.random.default_rng(5).uniform(-1, 1, size=(2, 20, 1)))

    def simulation(worlds=2):
        sim = wb.Simulation(scene, wb.Articulated(method), dt=STEP, worlds=worlds)
        surface = sim.parameter("surface_velocity")
        if worlds == 2:
            surface[1, 0, 1] = 0.3
        return sim, surface

    sim, surface = simulation()
    whole = sim.rollout(control, 20, surface_velocity=surface).final
    half = sim.rollout(control[:, :10], 10, surface_velocity=surface).final
    stored = {name: field.numpy().copy() for name, field in vars(half).items()}
    other, _ = simulation()
    ends = other.rollout(control[:, 10:], 10, other.state(**stored), surface_velocity=surface).final
    for name, field in vars(whole).items():
        np.testing.assert_array_equal(vars(ends)[name], field, err_msg=name)
    one, own = simulation(1)
    own[0, 0, 1] = 0.3
    alone = one.rollout(control[1:], 20, surface_velocity=own).final
    np.testing.assert_array_equal(alone.q[0], whole.q[1])
    assert (whole.q[0] - whole.q[1]).abs().max() > 1e-4
    assert whole.travel.numpy() == pytest.approx(2.0 * STEP * control.sum(1).numpy())
    assert whole.time.tolist() == pytest.approx([20 * STEP] * 2)


@pytest.mark.parametrize(
    ("moved", "drives", "step"),
    [
        ({"motion": wb.PrescribedMotion([0.0, 0.1, 0.2], [[0, 0, 0], [0, 0, 0], [0, 0.2, 0]])}, [], "0.002"),
        ({}, [VelocityDrive("push", "plate", 2.5, (1, 0, 0))], "0.0016"),
        ({}, [VelocityDrive("spin", "plate", 4.0, (0, 0, 1), kind="rotation", pivot=(0.3, 0.4, 0.0))], "0.0016"),
    ],
)
def test_a_tool_that_moves_by_more_than_half_its_thickness_in_a_step_is_warned_of(moved, drives, step):
    blade = plate(wb.shapes.Box((-0.1, -0.1, -0.008), (0.1, 0.1, 0.0)), **moved)
    sim = wb.Simulation(block_on(blade, drives), wb.Articulated(), dt=1e-3)
    solver, model = sim.solver, sim.model
    text = f"Obstacle 'plate' moves by up to .*half its thickness of 0.008 m.* steps of at most {step} s"
    with pytest.warns(UserWarning, match=text):
        wb.Simulation(block_on(blade, drives), wb.Articulated("bdf1"), dt=1.05 * float(step))
    assert solver.caution(model, 0.9 * float(step)) is None
