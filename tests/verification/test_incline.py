"""Coulomb: a block on an incline of angle theta sticks exactly when tan(theta) <= mu, and else slides with
a = g (sin(theta) - mu cos(theta)); on a level floor it stops after v^2 / (2 mu g).

Gravity is tilted rather than the floor, and once the floor too. Every (mu, theta) is a world of one simulation. Gravity
rises over 0.4 s, some ten periods of the block: applied at once it would make the block ring, and a ringing block
creeps below the friction angle. Poisson's ratio is 0 for the same reason: with 0.3, a block that slides at mu = 0.6
flutters, as elastic bodies under Coulomb's law may (Adams 1995, "Self-excited oscillations of two elastic half-spaces
sliding with a constant coefficient of friction"), and its mean friction changes by several per cent.
"""

import numpy as np
import pytest
import torch
from cases import DIMENSIONS, EXPLICIT, LATTICES, to_numpy

from warpbots.scene import Box, HalfSpace, Material, Obstacle, Posed, Scene, SoftBody, floor
from warpbots.simulation import Simulation

G = 9.81
DX = 1 / 32
INTERVAL = 0.012
SUBSTEPS = (8, 48)  # of matter, 0.37 of the stability bound for c = sqrt(E / rho) = 10 m/s, and of lattices
MATERIAL = {"matter": Material(1e5, 0.0, 1000.0), "lattice": Material(1e5, 0.25, 1000.0, damping=4e-3)}
RISE, SLIDE = 35, 30  # control intervals

LAY = {2: (8, 4), 3: (4, 2, 2)}
"""Cells of the block along each axis."""


def material(solver: str) -> Material:
    """What the block is made of: a lattice rings without end if nothing damps it."""
    return MATERIAL["lattice" if solver in LATTICES else "matter"]


def simulation(solver: str, scene: Scene, worlds: int) -> Simulation:
    """Cells, or springs, of 1/32 m; of half of that where a random lattice would miss a fifth of the block."""
    lattice = solver in LATTICES
    finer = 2 if "random" in solver and scene.dim == 3 else 1
    made = EXPLICIT[solver](2 * DX / finer if lattice else DX)
    return Simulation(scene, made, INTERVAL, finer**2 * SUBSTEPS[lattice], worlds=worlds)


def block_on_floor(solver: str, dim: int, worlds: int) -> Simulation:
    """A block that lies on a level floor, long enough for it to slide."""
    sides = DX * np.array(LAY[dim])
    lower = np.array([0.25, *(0.25,) * (dim - 2), 0.0])
    body = SoftBody("block", Box(lower, lower + sides), material(solver))
    domain = ((0.0,) * dim, (2.5, *(0.75,) * (dim - 1)))
    scene = Scene((body,), (), (floor(0.0, dim=dim, friction=0.5),), domain=domain)
    return simulation(solver, scene, worlds)


def settled(sim: Simulation, gravity: torch.Tensor, mu: torch.Tensor):
    """The state in which gravity has slowly come to its full strength."""
    state = sim.state()
    with torch.no_grad():
        for k in range(RISE):
            state = sim.step(state, torch.zeros(0), gravity=gravity * (k + 1) / RISE, friction=mu)
    return state


def speeds(sim: Simulation, state, steps: int, gravity: torch.Tensor, mu: torch.Tensor, along: np.ndarray):
    """Times [s] and mean velocities of the block along a direction [m/s], shapes (steps,) and (worlds, steps)."""
    trajectory = sim.rollout(
        None, steps, state, gravity=gravity, friction=mu, observe=lambda s: s.velocity.mean(1).detach()
    )
    return INTERVAL * np.arange(1, steps + 1), to_numpy(trajectory.observation) @ along


def judge(times: np.ndarray, v: np.ndarray, slope: float, mu: float) -> None:
    """Whether a block moves as Coulomb says: it creeps by less than 1 cm/s, or accelerates as predicted to 1 %."""
    late = times > times[-1] / 3
    a = G * (np.sin(slope) - mu * np.cos(slope))
    measured = np.polyfit(times[late], v[late], 1)[0]
    if np.tan(slope) <= mu:
        assert np.abs(v[late]).mean() < 0.01, f"slips at mu {mu:.3f}, slope {np.degrees(slope):.1f} deg"
    else:
        assert measured == pytest.approx(a, rel=0.01), f"mu {mu:.3f}, slope {np.degrees(slope):.1f} deg"


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("solver", EXPLICIT)
def test_a_block_slips_exactly_above_the_friction_angle(solver, dim):
    """tan(theta) at 0.5, 0.95, 1.05, 1.25 and 2 mu, for three mu."""
    cases = [(mu, np.arctan(ratio * mu)) for mu in (0.1, 0.3, 0.6) for ratio in (0.5, 0.95, 1.05, 1.25, 2.0)]
    mu, slope = np.array(cases).T
    gravity = torch.zeros(len(cases), dim)
    gravity[:, 0], gravity[:, -1] = torch.as_tensor(G * np.sin(slope)), torch.as_tensor(-G * np.cos(slope))
    friction = torch.as_tensor(mu)[:, None]
    sim = block_on_floor(solver, dim, len(cases))
    times, v = speeds(sim, settled(sim, gravity, friction), SLIDE, gravity, friction, np.eye(dim)[0])
    for world, (m, theta) in enumerate(cases):
        judge(times, v[world], theta, m)


@pytest.mark.parametrize("solver", EXPLICIT)
def test_a_block_on_a_tilted_floor(solver):
    """The same with an inclined half-space, which cuts through the grid: nodes feel its normal, not their axes."""
    slope = 0.3
    mu = np.tan(slope) / np.array([0.5, 0.8, 0.95, 1.25, 2.0, 4.0])  # tan(theta) / mu
    down, out = np.array([np.cos(slope), -np.sin(slope)]), np.array([np.sin(slope), np.cos(slope)])
    foot = (0.3, 1.2)
    shape = Posed(Box((0.0, 0.0), (8 * DX, 4 * DX)), foot, np.stack([down, out], axis=1))
    incline = Obstacle(HalfSpace(foot, tuple(out)), "friction", 0.3)
    scene = Scene((SoftBody("block", shape, material(solver)),), (), (incline,), domain=((0.0, 0.0), (2.5, 2.0)))
    sim = simulation(solver, scene, len(mu))
    gravity, friction = torch.tensor([0.0, -G]), torch.as_tensor(mu)[:, None]
    times, v = speeds(sim, settled(sim, gravity, friction), SLIDE, gravity, friction, down)
    for world, m in enumerate(mu):
        judge(times, v[world], slope, m)


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("solver", EXPLICIT)
def test_stopping_distance(solver, dim):
    """d = v^2 / (2 mu g) within 2 %, at rest afterwards."""
    v_0, mu = 1.0, torch.tensor([[0.2], [0.3], [0.5]])
    gravity = torch.tensor([0.0, *(0.0,) * (dim - 2), -G])
    sim = block_on_floor(solver, dim, len(mu))
    start = settled(sim, gravity, 0.0 * mu)
    start = sim.state(**{**vars(start), "velocity": start.velocity + v_0 * torch.eye(dim)[0]})

    def middle(state):
        return state.position[..., 0].mean(1)

    trajectory = sim.rollout(None, 70, start, gravity=gravity, friction=mu, observe=middle)
    way = to_numpy(trajectory.observation) - to_numpy(middle(start))[:, None]
    at_rest = way[:, -20:]  # the block rings a little where it stands
    assert np.ptp(at_rest, axis=1).max() < (2e-3 if "random" in solver else 1e-3)  # on an elastic floor it rocks
    np.testing.assert_allclose(at_rest.mean(axis=1), v_0**2 / (2 * to_numpy(mu)[:, 0] * G), rtol=0.02)
