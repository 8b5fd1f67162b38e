"""Observations of soft bodies follow from geometry, materials and gravity, with memory, delay and noise."""

import copy
import dataclasses

import numpy as np
import pytest
import scipy.linalg
import torch
from cases import SOLVERS
from scipy.spatial.transform import Rotation

import warpbots as wb
from warpbots.observers import (
    Accelerometer,
    Centroid,
    Clusters,
    Delayed,
    Gyroscope,
    MeanPressure,
    Noisy,
    ObstacleForces,
    Strain,
)
from warpbots.observers.region import polar_rotation
from warpbots.scene import Box, Material, SoftBody, floor

G = 9.81
E, NU = 2e4, 0.3
HALVES = {"low": Box((0.25,) * 3, (0.5, 0.5, 0.375)), "high": Box((0.25, 0.25, 0.375), (0.5,) * 3)}
pytestmark = pytest.mark.filterwarnings("ignore:SoftBody 'block'. springs follow Hooke's law")
BLOCK = SoftBody("block", Box((0.25,) * 3, (0.5,) * 3), Material(E, NU, 1000.0, "linear"), HALVES)
SQUARE = SoftBody("square", Box((0.25, 0.25), (0.5, 0.5)), Material(E, NU, 1000.0))


def simulation(name: str, dim: int = 3, worlds: int = 1, **scene) -> wb.Simulation:
    body = BLOCK if dim == 3 else SQUARE
    given = {"gravity": (0.0, 0.0, -G)[3 - dim :]} | scene
    return wb.Simulation(
        wb.Scene([body], **given), SOLVERS[name](1 / 16), 1e-3, 4 if name != "projective" else 1, worlds=worlds
    )


def moved(sim: wb.Simulation, F: np.ndarray, v=0.0, w=None):
    """The matter of `sim` under an affine map about its centre, turning about it."""
    X = sim.model.matter.position
    c = X.mean(axis=0)
    x = (X - c) @ F.T + c + 0.1
    v = np.zeros_like(x) + v
    if w is not None:
        r = x - c - 0.1
        v = v + (np.cross(w, r) if len(c) == 3 else w * np.stack([-r[:, 1], r[:, 0]], axis=1))
    fields = {"position": x[None], "velocity": v[None]}
    if isinstance(sim.solver, wb.MPM):
        fields["deformation"] = np.broadcast_to(F, (1, len(x), *F.shape))
    return sim.state(**fields)


def assert_is(found, expected, scale=1.0):
    tolerance = 1e-12 if found.dtype == torch.float64 else 2e-5
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=tolerance * scale)


R = Rotation.from_euler("xyz", [0.5, -0.9, 1.3]).as_matrix()
S = np.array([[1.2, 0.1, 0.0], [0.1, 0.9, -0.05], [0.0, -0.05, 1.1]])


@pytest.mark.parametrize("name", ["mpm", "springs", "projective"])
def test_strain_and_rotation_are_those_of_an_affine_map(name):
    sim = simulation(name)
    F, w = R @ S, np.array([3.0, -2.0, 1.0])
    state = moved(sim, F)
    strain = (S @ S - np.eye(3)) / 2.0
    voigt = strain[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]][None]
    for region in (None, "high"):
        assert_is(Strain(region).bind(sim)(state), voigt)
    turning = moved(sim, R, v=0.3, w=w)
    assert_is(Gyroscope("high").bind(sim)(turning), (R.T @ w)[None], 10.0)


def test_in_a_plane():
    sim, angle = simulation("mpm", dim=2), 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    state = moved(sim, turn @ np.array([[1.2, 0.1], [0.1, 0.8]]), w=4.0)
    assert_is(Strain().bind(sim)(state), [[(1.2**2 + 0.1**2 - 1) / 2, (0.8**2 + 0.1**2 - 1) / 2, 0.1]])
    assert_is(Gyroscope().bind(sim)(state), [[4.0]], 10.0)
    observe = Accelerometer().bind(sim)
    assert_is(observe(state), (turn.T @ [0.0, G])[None], G)


def test_rotation_is_the_polar_one_with_its_gradient_also_where_stretches_are_equal():
    rng = np.random.default_rng(0)
    matrices = [np.eye(3), R, 1e-3 * R @ S, R @ np.diag([1.0, 1.0, 1e-4]), np.eye(3) + 0.3 * rng.normal(size=(3, 3))]
    for F in matrices:
        expected, _ = scipy.linalg.polar(F)
        np.testing.assert_allclose(polar_rotation(torch.tensor(F)).numpy(), expected, atol=1e-11)
    assert torch.autograd.gradcheck(polar_rotation, torch.tensor(np.stack([np.eye(3), R, R @ S])).requires_grad_())
    with pytest.raises(ValueError, match=r"turned inside out \(determinant -1 "):
        polar_rotation(torch.diag(torch.tensor([1.0, 1.0, -1.0])))


@pytest.mark.parametrize("name", ["mpm", "projective"])
def test_pressure_is_that_of_the_law_in_each_region(name):
    """Of linear elasticity under x = s X: sigma = (3 lambda + 2 mu) (s - 1) s / s^3 on the diagonal."""
    sim, s = simulation(name), 0.97
    state = moved(sim, s * np.eye(3))
    modulus = sim.per_region({"low": E, "high": 3 * E}, "youngs_modulus")
    for region, factor in (("low", 1.0), ("high", 3.0)):
        expected = -factor * E / (1 - 2 * NU) * (s - 1) / s**2
        seen = MeanPressure(region).bind(sim)(state, youngs_modulus=modulus)
        np.testing.assert_allclose(seen.numpy(), [[expected]], rtol=1e-4)
    np.testing.assert_allclose(
        MeanPressure().bind(sim)(state).numpy(), [[-E / (1 - 2 * NU) * (s - 1) / s**2]], rtol=1e-4
    )


def test_springs_push_back_when_compressed():
    sim = simulation("springs")
    assert MeanPressure("high").bind(sim)(moved(sim, 0.97 * np.eye(3))).item() > 100.0
    assert MeanPressure("high").bind(sim)(moved(sim, 1.03 * np.eye(3))).item() < -100.0


@pytest.mark.parametrize("name", ["mpm", "springs", "projective"])
def test_obstacles_push_matter_away(name):
    """A floor and a wall, in both orders; the momentum that a floor takes has its direction."""
    obstacles = (floor(0.25), wb.scene.Obstacle(wb.shapes.HalfSpace((0.25, 0, 0), (1, 0, 0)), name="wall"))
    sim = simulation(name, obstacles=obstacles)
    if name == "projective":
        sim = wb.Simulation(sim.scene, dataclasses.replace(sim.solver, contact_interval=1e-3), 1e-3, 1)
    state = sim.state(velocity=np.array([-0.3, 0.0, -0.5]))
    state = sim.rollout(None, 3, state).final
    seen = ObstacleForces().bind(sim)(state).reshape(2, 3)
    names = [obstacle.name for obstacle in sim.scene.obstacles]
    other = ObstacleForces(tuple(names[::-1])).bind(sim)(state).reshape(2, 3)
    assert seen[0, 2] > 1.0 and seen[1, 0] > 1.0
    np.testing.assert_array_equal(other.numpy(), seen.numpy()[::-1])
    assert_is(seen, -sim.sense(state).contact_force[0].numpy())


def test_an_accelerometer_shows_what_holds_it():
    """A held accelerometer shows gravity upwards, in its own axes; in free fall it shows zero."""
    sim = simulation("projective")
    observe = Accelerometer("high").bind(sim)
    assert_is(observe(moved(sim, R)), (R.T @ [0.0, 0.0, G])[None], 10.0)
    falling = sim.rollout(None, 4, observe=observe).observation[0]
    assert_is(falling[1:], np.zeros((3, 3)), 1e3 * G)  # velocities are rounded, differences over 1 ms
    held = wb.Constraint("low", "fixed")
    sim = simulation("projective", constraints=(held,))
    final = Accelerometer("low").bind(sim)
    assert_is(sim.rollout(None, 4, observe=final).observation[0, -1], [0.0, 0.0, G], 1e3)


def test_accelerations_of_clusters_are_changes_of_their_velocities():
    sim = simulation("mpm")
    plain, more = Clusters(3).bind(sim), Clusters(3, acceleration=True).bind(sim)
    first, second = moved(sim, S, v=0.2), moved(sim, R @ S, v=-0.4, w=np.array([1.0, 0.0, 2.0]))
    seen = [plain(state).reshape(3, 2, 3) for state in (first, second)]
    assert_is(more(first).reshape(3, 3, 3)[:, 2], np.zeros((3, 3)))
    found = more(second).reshape(3, 3, 3)
    assert_is(found[:, :2], seen[1].numpy())
    assert_is(found[:, 2], ((seen[1] - seen[0])[:, 1] / sim.dt).numpy(), 1e4)
    assert Centroid(acceleration=True).bind(sim)(first).shape == (1, 9)


def test_clusters_are_measured_in_lengths_of_their_own_bodies():
    """A bed of sand beside the robot, four times as long, changes nothing."""
    robot = SoftBody("robot", SQUARE.shape, SQUARE.material, {"all": SQUARE.shape})
    bed = SoftBody("bed", Box((0.75, 0.25), (1.75, 0.5)), SQUARE.material)
    seen = []
    for bodies in ([robot], [robot, bed]):
        sim = wb.Simulation(wb.Scene(bodies), SOLVERS["mpm"](1 / 16), 1e-3, 4)
        x = sim.state().position
        seen.append(Clusters(2, "all").bind(sim)(sim.state(position=x + 0.05, velocity=0.1 + x * 0.0)))
    assert_is(seen[1], seen[0].numpy())
    assert_is(seen[0], np.tile([0.05, 0.05, 0.1, 0.1], (1, 2)) / 0.25)


def test_a_delayed_observation_is_that_of_earlier_calls_until_it_forgets():
    sim = simulation("springs", worlds=2)
    plain, late = Centroid().bind(sim), Delayed(Centroid(), 2).bind(sim)
    states = [sim.state(velocity=np.full(3, 0.1 * k)) for k in range(6)]
    seen = [plain(state).numpy() for state in states]
    found = [late(state).numpy() for state in states[:4]]
    np.testing.assert_array_equal(found, [seen[0], seen[0], seen[0], seen[1]])
    late.forget(torch.tensor([True, False]))
    mixed = late(states[4]).numpy()
    np.testing.assert_array_equal(mixed, [seen[4][0], seen[2][1]])
    late.forget()
    np.testing.assert_array_equal(late(states[5]).numpy(), seen[5])


def test_an_accelerometer_of_a_controller_falls_with_the_gravity_of_its_rollout():
    sim, seen = simulation("springs"), []
    sensor = wb.observers.BoundObserver(wb.observers.Accelerometer(), sim)

    def watch(state, time):
        seen.append(sensor(state))
        return torch.zeros(sim.channels)

    sim.rollout(watch, 2, gravity=torch.tensor([0.0, 0.0, -1.6]))
    assert_is(seen[0], [[0.0, 0.0, 1.6]])
    assert_is(seen[1], [[0.0, 0.0, 0.0]], 100.0)


def test_a_rollout_begins_without_memory_and_copies_share_none():
    sim = simulation("springs", actuators=(wb.actuators.Muscle("pull", "high", (0, 0, 1), 3e3),))
    policy = wb.controllers.MLP(sim, Delayed(Centroid(acceleration=True), 2), (8,), seed=1)
    start = sim.state(velocity=np.array([0.5, 0.0, 0.3]))
    first = sim.rollout(policy, 5, start)
    np.testing.assert_array_equal(sim.rollout(policy, 5, start).control.detach(), first.control.detach())
    inside = []

    def planner(state, time):
        """A rollout within the rollout, of another motion, which it must not disturb."""
        inside.append(sim.rollout(policy, 2, start.mapped(torch.zeros_like)).control.detach())
        return policy(state, time)

    np.testing.assert_array_equal(sim.rollout(planner, 5, start).control.detach(), first.control.detach())
    np.testing.assert_array_equal(inside[0], inside[-1])
    other = copy.deepcopy(policy)
    policy(first.final, 0.0)
    other.forget()
    calls = [other(start, 0.0).detach() for _ in range(2)]
    policy.forget()
    policy(first.final, 0.0)  # which the copy must not see
    np.testing.assert_array_equal(other(start, 0.0).detach(), calls[1])


def test_rollouts_of_another_simulation_have_memories_of_their_own():
    """Of one with half the control interval and two worlds, as a check of a trained controller has it."""
    sim = simulation("springs", actuators=(wb.actuators.Muscle("pull", "high", (0, 0, 1), 3e3),))
    finer = wb.Simulation(sim.scene, sim.solver, sim.dt / 2, 2, worlds=2)
    start = finer.state(velocity=np.array([0.5, 0.0, 0.3]))
    observers = Delayed(Centroid(acceleration=True), 2), Noisy(Centroid(), 0.1, seed=1), Delayed(Accelerometer(), 1)
    for observer in observers:
        own, other = (wb.controllers.MLP(s, observer, (8,), seed=1) for s in (finer, sim))
        expected = finer.rollout(own, 5, start).control.detach()
        for _ in range(2):
            np.testing.assert_array_equal(finer.rollout(other, 5, start).control.detach(), expected)
    late = observers[0].bind(sim)
    late(sim.state())
    with pytest.raises(ValueError, match="was called for 1 worlds, and is now called for 2.*call forget"):
        late(start)


def test_gradients_pass_through_delay_and_acceleration():
    """Of a loss of late accelerations with respect to the initial velocity, in double precision by differences."""
    sim = simulation("projective")
    observe = Delayed(Accelerometer("high"), 1).bind(sim)
    weights = torch.as_tensor(np.random.default_rng(0).normal(size=(4, 3)))

    def loss(speed):
        velocity = speed * sim.state().position ** 2
        seen = sim.rollout(None, 4, sim.state(velocity=velocity), observe=observe).observation[0]
        return (weights.to(seen) * seen).sum() * 1e-3

    speed = torch.tensor(3.0, dtype=sim.state().position.dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(speed), speed)
    h = 1e-5 if speed.dtype == torch.float64 else 0.3
    difference = (loss(speed.detach() + h) - loss(speed.detach() - h)) / (2 * h)
    assert abs(slope - difference) < (1e-6 if h == 1e-5 else 0.02) * abs(difference) + 1e-9


def test_noise_has_its_deviation_and_repeats_with_a_seed():
    sim = simulation("springs", worlds=500)
    plain, state = Centroid().bind(sim), sim.state()
    seeded = Noisy(Centroid(), (0.1,) * 3 + (0.0,) * 3, seed=4).bind(sim)
    first, second = (seeded(state) - plain(state) for _ in range(2))
    assert abs(first[:, :3].std() / 0.1 - 1.0) < 0.1 and not torch.equal(first, second)
    assert (first[:, 3:] == 0.0).all()
    seeded.forget()
    assert torch.equal(seeded(state) - plain(state), first)
    free = Noisy(Centroid(), 0.1).bind(sim)
    torch.manual_seed(0)
    draws = [free(state) for _ in range(2)]
    assert not torch.equal(*draws)
    torch.manual_seed(0)
    free.forget()
    assert torch.equal(free(state), draws[0])
    assert torch.equal(Noisy(Centroid(), 0.0).bind(sim)(state), plain(state))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda sim: Strain("leg").bind(sim), ValueError, "there is no region 'leg'; the scene has low, high"),
        (lambda sim: Delayed(Centroid(), 0), ValueError, "intervals must be at least 1 control interval, got 0"),
        (
            lambda sim: Delayed(len, 2),
            TypeError,
            "observer must be an observer of warpbots.observers, got <built-in function len>",
        ),
        (lambda sim: Noisy(Centroid(), -0.1), ValueError, "deviation must be finite and at least 0, got -0.1"),
        (lambda sim: Noisy(Centroid(), (0.1, 0.2)).bind(sim)(sim.state()), ValueError, "one number or 6, one for each"),
        (
            lambda sim: ObstacleForces().bind(sim),
            TypeError,
            "give ProjectiveDynamics a contact_interval, the length of the step to measure, such as 0.001 s",
        ),
        (lambda sim: ObstacleForces(("wall",)).bind(simulation("springs")), ValueError, "has no obstacles"),
        (
            lambda sim: ObstacleForces(("wall",)).bind(simulation("springs", obstacles=(floor(0.2),))),
            KeyError,
            "there is no obstacle 'wall'; the scene has",
        ),
    ],
)
def test_what_cannot_be_observed(make, error, message):
    with pytest.raises(error, match=message):
        make(simulation("projective"))


def test_a_flat_region_has_no_rotation():
    sheet = {"layer": Box((0.0, 0.0, 0.0), (1.0, 1.0, 0.251))}
    sim = wb.Simulation(wb.Scene([SoftBody("block", BLOCK.shape, Material(E), sheet)]), wb.MassSpring(1 / 16), 1e-3, 4)
    with pytest.raises(ValueError, match="Gyroscope: region 'layer' has no extent in one direction"):
        Gyroscope("layer").bind(sim)


@pytest.mark.parametrize(
    "observer",
    [
        Strain("low"),
        Gyroscope("low"),
        Accelerometer("low"),
        Centroid(),
        Clusters(2, acceleration=True),
        wb.observers.Grid(),
    ],
    ids=lambda observer: type(observer).__name__,
)
def test_parameters_without_effect_on_an_observation_are_refused_only_if_unknown(observer):
    sim = simulation("springs")
    observe, state = observer.bind(sim), sim.state()
    with pytest.raises(ValueError, match="no parameter 'youngs_moduli'; .*; did you mean 'youngs_modulus'"):
        observe(state, youngs_moduli=1e4)
    assert torch.equal(observe(state, youngs_modulus=sim.parameter("youngs_modulus")), observe(state))
