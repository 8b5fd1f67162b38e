"""Contacts that stick with the static coefficient, break away, and slide with the smaller one.

Bodies are flat, so that gravity along the floor changes the pressure little: all contacts reach their limit together.
"""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.shapes import Box, HalfSpace

pytestmark = pytest.mark.verification(float32=True)

G, MU, STATIC = 9.81, 0.2, 0.5


def ground(**motion) -> wb.Obstacle:
    return wb.Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), "friction", MU, "ground", static_friction=STATIC, **motion)


def flat(kind: str) -> wb.SoftBody | wb.RigidBody:
    if kind == "soft":
        sheet = wb.shapes.Sheet.rectangle((-0.1, -0.1), (0.1, 0.1), 2e-3, (2, 2), height=1e-5)
        return wb.SoftBody("body", sheet, wb.Material(1e6, 0.3, 1000.0))
    return wb.RigidBody("body", Box((-0.1, -0.1, -2e-3), (0.1, 0.1, 2e-3)), 1000.0, position=(0, 0, 2.1e-3))


def pull(slope: float) -> torch.Tensor:
    """Gravity with a part along the floor, shape (1, 3)."""
    return torch.tensor([[G * slope, 0.0, -G]])


def speed_of(sim: wb.Simulation, state) -> float:
    """Mean velocity along x [m/s]."""
    velocity = state.velocity if state.velocity.numel() else sim.sense(state).velocity
    return velocity[0, ..., 0].mean().item()


@pytest.mark.parametrize("kind", ["soft", "rigid"])
def test_a_body_breaks_away_at_the_static_limit_and_then_has_the_sliding_force(kind):
    """A force that grows by 1 % of the weight a step; then the acceleration is (F - mu N) / m."""
    dt = 5e-3
    sim = wb.Simulation(wb.Scene([flat(kind)], obstacles=[ground()]), wb.ProjectiveDynamics(0.1), dt)
    slopes = np.append(np.zeros(10), np.arange(0.0, 0.75, 0.01))
    state, speed = sim.state(), [0.0]
    for slope in slopes:
        state = sim.step(state, torch.zeros(0), gravity=pull(slope))
        speed.append(speed_of(sim, state))
    gained = np.diff(speed) / dt / G
    moves = np.abs(gained) > 0.1
    first = slopes[moves][0]
    assert STATIC - 0.05 < first < STATIC + 0.015, first
    assert np.abs(speed[1:])[slopes < first - 0.02].max() < 2e-3
    after = slopes > first + 0.03
    assert gained[after] == pytest.approx(slopes[after] - MU, abs=0.01)
    assert sim.report().contacts[0] > 0 and state.shorter_steps.max() == 0


@pytest.mark.parametrize("kind", ["soft", "rigid"])
def test_a_body_on_a_shaken_plate_slips_where_static_friction_is_exceeded(kind):
    """From the phase at which the plate accelerates faster than mu_s g, the body has mu g until their speeds agree."""
    rate, dt, steps = 8.0, 2e-3, 350
    amplitude = 1.4 * STATIC * G / rate**2
    t = np.linspace(0.0, dt * steps, 1 + 4 * steps)
    shaken = wb.PrescribedMotion(t, amplitude * (rate * t - np.sin(rate * t))[:, None] * [1, 0, 0], beyond="hold")
    sim = wb.Simulation(wb.Scene([flat(kind)], obstacles=[ground(motion=shaken)]), wb.ProjectiveDynamics(0.1), dt)
    state, found, expected, speed, sticks = sim.state(), [], [], 0.0, True
    for k in range(steps):
        state = sim.step(state, torch.zeros(0))
        found.append(speed_of(sim, state))
        for j in range(100):  # Coulomb's law by small explicit steps
            h = dt / 100
            gap = amplitude * rate * (1.0 - np.cos(rate * (k * dt + (j + 1) * h))) - speed
            sticks = abs(gap) <= (STATIC if sticks else MU) * G * h
            speed += gap if sticks else np.clip(gap, -MU * G * h, MU * G * h)
        expected.append(speed)
    plate = amplitude * rate * (1.0 - np.cos(rate * dt * np.arange(1, steps + 1)))
    slip = plate - found
    phase = rate * dt * np.argmax(slip > 0.02 * plate.max())
    assert np.arcsin(0.85 / 1.4) < phase < np.arcsin(1.05 / 1.4)
    assert slip.max() > 0.3 * plate.max() and found == pytest.approx(expected, abs=0.05 * plate.max())


def tall() -> wb.SoftBody:
    """A cube, whose contacts break away one after the other."""
    material = wb.Material(1e6, 0.3, 1000.0, "corotated")
    return wb.SoftBody("cube", Box((-0.12, -0.12, 1e-5), (0.12, 0.12, 0.12)), material)


def test_contacts_that_break_away_one_after_the_other_take_few_iterations():
    """In double precision, steps took up to 1,400 iterations and were halved 38 times."""
    sim = wb.Simulation(wb.Scene([tall()], obstacles=[ground()]), wb.ProjectiveDynamics(0.06), 0.01)
    state, most = sim.state(), 0
    for k in range(70):
        gravity = G * torch.tensor([[0.014 * max(0, k - 15), 0.0, -min(1.0, (k + 1) / 15)]])
        state = sim.step(state, torch.zeros(0), gravity=gravity)
        most = max(most, int(sim.report().iterations[0]))
    assert most < 200 and state.shorter_steps.max() == 0
    assert speed_of(sim, state) > 0.5


@pytest.mark.verification
def test_gradients_are_those_of_the_contacts_that_had_broken_away():
    """Steps in which contacts break away, against central differences that lie on one side of all switches.

    A difference across a switch is a jump divided by its width, and proves nothing.
    """
    scene = wb.Scene([tall()], obstacles=[ground()])
    sim, exact = (wb.Simulation(scene, wb.ProjectiveDynamics(0.06, tolerance=t), 0.01, worlds=2) for t in (None, 1e-14))
    state, start, e = sim.state(), sim.parameter("friction"), 1e-6
    weight = torch.as_tensor(np.random.default_rng(0).normal(size=state.velocity.shape))
    way, agreed = torch.tensor([1.0, 0.5, 0.2], dtype=torch.float64), np.zeros(2, dtype=int)

    def loss(along: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
        end = exact.step(state, torch.zeros(0), gravity=gravity + along * way, friction=mu)
        return (weight * end.velocity).sum(dim=(1, 2))

    for k in range(36):
        slopes = [[0.014 * max(0, k - first), 0.0, -min(1.0, (k + 1) / 15)] for first in (15, 13)]
        gravity = G * torch.tensor(slopes, dtype=torch.float64)
        after = sim.step(state, torch.zeros(0), gravity=gravity)
        if k > 26 and broken_away(sim).any():
            along = torch.zeros(2, 1, dtype=torch.float64, requires_grad=True)
            mu = start.clone().requires_grad_()
            value, broken = loss(along, mu), broken_away(exact)
            for which, found in enumerate(torch.autograd.grad(value.sum(), [along, mu])):
                more, less = (loss(s * e * (which == 0) + 0 * along, start + s * e * (which == 1)) for s in (1, -1))
                difference = ((more - less) / (2 * e)).detach().numpy()
                agrees = np.isclose(found.flatten(), difference, rtol=1e-4) & (np.abs(difference) > 1e-4)
                agreed[which] += (agrees & broken).sum()
        state = after
    assert (agreed >= 3).all(), agreed


def broken_away(sim: wb.Simulation) -> np.ndarray:
    """Whether any contact of a world has the sliding coefficient for the rest of the last step, shape (worlds,)."""
    contacts = sim.model.workspace.contact.contacts
    listed, extra = (a.numpy().reshape(sim.worlds, -1) for a in (contacts.listed, contacts.extra))
    return ((listed == 1) & (extra == 0.0)).any(axis=1)


def landing() -> wb.Simulation:
    """A rigid cube just above the ground; on a slope between the coefficients its corners break away one by one."""
    cube = wb.RigidBody("body", Box((-0.05,) * 3, (0.05,) * 3), 1000.0, position=(0.05, 0.05, 0.0503), friction=0.0)
    slope = wb.Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), "friction", 0.5, static_friction=0.7)
    return wb.Simulation(wb.Scene([cube], obstacles=[slope]), wb.ProjectiveDynamics(0.05), 0.01)


def loaded() -> wb.Simulation:
    """A rigid cube under a soft one, on ground that holds it only as long as it rests."""
    cube = wb.RigidBody("body", Box((-0.05,) * 3, (0.05,) * 3), 1000.0, position=(0.05,) * 3, friction=0.0)
    load = wb.SoftBody("load", Box((0.02, 0.02, 0.1003), (0.07, 0.07, 0.1503)), wb.Material(1e6, 0.0), friction=0.0)
    slippery = wb.Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), "friction", 0.0, static_friction=0.2)
    return wb.Simulation(wb.Scene([cube, load], obstacles=[slippery]), wb.ProjectiveDynamics(0.05), 1e-3)


@pytest.mark.verification
@pytest.mark.parametrize(("scene", "pull"), [(landing, 0.55), (loaded, 0.03)])
def test_a_rigid_body_that_static_friction_holds_has_one_law_in_a_step_and_its_adjoint(scene, pull):
    """Its velocity by gravity in one step, in which it is held, or breaks away at some corners."""
    sim = scene()
    start = G * torch.tensor([[0.76 * pull, 0.64 * pull, -1.0]], dtype=torch.float64)
    way, weight = torch.tensor([[1.0, 0.5, 0.2]], dtype=torch.float64), torch.linspace(1.0, 2.0, 6, dtype=torch.float64)

    def moved(along):
        return (weight * sim.step(sim.state(), torch.zeros(0), gravity=start + along * way).qd).sum()

    along = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(moved(along), along)
    with torch.no_grad():
        difference = float(moved(1e-4) - moved(-1e-4)) / 2e-4
    assert float(gradient) == pytest.approx(difference, rel=1e-3)
