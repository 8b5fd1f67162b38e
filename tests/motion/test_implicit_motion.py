"""What only the implicit step of projective dynamics does with obstacles that move: edges, shorter steps, work."""

import numpy as np
import pytest
import torch
from test_motion_gradients import TIGHT, check

import warpbots as wb
from warpbots.numerics import precision

SPEED = np.array([0.4, -0.2, 0.3])
SMALL = {"float32": 2e-5, "float64": 1e-9}[precision]
SPIKE = wb.shapes.TriangleMesh(
    np.array([(-3, -3, -10), (3, -3, -10), (3, 3, -10), (-3, 3, -10), (0.3, 0.2, 0)]) / 100.0,
    np.array([(0, 2, 1), (0, 3, 2), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]),
)


def cube(obstacles, velocity=(0.0, 0.0, 0.0), drives=(), youngs_modulus=1e5, **parts):
    """A cube of 6 cm above the origin, with one element along each edge."""
    shape = wb.shapes.Box((-0.03, -0.03, 0.001), (0.03, 0.03, 0.061))
    body = wb.SoftBody("cube", shape, wb.Material(youngs_modulus, 0.3, 1000.0), velocity=velocity)
    return wb.Scene([body], drives, obstacles=obstacles, gravity=(0.0, 0.0, 0.0), **parts)


def final(scene, steps, dt=2e-3, cell=0.06, **options):
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell, elements="tetrahedra", **options), dt=dt)
    with torch.no_grad():
        state = sim.rollout(None, steps).final
    return sim, state


def together(speed):
    """A motion with a steady velocity."""
    return wb.PrescribedMotion([0.0, 1.0], [np.zeros(3), speed])


def test_an_edge_that_moves_enters_no_face_and_obeys_galileo():
    """A spike that goes into the middle of a face, and a cube that falls onto the spike, which both move along."""
    thrown, steps = np.array([0.2, 0.1, -0.6]), 40
    _, still = final(cube([wb.Obstacle(SPIKE, friction=0.3)], tuple(thrown)), steps)
    for shift in (SPEED, -thrown):
        spike = wb.Obstacle(SPIKE, friction=0.3, motion=together(shift))
        _, moved = final(cube([spike], tuple(thrown + shift)), steps)
        x = (moved.position[0].double() - still.position[0].double()).numpy() - shift * 2e-3 * steps
        assert np.abs(x).max() < SMALL
    assert (still.velocity[0].double().mean(0)[2] - thrown[2]) > 0.3  # it has been stopped


@pytest.mark.verification
def test_gradients_of_an_edge_that_moves_and_turns():
    t = np.array([0.0, 0.01, 0.03, 0.06])
    motion = wb.PrescribedMotion(
        t, np.array([(0, 0, 0), (1, 0, 5), (2, 1, 12), (4, 1, 20)]) * 1e-3,
        np.array([(0, 0, 0), (2, 1, 5), (5, 3, 11), (9, 6, 20)]) * 1e-2, (0.0, 0.01, -0.1),
    )  # fmt: skip
    spike = wb.Obstacle(SPIKE, friction=0.3, name="spike", motion=motion, surface_velocity=(0.1, 0.05, 0.0))
    drives = [wb.actuators.VelocityDrive("push", "spike", 0.3, (0.1, 0.2, 1))]
    top = wb.shapes.HalfSpace((0, 0, 0.06), (0, 0, -1))
    shape = wb.shapes.Box((-0.03, -0.03, 0.001), (0.03, 0.03, 0.061))
    body = wb.SoftBody("cube", shape, wb.Material(1e5, 0.3, 1000.0), {"top": top})
    scene = wb.Scene([body], drives, obstacles=[spike], constraints=[wb.Constraint("top")])
    check(scene, wb.ProjectiveDynamics(0.06, elements="tetrahedra", tolerance=TIGHT), 1)


FEW = {"max_iterations": 100, "max_halvings": 3, "linear_solver": "iterative"}
"""A quarter of these is not enough for a step in which a floor crushes a cube."""
CRASH = np.array([2.0, 0.0, -20.0])
"""Velocity of the cube relative to the floor [m/s]."""


def crash(along, motion=None, drives=()):
    floor = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1)), friction=0.3, name="floor", motion=motion)
    return cube([floor], tuple(CRASH + along), drives, youngs_modulus=1e6)


@pytest.mark.verification
def test_shorter_steps_have_the_poses_of_their_own_times():
    """An impact that crushes: a floor that comes up as fast takes the same shorter steps, to the same end."""
    steps, dt = 4, 5e-3
    _, still = final(crash(np.zeros(3)), steps, dt, cell=0.03, **FEW)
    assert still.shorter_steps[0] > 0
    for along in (-CRASH, np.array([1.0, 3.0, 25.0])):
        _, moved = final(crash(along, together(along)), steps, dt, cell=0.03, **FEW)
        assert moved.shorter_steps[0] > 0
        x = (moved.position[0].double() - still.position[0].double()).numpy() - along * steps * dt
        assert np.abs(x).max() < 50.0 * SMALL
        assert moved.time[0].item() == pytest.approx(steps * dt, rel=1e-12)


@pytest.mark.verification
def test_gradients_through_shorter_steps():
    motion = wb.PrescribedMotion([0.0, 0.01, 0.05], [[0, 0, 0], [0.01, 0, 0.1], [0, 0, 0.4]])
    drive = wb.actuators.VelocityDrive("lift", "floor", 3.0, (0.1, 0, 1))
    scene = crash(np.array([0.0, 0.0, 8.0]), motion, [drive])
    _, state = final(scene, 3, cell=0.03, tolerance=TIGHT, **FEW)
    assert state.shorter_steps[0] > 0
    check(scene, wb.ProjectiveDynamics(0.03, elements="tetrahedra", tolerance=TIGHT, **FEW), 1, steps=3)


@pytest.mark.parametrize("who", ["obstacle", "constraint"])
def test_an_obstacle_in_what_a_constraint_holds_is_refused(who):
    """A press that goes into a clamped face from above, or a clamped face that goes into the press."""
    top = wb.shapes.HalfSpace((0, 0, 0.06), (0, 0, -1))
    body = wb.SoftBody("cube", wb.shapes.Box((0, 0, 0), (0.06, 0.06, 0.061)), wb.Material(1e5), {"top": top})
    moves = {who: wb.PrescribedMotion([0.0, 1.0], [[0, 0, 0], [0, 0, -0.5 if who == "obstacle" else 0.5]])}
    press = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0.07), (0, 0, -1)), name="press", motion=moves.get("obstacle"))
    clamp = wb.Constraint("top", name="clamp", motion=moves.get("constraint"))
    scene = wb.Scene([body], obstacles=[press], constraints=[clamp], gravity=(0.0, 0.0, 0.0))
    final(scene, 8)
    with pytest.raises(
        wb.SimulationError, match="'press' is .* inside SoftBody 'cube'.* which Constraint 'clamp' holds"
    ):
        final(scene, 12)


@pytest.mark.verification(float32=True)
def test_work_of_a_press_is_elastic_energy_and_its_derivative_is_the_force():
    """In steps of 1 s, in which implicit Euler leaves no motion: dE = F . du for a press that goes down, then aside."""
    low = wb.shapes.Box((-1, -1, -1), (1, 1, 1e-6))
    shape, matter = wb.shapes.Box((0, 0, 0), (0.09, 0.09, 0.12)), wb.Material(1e5, 0.3, 1000.0, "neo_hookean")
    drives = [
        wb.actuators.VelocityDrive("down", "press", 1e-3, (0, 0, -1)),
        wb.actuators.VelocityDrive("shear", "press", 1e-3, (1, 0, 0)),
    ]
    press = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0.12), (0, 0, -1)), "sticky", name="press")
    scene = wb.Scene(
        [wb.SoftBody("block", shape, matter, {"low": low})], drives, obstacles=[press],
        constraints=[wb.Constraint("low")], gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.03, elements="tetrahedra"), dt=1.0)
    state, work, energy, forces = sim.state(), 0.0, [], [np.zeros(2)]
    for down, aside in [(1.0, 0.0)] * 6 + [(0.0, 1.0)] * 6:
        state = type(state)(**{name: value.detach() for name, value in vars(state).items()})
        control = torch.tensor([[down, aside]], requires_grad=True)
        state = sim.step(state, control)
        (force,) = sim.report().obstacle_force[0]
        forces.append(np.array([force[2], -force[0]]))  # of the press, along its drives
        work += 0.5e-3 * (forces[-1] + forces[-2]) @ (down, aside)
        energy.append(sim.sense(state, control).elastic_energy[0])
    assert energy[-1] > 1.2 * energy[5]
    assert work == pytest.approx(energy[-1].item(), rel=0.01)
    other = state.position[..., 2].sum()  # at rest, the adjoint of the energy alone is zero up to rounding
    both, one = (torch.autograd.grad(s, control, retain_graph=True)[0][0] for s in (energy[-1] + other, other))
    slope = (both - one).numpy()
    assert slope == pytest.approx(1e-3 * forces[-1], rel={"float32": 5e-3, "float64": 1e-5}[precision])
