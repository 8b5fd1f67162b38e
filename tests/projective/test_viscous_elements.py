"""Kelvin-Voigt damping: decrement of a bar, small strains, and no force on what turns or rests."""

import dataclasses

import numpy as np
import pytest
import warp as wp
from cases import CONSTITUTIONS, to_numpy
from scipy.spatial.transform import Rotation
from soft_bodies import CELL, DT, beam, damped, mixed, simulation

from warpbots.numerics import NODE, real, real_numpy, vector
from warpbots.scene import Constraint, HalfSpace, Material, Scene, SoftBody, Truss
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_residual, evaluate_rest

pytestmark = pytest.mark.verification

BETA, STIFFNESS, MASS, LENGTH = 2e-3, 100.0, 0.05, 0.5
SCENES = {"mixed": mixed} | {law: lambda law=law: beam(law, nu=0.4) for law, _ in CONSTITUTIONS}


def forces_in(scene: Scene, x: np.ndarray, u: np.ndarray, h: float) -> np.ndarray:
    """Forces on the nodes in a step of length h from x to x + u, without inertia, loads and controls [N]."""
    scene = dataclasses.replace(scene, constraints=(), loads=(), actuators=(), gravity=(0.0,) * 3)
    sim = simulation(scene)
    model = sim.model
    wide = np.zeros((model.topology.sizes.stride, 4), dtype=real_numpy)
    wide[: len(x), :3] = u
    start = wp.array(x.astype(real_numpy), dtype=vector(3))
    step = wp.array(wide, dtype=NODE)
    state, control = sim.solver.state(model), wp.zeros((1, 0), dtype=real)
    point = Point(model.workspace.everywhere, control, start, step, real(h), state.time)
    evaluate_rest(model, point)
    still = wp.array((u / h).astype(real_numpy), dtype=start.dtype)  # such that there is no inertia
    evaluate_residual(model, point, still)
    return model.workspace.residual.numpy()[: len(x), :3].astype(float)


@pytest.mark.parametrize("steps", [20, 400])
def test_a_damped_bar_rings_as_its_equation_of_motion_says(steps):
    """Displacements of a mass on a bar follow the recurrence of implicit Euler, and for short steps exp(-beta w^2 t/2).

    (q'' - 2 q' + q) / h^2 = -w^2 (q'' + beta (q'' - q') / h), whose roots have the size (1 + beta h w^2 + h^2 w^2)^-1/2.
    """
    E, area = 1e6, STIFFNESS * LENGTH / 1e6
    mast = Truss(np.array([[0.0, 0, 0], [LENGTH, 0, 0]]), np.array([[0, 1]]), np.sqrt(area / np.pi))
    matter = Material(E, 0.3, 2.0 * MASS / (area * LENGTH), damping=BETA)
    body = SoftBody("bar", mast, matter, regions={"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))})
    w = np.sqrt(STIFFNESS / MASS)
    h = 2.0 * np.pi / w / steps
    sim = Simulation(Scene((body,), constraints=(Constraint("root"),), gravity=(0.0,) * 3), ProjectiveDynamics(CELL), h)
    start = sim.state().position.clone()
    start[0, 1, 0] += 1e-3 * LENGTH
    trajectory = sim.rollout(None, steps, sim.state(position=start), observe=lambda s: s.position[:, 1, 0])
    found = to_numpy(trajectory.observation)[0] - LENGTH
    before = now = start_at = 1e-3 * LENGTH
    expected = []
    for _ in range(steps):
        ahead = ((2.0 + BETA * h * w**2) * now - before) / (1.0 + BETA * h * w**2 + (h * w) ** 2)
        before, now = now, ahead
        expected.append(now)
    np.testing.assert_allclose(found, expected, atol=1e-3 * start_at)
    if steps == 400:
        size = (1.0 + BETA * h * w**2 + (h * w) ** 2) ** (-steps / 2) / np.exp(-0.5 * steps * h * h * w * w)
        assert size == pytest.approx(np.exp(-0.5 * BETA * w**2 * steps * h), rel=0.01)


@pytest.mark.parametrize("scene", SCENES)
def test_at_small_strains_stress_is_beta_times_that_of_the_rate(scene, rng):
    """f_damped = (1 + beta/h) f for small displacements from rest."""
    made = SCENES[scene]()
    x = simulation(made).model.matter.position
    size = 1e-2 if scene == "linear" else 1e-7
    u = size * rng.normal(size=x.shape) * CELL
    elastic, both = (forces_in(s, x, u, DT) for s in (made, damped(made, 0.02)))
    if scene == "mixed":  # folds are not damped
        sheet = np.unique(simulation(made).model.matter.triangles)
        elastic, both = (np.delete(f, sheet, axis=0) for f in (elastic, both))
    np.testing.assert_allclose(both, (1.0 + 0.02 / DT) * elastic, atol=1e-5 * np.abs(both).max())


@pytest.mark.parametrize("scene", [s for s in SCENES if s != "linear"])
def test_what_rests_or_turns_is_not_damped(scene, rng):
    """Matter under stress that rests, or turns by 40 degrees in a step, has no viscous force."""
    made = SCENES[scene]()
    x = simulation(made).model.matter.position * (1.2, 1.0, 0.9) + 0.05 * CELL * rng.normal(size=(1, 3))
    turn = Rotation.from_rotvec((0.5, -0.3, 0.4)).as_matrix()
    for u in (np.zeros_like(x), x @ turn.T - x):
        plain, both = (forces_in(s, x, u, DT) for s in (made, damped(made, 0.02)))
        assert np.abs(plain).max() > 1.0
        np.testing.assert_allclose(both, plain, atol=1e-9 * np.abs(plain).max())
