"""Impacts that take no time, against closed forms, conservation laws and differences."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from test_articulated_gradients import Loss, assert_gradients

from warpbots.gradients import Checkpoints
from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Contact,
    Cylinder,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    SceneError,
    Sphere,
    Torque,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

G, R = 9.81, 0.1
TURNED = tuple(np.array([0.3, 0.2, 0.1, 0.9]) / np.linalg.norm([0.3, 0.2, 0.1, 0.9]))


def law(points: str, solid: str, e: float, mu: float = 0.0, impact: str = "instant") -> Contact:
    damping, viscosity = 0.0 if e == 1.0 else 1e10, 1e7 if mu else 0.0
    return Contact(points, solid, 1e8, damping, mu, viscosity, restitution=e, impact=impact)


def falling(shape, e: float, mu: float = 0.0, height: float = 0.5, turn=(0, 0, 0, 1), velocity=None, points=8) -> Scene:
    body = RigidBody("block", shape, 500.0, points=points)
    joint = Joint("block", "free", None, "block", start=(0, 0, height, *turn), start_velocity=velocity)
    ground = floor(friction=mu)
    return Scene((body,), obstacles=(ground,), joints=(joint,), contacts=(law("block", "floor", e, mu),))


def ball(e: float, mu: float = 0.0, **start) -> Scene:
    return falling(Sphere((0, 0, 0), R), e, mu, **start)


BRICK = Box((-0.1, -0.15, -0.05), (0.1, 0.15, 0.05))
MASS = 500.0 * 0.2 * 0.3 * 0.1
MOMENTS = MASS / 12.0 * np.array([0.3**2 + 0.1**2, 0.2**2 + 0.1**2, 0.2**2 + 0.3**2])


def seen(scene: Scene, steps: int, dt: float = 1e-3, **solver) -> np.ndarray:
    """Coordinates and velocities after each step."""
    sim = Simulation(scene, Articulated(**solver), dt=dt)
    return sim.rollout(None, steps, observe=lambda s: torch.cat([s.q, s.qd], dim=1)).observation[0].numpy()


def after_two_bounces(z: float, v: float, e: float, g: float, t: float) -> float:
    """Height of a ball at the time t, after two bounces and before a third."""
    speed = math.sqrt(v * v + 2.0 * g * (z - R))
    t -= (speed + v) / g + 2.0 * e * speed / g
    speed *= e * e
    assert 0.0 < t < 2.0 * speed / g
    return R + speed * t - 0.5 * g * t * t


def test_a_ball_that_loses_nothing_follows_parabolas():
    z = seen(ball(1.0, height=5.0), 1000, dt=1e-2)[:, 2]
    fall = math.sqrt(2.0 * (5.0 - R) / G)
    t = (1e-2 * np.arange(1, 1001) + fall) % (2.0 * fall) - fall
    assert np.abs(z - (5.0 - 0.5 * G * t * t)).max() < 1e-11
    assert z.min() < 0.11  # it did bounce


@pytest.mark.parametrize("dt", [4e-3, 7e-3])
def test_two_bounces_and_their_derivatives_are_those_of_the_closed_form(dt):
    """With respect to height, speed, restitution, gravity and mass: the time of each impact depends on them."""
    steps, at = round(1.2 / dt), (0.8, -0.5, 0.8, 9.81)
    sim = Simulation(ball(at[2]), Articulated(), dt=dt)
    z, v, e, g, m = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (*at, 2.0))
    unit = torch.eye(7, dtype=torch.float64)
    parameters = {
        "contact_restitution": e.reshape(1, 1), "mass": m.reshape(1, 1), "gravity": (-g * unit[2, :3])[None],
    }  # fmt: skip
    state = sim.state(q=(unit[6] + z * unit[2])[None], qd=(v * unit[2, :6])[None])
    height = sim.rollout(None, steps, state, **parameters).final.q[0, 2]
    t, h = steps * dt, 1e-6
    assert float(height.detach()) == pytest.approx(after_two_bounces(*at, t), abs=1e-11)
    found = [float(d) for d in torch.autograd.grad(height, [z, v, e, g, m])]
    for k, slope in enumerate(found[:4]):
        ahead, behind = ([a + s * h * (i == k) for i, a in enumerate(at)] for s in (1.0, -1.0))
        exact = (after_two_bounces(*ahead, t) - after_two_bounces(*behind, t)) / (2.0 * h)
        assert slope == pytest.approx(exact, rel=1e-6, abs=1e-8), k
    assert abs(found[4]) < 1e-7  # whatever its mass


@pytest.mark.parametrize("e", [0.5, 0.0])
def test_a_ball_bounces_lower_and_comes_to_rest_where_its_weight_is_carried(e):
    scene = ball(e)
    z = seen(scene, 2500)[:, 2]
    peaks = [z[i] - R for i in range(1, 2499) if z[i - 1] < z[i] >= z[i + 1]]
    if e:
        assert peaks[:3] == pytest.approx([0.4 * e ** (2 * k) for k in (1, 2, 3)], abs=1e-5)
    weight = 500.0 * 4.0 / 3.0 * math.pi * R**3 * G
    assert z[-1] == pytest.approx(R - weight / (1e8 * 4.0 * math.pi * R**2 / 64.0), abs=1e-9)
    assert np.ptp(z[-100:]) < 1e-9


@pytest.mark.parametrize(("mu", "slides"), [(0.1, True), (0.5, False)])
def test_friction_gives_a_ball_spin_within_its_cone(mu, slides):
    """A slide takes mu (1 + e) v; a stick leaves 5 / 7 of the speed, as the ball then rolls."""
    v = math.sqrt(2.0 * G * 0.4)
    end = seen(ball(0.8, mu, velocity=(2.0, 0, 0, 0, 0, 0)), 400)[-1]
    speed = 2.0 - mu * 1.8 * v if slides else 2.0 * 5.0 / 7.0
    assert (mu * 1.8 * v < 2.0 * 2.0 / 7.0) == slides
    assert end[7] == pytest.approx(speed, rel=1e-9)
    assert end[11] == pytest.approx((2.0 - speed) / (0.4 * R), rel=1e-9)


@pytest.mark.parametrize("points", [8, "cloud"])
@pytest.mark.parametrize("mu", [0.0, 0.4])
def test_a_brick_that_lands_flat_rebounds_flat(points, mu):
    """All points of its face at once, more of them than an impact has contacts."""
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 7)], [-1.0, 1.0]), axis=-1).reshape(-1, 3)
    cloud = Cloud(grid * np.array(BRICK.upper), 1e-4) if points == "cloud" else points
    end = seen(falling(BRICK, 0.8, mu, 0.3, points=cloud), 300)[-1]
    t = 0.3 - math.sqrt(2.0 * 0.25 / G)
    rebound = 0.8 * math.sqrt(2.0 * G * 0.25)
    assert end[9] == pytest.approx(rebound - G * t, abs=1e-9)
    assert end[3:7] == pytest.approx([0, 0, 0, 1], abs=1e-10)
    assert end[[7, 8, 10, 11, 12]] == pytest.approx(np.zeros(5), abs=1e-9)


def test_the_gradient_of_four_corners_that_share_an_impulse_is_that_of_one(rng):
    """The height of a brick after it has landed flat twice, by its initial height and restitution, is that of a ball."""
    sim = Simulation(falling(BRICK, 0.8), Articulated(), dt=5e-3)
    q = sim.state().q.requires_grad_()
    e = sim.parameter("contact_restitution").requires_grad_()
    height = sim.rollout(None, 180, sim.state(q=q), contact_restitution=e).final.q[0, 2]
    by_q, by_e = torch.autograd.grad(height, [q, e])
    at, t, h = (0.5 - 0.05 + R, 0.0, 0.8, G), 0.9, 1e-6
    assert float(height.detach()) == pytest.approx(after_two_bounces(*at, t) - R + 0.05, abs=1e-10)
    for slope, k in ((by_q[0, 2], 0), (by_e[0, 0], 2)):
        ahead, behind = ([a + s * h * (i == k) for i, a in enumerate(at)] for s in (1.0, -1.0))
        exact = (after_two_bounces(*ahead, t) - after_two_bounces(*behind, t)) / (2.0 * h)
        assert float(slope) == pytest.approx(exact, rel=1e-6)
    assert by_q[0, :2].abs().max() < 1e-9


def test_a_brick_that_tumbles_on_its_corners_keeps_its_energy():
    start = {"turn": TURNED, "velocity": (1.0, 0.5, -1.0, 1.0, 2.0, 0.5)}
    path = seen(falling(BRICK, 1.0, **start), 1500)
    v = path[:, 7:]
    energy = MASS * G * path[:, 2] + 0.5 * MASS * (v[:, :3] ** 2).sum(axis=1) + 0.5 * (v[:, 3:] ** 2 @ MOMENTS)
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-4
    assert (np.diff(v[:, 2]) > 0.1).sum() >= 3  # impacts
    assert v[:, :2] == pytest.approx(np.tile([1.0, 0.5], (1500, 1)), abs=1e-9)  # no friction


def test_a_pendulum_rebounds_from_a_wall():
    """At its lowest point, with e times its speed, and thus rises to e^2 of its height."""
    rod = RigidBody("rod", Capsule((0, 0, 0), (0, 0, -0.6), 0.02), 900.0, points=8)
    wall = Box((-0.2, -0.5, -1.0), (-0.02, 0.5, 0.0))
    hinge = Joint("hinge", "revolute", None, "rod", axis=(0, 1, 0), start=-0.8)
    scene = Scene(
        (rod,),
        obstacles=(Obstacle(wall, name="wall", friction=0.0),),
        joints=(hinge,),
        contacts=(law("rod", "wall", 0.7),),
    )
    angle = seen(scene, 1200, dt=1e-3)[:, 0]
    assert angle.max() < 1e-9
    rise = [angle[i] for i in range(1, 1199) if angle[i - 1] > angle[i] <= angle[i + 1]]
    assert 1.0 - math.cos(rise[0]) == pytest.approx(0.49 * (1.0 - math.cos(0.8)), rel=1e-4)


def row(*places: float) -> Scene:
    """Balls in a row without weight, the first of which comes at 1 m/s."""
    shape = Sphere((0, 0, 0), R)
    bodies = [RigidBody(f"b{k}", shape, 500.0, points=8 * (k > 0), friction=0.0) for k in range(len(places))]
    joints = [
        Joint(b.name, "free", None, b.name, start=(x, 0, 0, 0, 0, 0, 1), start_velocity=(float(x < 0), 0, 0, 0, 0, 0))
        for b, x in zip(bodies, places, strict=True)
    ]
    laws = [law(f"b{k + 1}", f"b{k}", 1.0) for k in range(len(places) - 1)]
    return Scene(bodies, joints=joints, contacts=laws, gravity=(0, 0, 0))


def test_a_row_of_balls_hands_its_speed_on_within_a_step():
    """Three impacts follow each other within 3 us of a step of 1 ms."""
    speeds = seen(row(-0.1, 0.2, 0.400001, 0.600002), 300)[-1, 28::6]
    assert speeds == pytest.approx([0, 0, 0, 1], abs=1e-9)


def test_what_comes_after_the_last_impact_of_a_step_yields():
    """The third impact of the same row is left to the compliant law, which a step of 1 us resolves and 1 ms does not."""
    path = row(-0.1, 0.2, 0.400001, 0.600002)
    allowed, fewer = seen(path, 300)[-1, 28::6], seen(path, 300, impacts=2)[-1, 28::6]
    assert fewer[:2] == pytest.approx(allowed[:2], abs=1e-9)
    assert fewer[2:].sum() == pytest.approx(1.0, abs=1e-6)  # the momentum is right, and no more
    assert abs(fewer[3] - 1.0) > 1e-6


def arm() -> Scene:
    bodies = (
        RigidBody("upper", Capsule((0, 0, 0), (0.4, 0, 0), 0.04), 500.0),
        RigidBody("fore", Capsule((0.4, 0, 0), (0.7, 0, 0), 0.03), 500.0, points=20),
    )
    joints = (
        Joint("shoulder", "revolute", None, "upper", axis=(0, 1, 0), damping=0.01, start=-0.5, start_velocity=0.5),
        Joint("elbow", "ball", "upper", "fore", position=(0.4, 0, 0), damping=0.01),
    )
    laws = (law("fore", "floor", 0.6, 0.2),)
    return Scene(bodies, (Torque("m", "shoulder", 2.0),), (floor(-0.15),), joints=joints, contacts=laws)


def two_balls(mu: float) -> Scene:
    bodies = [RigidBody(n, Sphere((0, 0, 0), R + 0.02 * k), 500.0 * (k + 1), points=8) for k, n in enumerate("ab")]
    starts = [((0, 0, 0.5, 0, 0, 0, 1), (1, 0, 0, 3, 2, 1)), ((0.5, 0.05, 0.53, 0, 0, 0, 1), (-1, 0, 0, -2, 0, 1))]
    joints = [
        Joint(b.name, "free", None, b.name, start=q, start_velocity=v) for b, (q, v) in zip(bodies, starts, strict=True)
    ]
    laws = (law("a", "b", 0.8, mu), law("b", "floor", 0.8, mu))
    return Scene(bodies, obstacles=(floor(),), joints=joints, contacts=laws)


THROWN = {"turn": TURNED, "velocity": (1.0, 0.5, -1.0, 1.0, 2.0, 0.5)}
CASES = {
    "ball": (ball(0.8, 0.3, velocity=(0.3, 0, -1, 0.5, 1, 2)), 70, 1e-2),
    "sliding brick": (falling(BRICK, 0.7, 0.1, **THROWN), 40, 1e-2),
    "sticking brick": (falling(BRICK, 0.7, 2.0, **THROWN), 40, 1e-2),
    "can": (falling(Cylinder((0, 0, -0.1), (0, 0, 0.1), 0.08), 0.7, 0.1, **THROWN), 40, 1e-2),
    "arm": (arm(), 30, 1e-2),
    "two balls": (two_balls(0.1), 30, 1e-2),
}


def loss_of(scene: Scene, steps: int, dt: float, rng, worlds: int = 1, **simulation) -> Loss:
    solver = Articulated(tolerance=1e-11, **simulation.pop("solver", {}))
    sim = Simulation(scene, solver, dt=dt, worlds=worlds, **simulation)
    loss = Loss(sim, rng, steps)
    state = sim.state()
    loss.inputs |= {"q": state.q, "qd": state.qd}
    for name in ("contact_stiffness", "contact_damping", "contact_viscosity", "contact_area", "contact_scale"):
        del loss.inputs[name]  # of a contact that yields
    return loss


@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_through_impacts(case, integrator, rng):
    """Those to everything, where impacts slide, stick, turn bodies and follow one another."""
    loss = loss_of(*CASES[case], rng, solver={"integrator": integrator})
    own = loss.inputs
    if case not in ("sliding brick", "can", "arm"):
        del own["contact_friction"]  # a stick depends on it no more
    if case in ("ball", "two balls"):
        del own["body_rotation"]  # of round bodies
    assert_gradients(loss, rng)


def test_worlds_that_hit_at_different_times_are_each_as_if_alone(rng):
    scene, worlds = CASES["sliding brick"][0], 3
    heights, found = torch.linspace(0.0, 0.05, worlds, dtype=torch.float64), []
    for rows in (slice(None), *(slice(k, k + 1) for k in range(worlds))):
        sim = Simulation(scene, Articulated(), dt=1e-2, worlds=len(heights[rows]))
        q = sim.state().q.clone()
        q[:, 2] += heights[rows]
        q.requires_grad_()
        final = sim.rollout(None, 40, sim.state(q=q)).final
        found.append((final.qd.detach(), *torch.autograd.grad((final.q**2).sum() + (final.qd**2).sum(), q)))
    for together, *alone in zip(*found, strict=True):
        assert (together == torch.cat(alone)).all()
    assert len({float(v) for v in found[0][0][:, 2]}) == worlds


def test_every_schedule_gives_the_same_gradient_through_impacts():
    found = []
    for schedule in (Checkpoints.all(), Checkpoints.every(7)):
        loss = loss_of(*CASES["sliding brick"], np.random.default_rng(3), checkpoints=schedule)
        found.append(loss.gradient())
    for name in found[0]:
        assert (found[0][name] == found[1][name]).all(), name


def test_a_scene_with_instant_impacts_needs_no_warning_of_its_steps():
    scene = ball(1.0)
    solver = Articulated()
    assert solver.caution(solver.build(scene), 0.05) is None
    yielding = dataclasses.replace(scene, contacts=(law("block", "floor", 1.0, impact="compliant"),))
    assert "not resolved" in solver.caution(solver.build(yielding), 0.05)


def test_boxes_have_no_instant_impacts_with_boxes():
    bodies = [RigidBody(n, BRICK, 500.0, points=8) for n in "ab"]
    joints = [Joint(n, "free", None, n, start=(0, 0, z, 0, 0, 0, 1)) for n, z in (("a", 0.1), ("b", 0.5))]
    scene = Scene(bodies, joints=joints, contacts=(law("a", "b", 0.5), law("b", "a", 0.5)))
    with pytest.raises(SceneError, match=r"'a on b': it is between boxes, .* use impact 'compliant'"):
        Articulated().build(scene)


def test_an_instant_impact_needs_a_coefficient_of_restitution():
    with pytest.raises(SceneError, match=r"'a on b': an instant impact needs a coefficient of restitution.*\[0, 1\]"):
        Contact("a", "b", 1e8, impact="instant")
    with pytest.raises(SceneError, match="'a on b': impact must be one of 'compliant', 'instant', got 'hard'"):
        Contact("a", "b", 1e8, impact="hard")
    with pytest.raises(ValueError, match=r"Articulated: impacts must be in \[1, 100\], got 0"):
        Articulated(impacts=0)
