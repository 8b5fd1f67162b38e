"""How lattices move: against closed forms, against eigenvalues, and against an integration that is not ours."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import to_numpy
from scipy.integrate import solve_ivp
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

from warpbots.contact import signed_distance
from warpbots.numerics import precision
from warpbots.scene import Box, Constraint, Load, Material, Obstacle, Oscillation, Scene, SoftBody, Sphere, floor
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring import equilibrium, forces, natural_modes, stiffness_matrix
from warpbots.solvers.mass_spring.explicit_integrators import SCHEMES

INTEGRATORS = tuple(SCHEMES)
ORDER = {"euler": 1, "verlet": 2, "rk4": 4}


def cube(dim: int = 3, **parts) -> Scene:
    """A single voxel of 0.1 m, without gravity if not said otherwise."""
    box = Box((0.0,) * dim, (0.1,) * dim)
    damping = parts.pop("damping", 0.0)
    velocity = parts.pop("velocity", None)
    body = SoftBody("cube", box, Material(1e4, 0.25, 1000.0, damping=damping), regions={"all": box}, velocity=velocity)
    return Scene([body], **{"gravity": (0.0,) * dim} | parts)


def beam(length: float = 1.0, height: float = 0.1, **parts) -> Scene:
    """A beam along x that is held at its left end, in 2D."""
    root = Box((-1e-6, -1.0), (1e-6, 1.0))
    body = SoftBody("beam", Box((0.0, 0.0), (length, height)), Material(1e6, 0.25, 1000.0), regions={"root": root})
    return Scene([body], constraints=[Constraint("root")], gravity=(0.0, 0.0), **parts)


def reference(sim: Simulation, time: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Positions after `time` by SciPy's DOP853, with forces written out here."""
    made = sim.model.lattice
    (i, j), k, l0, c = made.ends.T, made.stiffness, made.rest_length, made.damping
    shape = made.position.shape

    def rate(t, y):
        x, v = y.reshape(2, *shape)
        d = x[j] - x[i]
        length = np.linalg.norm(d, axis=1)
        n = d / length[:, None]
        f = (k * (length - l0) + c * np.einsum("si,si->s", v[j] - v[i], n))[:, None] * n
        a = np.zeros(shape)
        np.add.at(a, i, f)
        np.add.at(a, j, -f)
        return np.stack([v, a / made.mass[:, None]]).ravel()

    y = np.stack([position, velocity]).ravel()
    return solve_ivp(rate, (0.0, time), y, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1].reshape(2, *shape)[0]


@pytest.mark.verification
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_order_of_accuracy(integrator, rng):
    """1, 2 and 4 against DOP853 for a tumbling, vibrating cube."""
    velocity, stir, time, error = rng.normal(size=(8, 3)), 0.005 * rng.normal(size=(8, 3)), 0.1, []
    for steps in (100, 200, 400):
        sim = Simulation(cube(), MassSpring(0.1, integrator=integrator), time / steps)
        position = to_numpy(sim.state().position)[0] + stir
        start = sim.state(position=torch.as_tensor(position), velocity=torch.as_tensor(velocity))
        end = to_numpy(sim.rollout(None, steps, start).final.position)[0]
        error.append(np.abs(end - reference(sim, time, position, velocity)).max())
    order = np.log2(np.array(error[:-1]) / error[1:])
    print(integrator, error, order)
    assert order == pytest.approx(ORDER[integrator], abs=0.1)


@pytest.mark.verification
def test_damping_along_the_springs(rng):
    """Against DOP853, by Runge and Kutta; the spin stays, what stretches dies."""
    velocity, time = rng.normal(size=(8, 3)), 0.1
    sim = Simulation(cube(damping=5e-3), MassSpring(0.1, integrator="rk4"), time / 400)
    end = sim.rollout(None, 400, sim.state(velocity=torch.as_tensor(velocity))).final
    expected = reference(sim, time, to_numpy(sim.state().position)[0], velocity)
    np.testing.assert_allclose(to_numpy(end.position)[0], expected, rtol=0, atol=1e-8)


@pytest.mark.verification
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_stability_bound(integrator):
    """At 0.98 of 2 / w_max (2 sqrt 2 / w_max for rk4) the highest mode stays small, at 1.02 it grows without end."""
    scene, solver = beam(0.5), MassSpring(0.05, integrator=integrator)
    bound = Simulation(scene, solver, 1e-5).max_time_step
    model = solver.build(scene)
    free = np.repeat(model.lattice.position[:, 0] > 1e-9, 2)
    K = stiffness_matrix(model).toarray()[np.ix_(free, free)]
    top = np.sqrt(eigh(K, np.diag(np.repeat(model.lattice.mass, 2)[free]), eigvals_only=True)[-1])
    assert bound == pytest.approx(SCHEMES[integrator].stable_step() / top, rel=2e-3)
    assert bound <= SCHEMES[integrator].stable_step() / top * (1 + 1e-6)
    growth = []
    for ratio in (0.98, 1.02):
        sim = Simulation(scene, solver, 1e-9)
        sim._time_step.dt = ratio * bound  # past the check
        kick = 1e-9 * torch.randn(sim.state().velocity.shape)
        try:
            end = sim.rollout(None, 800, sim.state(velocity=kick)).final
            growth.append(float(end.velocity.abs().max() / kick.abs().max()))
        except SimulationError:  # it grew beyond all numbers
            growth.append(np.inf)
    assert growth[0] < 30.0
    assert growth[1] > 1e3


@pytest.mark.verification
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_natural_frequencies_of_a_motion(integrator):
    """A beam that starts in one of its modes swings with its frequency, to 0.5 %: zero crossings of its amplitude."""
    scene, solver = beam(), MassSpring(0.05, integrator=integrator)
    model = solver.build(scene)
    frequency, shape = natural_modes(model, 3)
    for f, u in zip(frequency, shape, strict=True):
        dt = 0.4 * solver.max_time_step(model)
        sim = Simulation(scene, solver, dt * 4, substeps=4)
        start = sim.state()
        mode = torch.as_tensor(u)
        weight = mode * torch.as_tensor(model.lattice.mass)[:, None]
        small = 1e-5 / float(mode.abs().max())
        steps = int(3.3 / f / sim.dt)
        moved = sim.state(position=start.position + small * mode)
        trajectory = sim.rollout(None, steps, moved, observe=lambda s: s.position)
        a = np.einsum("tni,ni->t", to_numpy(trajectory.observation - start.position[:, None])[0], to_numpy(weight))
        before = np.flatnonzero(a[:-1] * a[1:] < 0)
        crossing = sim.dt * (before + 1 + a[before] / (a[before] - a[before + 1]))
        measured = (len(crossing) - 1) / 2 / (crossing[-1] - crossing[0])
        assert measured == pytest.approx(f, rel=5e-3)


@pytest.mark.verification
def test_energy_stays_in_its_band():
    """Verlet: the band of the total energy is of order 2 in the step and does not drift over 10 s."""
    scene, band = beam(0.5, 0.1), []
    for divisor in (1, 2):
        solver = MassSpring(0.05, integrator="verlet")
        bound = solver.max_time_step(solver.build(scene))
        sim = Simulation(scene, solver, 40 * divisor * 0.3 * bound / divisor, substeps=40 * divisor)
        velocity = torch.zeros_like(sim.state().velocity)
        velocity[..., 1] = 0.2 * sim.state().position[..., 0]
        trajectory = sim.rollout(None, int(10.0 / sim.dt), sim.state(velocity=velocity))
        read = [sim.sense(s) for _, s in trajectory.states()]
        total = np.array([float(r.kinetic_energy + r.elastic_energy) for r in read])
        band.append(np.ptp(total) / total[0])
        half = len(total) // 2
        assert abs(total[half:].mean() - total[:half].mean()) < 0.05 * np.ptp(total)
    print(band)
    assert band[0] / band[1] == pytest.approx(4.0, rel=0.15)


def test_bending_converges_to_theory():
    """Static tip deflection F L^3 / 3 E' I + F L / k G A of a beam under a tip load, at 4, 8 and 16 cells.

    Cells that cannot bend make it too stiff, with order 2; the held corners lower that a little.
    """
    length, height, force, error = 1.0, 0.1, 1.0, []
    E = 1e6 / (1 - 0.25**2)  # plane strain
    expected = force * length**3 / (3 * E * height**3 / 12) + force * length / (5 / 6 * 0.4e6 * height)
    for cells in (4, 8, 16):
        model = MassSpring(height / cells).build(beam(length, height))
        x, K = model.lattice.position, stiffness_matrix(model)
        tip, free = np.isclose(x[:, 0], length), np.repeat(x[:, 0] > 1e-9, 2)
        f = np.zeros((len(x), 2))
        f[tip, 1] = -force * model.lattice.volume[tip] / model.lattice.volume[tip].sum()
        u = spsolve(K[free][:, free].tocsc(), f.reshape(-1)[free])
        error.append(1.0 - np.mean(-u[np.repeat(tip, 2)[free]][1::2]) / expected)
    print(error)
    assert 0.0 < error[-1] < 0.01
    assert np.log2(np.array(error[:-1]) / error[1:]).min() > 1.5


def test_a_motion_comes_to_rest_where_statics_puts_it():
    """A beam under its loads, with drag."""
    scene = beam(0.5, 0.1)
    tip = Box((0.5 - 1e-6, -1.0), (0.5 + 1e-6, 1.0))
    body = SoftBody("beam", scene.bodies[0].shape, scene.bodies[0].material, {**scene.bodies[0].regions, "tip": tip})
    scene = Scene([body], constraints=scene.constraints, loads=[Load("tip", (0.3, -0.4))], gravity=(0.0, 0.0))
    solver = MassSpring(0.05, drag=30.0)
    sim = Simulation(scene, solver, 20 * 0.45 * solver.max_time_step(solver.build(scene)), substeps=20)
    moved = to_numpy(sim.rollout(None, int(2.0 / sim.dt)).final.position - sim.state().position)[0]
    free = np.repeat(sim.model.lattice.position[:, 0] > 1e-9, 2)
    K = stiffness_matrix(sim.model)[free][:, free]
    u = spsolve(K.tocsc(), sim.model.load.numpy()[0].reshape(-1)[free])
    np.testing.assert_allclose(moved.reshape(-1)[free], u, rtol=0.01, atol=1e-3 * np.abs(u).max())


def test_equilibrium_under_weight():
    """A heavy beam that bends by a third of its length: no force is left, and a motion with drag comes to rest there."""
    scene = dataclasses.replace(beam(0.5, 0.05), gravity=(0.0, -20.0))
    sim = Simulation(scene, MassSpring(0.025, drag=10.0), 5e-3, substeps=None)
    x = equilibrium(sim.model)
    assert (sim.model.lattice.position[:, 1] - x[:, 1]).max() > 0.15
    weight = sim.model.lattice.mass[:, None] * np.array([0.0, -20.0])
    left = (forces(sim.model, x) + weight)[~sim.model.lattice.regions["root"]]
    assert np.abs(left).max() < 1e-6 * np.abs(forces(sim.model, x)).max()
    end = to_numpy(sim.rollout(None, 800).final.position)[0]
    np.testing.assert_allclose(end, x, atol=2e-4)
    np.testing.assert_allclose(equilibrium(sim.model, parts=1), x, atol=1e-9)
    loose = dataclasses.replace(scene, constraints=())
    with pytest.raises(RuntimeError, match="equilibrium: the lattice can move without a force|did not converge"):
        equilibrium(MassSpring(0.025).build(loose))


def test_all_natural_modes_of_a_lattice():
    """As many as there are motions: orthonormal in the masses, their frequencies those of K alone; one more is refused.

    K = M Phi (2 pi f)^2 Phi^T M.
    """
    model = MassSpring(0.1).build(cube())
    count = 3 * len(model.lattice)
    frequency, shape = natural_modes(model, count)
    shape, mass = shape.reshape(count, -1), np.repeat(model.mass.numpy()[0].astype(np.float64), 3)
    np.testing.assert_allclose(shape @ (mass[:, None] * shape.T), np.eye(count), atol=1e-6)
    K = stiffness_matrix(model).toarray()
    again = (mass[:, None] * shape.T) @ np.diag((2.0 * np.pi * frequency) ** 2) @ (shape * mass)
    np.testing.assert_allclose(again, K, atol=1e-6 * K.max())
    np.testing.assert_allclose(natural_modes(model, count - 1)[0][6:], frequency[6:-1], rtol=1e-5)
    with pytest.raises(ValueError, match=f"count must be in 1 to {count}, the motions that the constraints allow, got"):
        natural_modes(model, count + 1)


@pytest.mark.parametrize(
    ("freedom", "direction", "left"), [("fixed", None, ()), ("line", (1, 0, 0), (0,)), ("plane", (1, 0, 0), (1, 2))]
)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_constraints(integrator, freedom, direction, left):
    """A body of which every mass is constrained moves along what is left alone, and there it falls freely."""
    g = np.array([1.0, 2.0, -3.0])
    scene = cube(gravity=tuple(g), constraints=[Constraint("all", freedom, direction)])
    sim = Simulation(scene, MassSpring(0.1, integrator=integrator), 1e-3)
    moved = to_numpy(sim.rollout(None, 100).final.position - sim.state().position)[0]
    s = sum(SCHEMES[integrator].p)
    expected = np.where(np.isin(range(3), left), g * 1e-6 * (100 * 99 / 2 + 100 * s), 0.0)
    np.testing.assert_allclose(moved, np.broadcast_to(expected, moved.shape), rtol=1e-3, atol=1e-7)


def test_drag():
    """v = v_0 exp(-c t), by Runge and Kutta."""
    sim = Simulation(cube(velocity=(1.0, 0.0, 0.0)), MassSpring(0.1, integrator="rk4", drag=2.0), 1e-3)
    v = to_numpy(sim.rollout(None, 500).final.velocity)[0]
    np.testing.assert_allclose(v[:, 0], np.exp(-1.0), rtol=2e-4 if precision == "float32" else 1e-9)


def test_an_elastic_floor_carries_the_weight():
    """A resting cube sinks by its weight over K A; without stiffness it does not sink."""
    for stiffness in (0.0, 5e5):
        scene = cube(gravity=(0.0, 0.0, -9.81), obstacles=[floor()], damping=2e-3)
        sim = Simulation(scene, MassSpring(0.1, contact_stiffness=stiffness, drag=4.0), 5e-4)
        end = to_numpy(sim.rollout(None, 6000).final.position)[0]
        area = 4 * (0.1**3 / 8) ** (2 / 3)
        expected = -9.81 / (stiffness * area) if stiffness else 0.0
        assert end[:, 2].min() == pytest.approx(expected, rel=0.01, abs=1e-4)


@pytest.mark.verification
@pytest.mark.parametrize("damping", [0.0, 0.3, 2.0])
def test_what_bounces_off_a_damped_floor(damping):
    """Speeds u before and w after: a u - ln(1 + a u) = -a w - ln(1 - a w), the integral of K d (1 + a d') over d.

    A cube that is stiff against its floor and starts on it, without gravity; to 1 %.
    """
    speed = 1.0
    solver = MassSpring(0.1, integrator="verlet", contact_stiffness=1e5, contact_damping=damping)
    body = SoftBody("cube", Box((0.0,) * 3, (0.1,) * 3), Material(1e6, 0.25, 1000.0), velocity=(0.0, 0.0, -speed))
    sim = Simulation(Scene([body], obstacles=[floor()], gravity=(0.0,) * 3), solver, 1e-4)
    end = sim.rollout(None, 6000).final
    mass = torch.as_tensor(sim.model.lattice.mass)
    off = float((mass @ end.velocity[0, :, 2].double()) / mass.sum())
    if damping == 0.0:
        assert off == pytest.approx(speed, rel=0.01)
        return
    lost = damping * speed - np.log(1.0 + damping * speed)
    expected = brentq(lambda w: -damping * w - np.log(1.0 - damping * w) - lost, 1e-6, (1.0 - 1e-9) / damping)
    assert off == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    "obstacle", [Sphere((0.05, 0.05, -0.5), 0.5), Box((-1.0, -1.0, -1.0), (1.0, 1.0, 0.0))], ids=["sphere", "box"]
)
def test_solids_keep_matter_out(obstacle):
    """A cube that falls on a solid comes to rest on it, and no mass is deeper than it falls in a few steps."""
    scene = cube(
        gravity=(0.0, 0.0, -9.81),
        velocity=(0.0, 0.0, -0.5),
        obstacles=[Obstacle(obstacle, "friction", 2.0)],
        damping=1e-2,
    )
    sim = Simulation(scene, MassSpring(0.05), 5e-4, substeps=2)
    trajectory = sim.rollout(None, 600)
    end = to_numpy(trajectory.final.position)[0]
    assert signed_distance(obstacle, end).min() > -2e-3
    assert np.abs(to_numpy(trajectory.final.velocity)).max() < 0.05
    assert end[:, 2].max() > 0.08


@pytest.mark.verification(float32=True)
def test_an_oscillation_is_a_length_at_rest_in_time():
    """A heavily damped cube follows e = (1 + u) a sin(2 pi f t + phase) quasi-statically."""
    drive = Oscillation("beat", "all", 0.1, 0.5, 0.3)
    sim = Simulation(cube(actuators=[drive], damping=5e-3), MassSpring(0.1), 5e-4)
    for u in (0.0, -1.0, 0.5):
        trajectory = sim.rollout(torch.full((3000, 1), u), 3000)
        for t, state in list(trajectory.states(500))[1:]:
            size = np.ptp(to_numpy(state.position)[0, :, 0])
            expected = 0.1 * (1 + (1 + u) * 0.1 * np.sin(2 * np.pi * 0.5 * t + 0.3))
            if t > 0.6:
                assert size == pytest.approx(expected, rel=3e-3)
        assert to_numpy(trajectory.final.time)[0] == pytest.approx(1.5, rel=1e-6)
