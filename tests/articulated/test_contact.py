"""Contact: signed distances, the law, and its closed forms."""

import dataclasses
import math
from collections import OrderedDict

import numpy as np
import pytest
import torch
import trimesh
import warp as wp
from scipy.optimize import brentq

from warpbots.contact import signed_distance
from warpbots.contact.distance import surface_distance
from warpbots.contact.penalty import damping_bounds, penalty_force, penalty_tangents
from warpbots.contact.solid import Solids, solid_curvature
from warpbots.contact.solid_forms import solids_of
from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Contact,
    Cylinder,
    HalfSpace,
    Inertia,
    Joint,
    Posed,
    RigidBody,
    Scene,
    Sphere,
    TriangleMesh,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.articulated import symmetric_cloud
from warpbots.solvers.articulated.point_cloud import clouds

TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
BALL = trimesh.creation.icosphere(3, 0.3)
SOLIDS = {
    "plane": HalfSpace((0.1, 0.0, 0.2), (0.3, -0.5, 0.8)),
    "sphere": Sphere((0.1, 0.2, -0.1), 0.5),
    "box": Posed(Box((-0.3, -0.2, -0.5), (0.4, 0.3, 0.1)), (0.1, 0.0, 0.0), TURN),
    "capsule": Capsule((-0.3, 0.1, 0.0), (0.2, 0.3, 0.4), 0.3),
    "cylinder": Cylinder((-0.3, 0.1, 0.0), (0.2, 0.3, 0.4), 0.3),
    "mesh": TriangleMesh(BALL.vertices, BALL.faces),
}


@wp.kernel(enable_backward=False)
def measure_kernel(
    solids: Solids, s: int, to: wp.mat33d, origin: wp.vec3d, x: wp.array[wp.vec3d],
    d_out: wp.array[wp.float64], n_out: wp.array[wp.vec3d], C_out: wp.array[wp.mat33d],
):  # fmt: skip
    """Distance, slope and curvature in the frame of the body."""
    i = wp.tid()
    d, n, C = solid_curvature(solids, 0, s, to, origin, x[i])
    d_out[i] = d
    n_out[i] = n
    C_out[i] = C


def measure(shape, x: np.ndarray, rounding: float = 0.0):
    solids = solids_of([(-1, shape)], 48, rounding, wp.get_device("cpu"))
    rotation, origin = solids.rotation.numpy()[0], solids.position.numpy()[0]
    out = [wp.zeros(len(x), dtype=t, device="cpu") for t in (wp.float64, wp.vec3d, wp.mat33d)]
    points = wp.array(x, dtype=wp.vec3d, device="cpu")
    wp.launch(measure_kernel, len(x), [solids, 0, wp.mat33d(rotation), wp.vec3d(origin), points], out, device="cpu")
    return [a.numpy() for a in out]


@pytest.mark.parametrize("name", SOLIDS)
def test_distance_slope_and_curvature_of_solids(name, rng):
    shape = SOLIDS[name]
    x = rng.uniform(-0.55, 0.55, (400, 3))
    exact = signed_distance(shape, x)
    x = x[exact < (0.02 if name == "mesh" else 1.0)]
    d, n, C = measure(shape, x)
    assert np.allclose(d, signed_distance(shape, x), atol=2e-3 if name == "mesh" else 1e-12)
    h = 1e-6
    steps = [[measure(shape, x + sign * h * e) for sign in (1, -1)] for e in np.eye(3)]
    slope = np.stack([(a[0] - b[0]) / (2 * h) for a, b in steps], axis=1)
    curvature = np.stack([(a[1] - b[1]) / (2 * h) for a, b in steps], axis=2)
    smooth = (
        np.linalg.norm(x - np.array(shape.bounds).mean(0), axis=1) > 0.05 if name == "mesh" else np.ones(len(x), bool)
    )
    kinks = np.abs(slope - n).max(1) > 1e-3  # a sample astride an edge, where there are two slopes
    assert kinks.sum() <= 2
    assert np.allclose(slope[~kinks], n[~kinks], atol=1e-7)
    bent = np.abs(curvature - C).max((1, 2)) > 1e-2 * (1 + np.abs(C).max((1, 2)))
    assert (bent & smooth).sum() <= 4
    assert np.allclose(np.linalg.norm(n[smooth], axis=1), 1.0, atol=0.05 if name == "mesh" else 1e-12)


@pytest.mark.parametrize("name", ["box", "cylinder"])
def test_the_slope_turns_steadily_behind_rounded_edges(name, rng):
    """Along paths less than the radius deep it turns by no more than 1 / (what is left of the radius)."""
    shape, rounding = SOLIDS[name], 0.2
    radius = rounding * {"box": 0.25, "cylinder": 0.3}[name]
    x = rng.uniform(-0.6, 0.6, (100000, 3))
    d = measure(shape, x, rounding)[0]
    x = x[(d < 0) & (d > -0.8 * radius)]
    step = 0.01 * radius * rng.normal(size=x.shape)
    turn = np.linalg.norm(measure(shape, x + step, rounding)[1] - measure(shape, x, rounding)[1], axis=1)
    assert len(x) > 3000
    assert (turn <= 1.01 * np.linalg.norm(step, axis=1) / (0.2 * radius)).all()
    sharp = np.linalg.norm(measure(shape, x + step)[1] - measure(shape, x)[1], axis=1)
    assert sharp.max() > 1.0


@wp.kernel(enable_backward=False)
def law_kernel(
    d: wp.array[wp.float64], n: wp.array[wp.vec3d], C: wp.array[wp.mat33d], u: wp.array[wp.vec3d], p: wp.vec4d,
    e: wp.float64, F_out: wp.array[wp.vec3d], y_out: wp.array[wp.mat33d], u_out: wp.array[wp.mat33d],
):  # fmt: skip
    """The law and its derivatives."""
    i = wp.tid()
    least, most = damping_bounds(p[0], e, wp.where(e < wp.float64(0.0), 0, 1))
    F_out[i] = penalty_force(d[i], n[i], u[i], p[0], p[1], least, most, p[2], p[3])
    F_d, F_n, F_u = penalty_tangents(d[i], n[i], u[i], p[0], p[1], least, most, p[2], p[3])
    y_out[i] = wp.outer(F_d, n[i]) + F_n @ C[i]
    u_out[i] = F_u


def law(d, n, C, u, p, e=None):
    types = (wp.float64, wp.vec3d, wp.mat33d, wp.vec3d)
    arrays = [wp.array(a, dtype=t, device="cpu") for a, t in zip((d, n, C, u), types, strict=True)]
    out = [wp.zeros(len(d), dtype=t, device="cpu") for t in (wp.vec3d, wp.mat33d, wp.mat33d)]
    wp.launch(law_kernel, len(d), [*arrays, wp.vec4d(*p), -1.0 if e is None else e], out, device="cpu")
    return [a.numpy() for a in out]


@pytest.mark.parametrize("e", [None, 0.8, 0.0])
@pytest.mark.parametrize("p", [(1e4, 3e3, 0.4, 30.0), (1e4, 3e4, 0.4, 3e3), (1e4, 0.0, 0.0, 0.0)])
def test_derivatives_of_the_law(p, e, rng):
    """Around points where the distance is a quadratic with a slope that is not quite a unit vector."""
    count, h, still = 60, 1e-6, np.zeros(3)
    d, u = rng.uniform(-0.02, -0.001, count), rng.normal(size=(count, 3))
    n = rng.normal(size=(count, 3))
    n *= rng.uniform(0.9, 1.1, (count, 1)) / np.linalg.norm(n, axis=1, keepdims=True)
    C = rng.normal(size=(count, 3, 3))
    C = C + C.transpose(0, 2, 1)

    def moved(dy, du):
        return law(d + n @ dy, n + C @ dy, C, u + du, p, e)[0]

    _, F_y, F_u = law(d, n, C, u, p, e)
    y = np.stack([(moved(h * e, still) - moved(-h * e, still)) / (2 * h) for e in np.eye(3)], axis=2)
    v = np.stack([(moved(still, h * e) - moved(still, -h * e)) / (2 * h) for e in np.eye(3)], axis=2)
    assert np.allclose(F_y, y, rtol=1e-6, atol=1e-4)
    assert np.allclose(F_u, v, rtol=1e-6, atol=1e-6)


def test_a_distance_without_a_slope_pushes_nowhere():
    """Friction alone, -k_t u, as in the middle of a plate; the derivatives are finite."""
    n, C, u = np.zeros((1, 3)), np.eye(3)[None], np.array([[0.7, 0.1, -2.0]])
    F, F_y, F_u = law(np.array([-0.01]), n, C, u, (1e4, 1e2, 0.4, 1.0))
    assert np.allclose(F, -u)
    assert np.allclose(F_u, -np.eye(3))
    assert np.isfinite(F_y).all()


def test_the_force_is_continuous_where_contact_begins_and_where_sticking_ends(rng):
    n, C, u = np.array([[0.0, 0.0, 1.0]]), np.zeros((1, 3, 3)), np.array([[0.7, 0.1, -2.0]])
    p = (1e4, 1e4, 0.5, 100.0)
    forces = [law(np.array([-d]), n, C, u, p)[0] for d in (1e-6, 1e-8, 1e-10)]
    sizes = [np.linalg.norm(f) for f in forces]
    assert sizes[0] < 0.1
    assert sizes[2] < 1e-3 * sizes[0]  # the damping k_d d' of Geilinger et al. would leave 2e4 here
    slide = 0.5 * 1e4 * 1e-3 / 100.0  # mu N / k_t
    around = [law(np.array([-1e-3]), n, C, np.array([[slide * s, 0, 0]]), p)[0] for s in (1 - 1e-9, 1 + 1e-9)]
    assert np.allclose(*around, rtol=1e-8)


def test_the_force_never_pulls():
    """Pulled out faster than k / c the law of the paper would hold things back."""
    n, C = np.array([[0.0, 0.0, 1.0]]), np.zeros((1, 3, 3))
    F, F_y, F_u = law(np.array([-1e-3]), n, C, np.array([[0.3, 0.0, 5.0]]), (1e4, 1e4, 0.5, 100.0))
    assert (F == 0).all() and (F_y == 0).all() and (F_u == 0).all()


def block(mass: float = 2.0, areas: float = 1e-4) -> RigidBody:
    """A block that stands on the four corners of its sole."""
    corners = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    moments = mass / 12 * np.array([0.05, 0.05, 0.08])
    return RigidBody("block", None, inertia=Inertia(mass, (0, 0, 0.02), moments), points=Cloud(corners, areas))


def on_incline(degrees: float, mu: float, viscosity: float = 1e7) -> Simulation:
    angle = math.radians(degrees)
    gravity = (9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle))
    contact = Contact("block", "floor", 1e8, 2e9, mu, viscosity)
    return Simulation(
        Scene((block(),), obstacles=(floor(),), contacts=(contact,), gravity=gravity), Articulated(), dt=2e-3
    )


@pytest.mark.parametrize(("degrees", "mu"), [(30, 0.3), (20, 0.1), (45, 0.8)])
def test_a_block_slides_as_coulomb_says(degrees, mu):
    sim, angle = on_incline(degrees, mu), math.radians(degrees)
    start = sim.rollout(None, 100).final
    end = sim.rollout(None, 100, start).final
    acceleration = float((end.qd - start.qd)[0, 0]) / 0.2
    expected = 9.81 * (math.sin(angle) - mu * math.cos(angle))
    assert abs(acceleration / expected - 1.0) < 1e-3


@pytest.mark.parametrize(("degrees", "mu"), [(30, 0.8), (5, 0.1)])
def test_a_block_below_the_cone_creeps_as_slowly_as_the_viscosity_says(degrees, mu):
    sim, angle = on_incline(degrees, mu), math.radians(degrees)
    end = sim.rollout(None, 200).final
    creep = 2.0 * 9.81 * math.sin(angle) / (1e7 * 4e-4)
    assert abs(float(end.qd[0, 0]) / creep - 1.0) < 1e-2
    assert creep < 3e-3


def test_a_block_near_its_cone_creeps_faster_because_its_upper_points_slide():
    """They carry N = m g cos t / 2 (1 - z tan t / a) for a centre z over a sole of half length a, and hold mu N."""
    angle, mu = math.radians(26.0), 0.5
    end = on_incline(26.0, mu).rollout(None, 500).final
    upper = math.cos(angle) / 2 * (1 - 0.02 * math.tan(angle) / 0.1)
    creep = 2.0 * 9.81 * (math.sin(angle) - mu * upper) / (1e7 * 2e-4)
    assert abs(float(end.qd[0, 0]) / creep - 1.0) < 1e-3
    assert creep > 1.07 * 2.0 * 9.81 * math.sin(angle) / (1e7 * 4e-4)


@pytest.mark.parametrize("share", [0.98, 1.02])
def test_a_block_sticks_up_to_the_angle_of_friction(share):
    """tan(angle) 2 % below and above mu."""
    sim = on_incline(math.degrees(math.atan(0.5 * share)), 0.5)
    end = sim.rollout(None, 500).final
    angle = math.atan(0.5 * share)
    slipped = 9.81 * (math.sin(angle) - 0.5 * math.cos(angle))
    if share < 1.0:
        assert float(end.qd[0, 0]) < 3e-3
    else:
        assert abs(float(end.qd[0, 0]) / slipped - 1.0) < 0.05


def test_a_block_at_rest_sinks_in_by_its_weight_and_pushes_with_it():
    sim = on_incline(0.0, 0.5)
    end = sim.rollout(None, 300).final
    readings = sim.sense(end)
    assert abs(float(readings.contact_normal.sum()) / (2.0 * 9.81) - 1.0) < 1e-6
    assert abs(float(readings.position[0, 0, 2]) / (-2.0 * 9.81 / (1e8 * 4e-4)) - 1.0) < 1e-6
    assert float(readings.contact_shear.abs().max()) < 1e-6


@pytest.mark.parametrize(("speed", "damping"), [(1.0, 0.3), (2.0, 0.3), (1.0, 1.0)])
def test_a_ball_rebounds_as_hunt_and_crossley_say(speed, damping):
    """ln(1 + a v) - a v = ln(1 - a e) + a e for the speeds v before and e after, a = damping / stiffness."""
    ball = RigidBody("ball", None, inertia=Inertia(1.0, (0, 0, 0), (1, 1, 1)), points=Cloud(np.zeros((1, 3)), 1e-4))
    joint = Joint("rail", "prismatic", None, "ball", start=1e-4, start_velocity=-speed)
    contact = Contact("ball", "floor", 1e8, damping * 1e8)
    scene = Scene((ball,), obstacles=(floor(friction=0.0),), joints=(joint,), contacts=(contact,), gravity=(0, 0, 0))
    duration = math.pi * math.sqrt(1.0 / 1e4)
    sim = Simulation(scene, Articulated(), dt=3 * duration, substeps=1500)
    rebound = float(sim.step(sim.state(), torch.zeros(0, dtype=torch.float64)).qd[0, 0])
    left = math.log1p(damping * speed) - damping * speed
    expected = brentq(lambda e: math.log1p(-damping * e) + damping * e - left, 1e-9, min(speed, (1 - 1e-12) / damping))
    assert abs(rebound / expected - 1.0) < 2e-3


def on_rail(restitution: float | None, k: float, m: float, damping: float, worlds: int) -> Scene:
    """A point of mass m on a rail, over a floor with stiffness k [N/m] and damping per stiffness [s/m]."""
    ball = RigidBody("ball", None, inertia=Inertia(m, (0, 0, 0), (1, 1, 1)), points=Cloud(np.zeros((1, 3)), 1e-4))
    contact = Contact("ball", "floor", 1e4 * k, 1e4 * k * damping, restitution=restitution)
    joints = (Joint("rail", "prismatic", None, "ball"),)
    return Scene((ball,), obstacles=(floor(friction=0.0),), joints=joints, contacts=(contact,), gravity=(0, 0, 0))


def bounce(
    restitution: float, k: float, m: float, damping: float, speeds: np.ndarray, step: float, lead=0.37, **options
):
    """Heights and velocities after steps of `step` / sqrt(k / m), the first `lead` of which are before the contact."""
    h = step * math.sqrt(m / k)
    scene = on_rail(restitution, k, m, damping, len(speeds))
    sim = Simulation(scene, Articulated(**options), dt=h, worlds=len(speeds))
    speeds = torch.as_tensor(speeds, dtype=torch.float64)[:, None]
    start = sim.state(q=h * speeds * torch.as_tensor(lead).reshape(-1, 1), qd=-speeds)
    steps = math.ceil(np.max(lead) + 3.0 * (1.0 + 1.0 / max(restitution, 0.3)) / step)
    seen = sim.rollout(None, steps, start, observe=lambda s: torch.cat([s.q, s.qd], 1)).observation
    return seen[:, :, 0].numpy(), seen[:, :, 1].numpy()


def rebound(v: float, s: float, e: float) -> float:
    """The speed after a bounce: R(v / s, b) = R(r / s, -b), as `warpbots.contact.penalty` has it."""

    def R(x, b):
        return x / b - math.log1p(b * x) / b**2 if x <= 1 else R(1, b) + (x * x - 1) / (2 * (1 + b))

    b = (1 - e * e) / (1 + e * e)
    return s * brentq(lambda x: R(x, -b) - R(v / s, b), 0.0, v / s)


@pytest.mark.parametrize("e", [0.95, 0.7, 0.3])
@pytest.mark.parametrize(("k", "m"), [(1e4, 1.0), (1e6, 0.01)])
def test_what_bounces_comes_off_at_its_coefficient_of_restitution(e, k, m):
    """At any speed well over that where damping is at its bound; time and depth of the contact are those of two
    springs, 2 k / (1 + e^2) on the way in and e^2 times that on the way out."""
    speeds, step = np.array([0.1, 1.0, 10.0]), 0.01
    z, v = bounce(e, k, m, 1e3, speeds, step)
    assert np.allclose(v[:, -1] / speeds, e, rtol=1e-3)
    slower = math.sqrt((1 + e * e) / 2)
    assert np.allclose(-z.min(1) / speeds / math.sqrt(m / k), slower, rtol=1e-3)
    assert np.allclose((z < 0).sum(1) * step, slower * math.pi / 2 * (1 + 1 / e), rtol=0.015)


@pytest.mark.parametrize("e", [0.8, 0.3])
def test_slow_bounces_lose_less_than_the_coefficient_of_restitution_says(e):
    s = (1 - e * e) / (1 + e * e) / 2.0
    speeds = s * np.array([0.3, 0.9, 1.1, 3.0])
    _, v = bounce(e, 1e4, 1.0, 2.0, speeds, 0.01)
    assert np.allclose(v[:, -1], [rebound(x, s, e) for x in speeds], rtol=1e-3)


@pytest.mark.parametrize(("integrator", "order", "error"), [("sdirk2", 2.0, 1e-3), ("bdf1", 1.0, 0.07)])
def test_the_error_of_a_bounce_falls_with_the_order_of_the_integrator(integrator, order, error):
    """The mean over where in its step contact begins, for steps of a tenth and a twentieth of sqrt(m / k)."""
    lead, speeds = (np.arange(32) + 0.5) / 32, np.ones(32)
    ends = [bounce(0.5, 1e4, 1.0, 1e3, speeds, h, lead, integrator=integrator)[1][:, -1] for h in (0.1, 0.05)]
    errors = [abs(v.mean() - 0.5) for v in ends]
    assert errors[0] < error
    assert np.log2(errors[0] / errors[1]) > order - 0.2


def test_a_ball_of_many_points_bounces_as_one_of_one_point():
    """A pressure that is e^2 times as great on the way out, depth by depth, gives back e^2 of the work."""
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.1), 200.0, position=(0, 0, 0.1), points=100)
    joint = Joint("rail", "prismatic", None, "ball", start=1e-4, start_velocity=-1.0)
    contact = Contact("ball", "floor", 1e7, 1e10, restitution=0.6)
    scene = Scene((ball,), obstacles=(floor(friction=0.0),), joints=(joint,), contacts=(contact,), gravity=(0, 0, 0))
    sim = Simulation(scene, Articulated(), dt=0.1, substeps=1000)
    state = sim.step(sim.state(), torch.zeros(0, dtype=torch.float64))
    assert float(state.q[0, 0]) > 1e-3
    assert abs(float(state.qd[0, 0]) - 0.6) < 1e-3


def test_what_rests_sinks_in_as_far_with_a_coefficient_of_restitution():
    corners = dataclasses.replace(on_incline(0.0, 0.5).scene.contacts[0], restitution=0.3)
    scene = dataclasses.replace(on_incline(0.0, 0.5).scene, contacts=(corners,))
    sim = Simulation(scene, Articulated(), dt=2e-3)
    end = sim.rollout(None, 300).final
    assert abs(float(sim.sense(end).position[0, 0, 2]) / (-2.0 * 9.81 / (1e8 * 4e-4)) - 1.0) < 1e-6


def test_action_is_reaction_between_moving_bodies():
    """Two bodies that collide off their centres in free space keep their momentum and angular momentum."""
    one = RigidBody("one", Sphere((0, 0, 0), 0.1), 500.0, position=(0, 0, 0.05), points=200)
    two = RigidBody("two", Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), 300.0, position=(0.19, 0.03, 0))
    joints = (
        Joint("one", "free", None, "one", position=(0, 0, 0.05), start_velocity=(1.0, 0, 0, 0, 5.0, 0)),
        Joint("two", "free", None, "two", position=(0.19, 0.03, 0), start_velocity=(0, 0, 0, 1.0, 0, 2.0)),
    )
    contact = Contact("one", "two", 1e7, 1e6, 0.4, 1e4)
    scene = Scene((one, two), joints=joints, contacts=(contact,), gravity=(0, 0, 0))
    sim = Simulation(scene, Articulated(), dt=0.1, substeps=400)
    mass, inertia = sim.model.mass.numpy()[0], sim.model.inertia.numpy()[0]

    def momenta(state):
        r = {n: t[0].numpy() for n, t in vars(sim.sense(state)).items()}
        p = [
            m * (v + np.cross(w, c - x))
            for m, v, w, c, x in zip(
                mass, r["velocity"], r["angular_velocity"], r["center"], r["position"], strict=True
            )
        ]
        L = [
            np.cross(c, q) + R @ I @ R.T @ w
            for c, q, R, I, w in zip(r["center"], p, r["rotation"], inertia, r["angular_velocity"], strict=True)
        ]
        return np.sum(p, axis=0), np.sum(L, axis=0)

    p, L = momenta(sim.state())
    state = sim.step(sim.state(), torch.zeros(0, dtype=torch.float64))
    p_end, L_end = momenta(state)
    assert float(state.qd[0, 0]) < 0.9  # they did collide
    assert np.allclose(p_end, p, atol=1e-10)
    assert np.allclose(L_end, L, atol=1e-4)


@pytest.mark.parametrize("solid", ["box", "sphere", "capsule", "cylinder", "mesh"])
def test_a_solid_rests_on_every_other(solid):
    """Four legs on a platform that rides on a spring: it carries the weight, whatever its shape."""
    mesh = trimesh.creation.box((0.4, 0.4, 0.1))
    shape = {
        "box": Box((-0.2, -0.2, -0.1), (0.2, 0.2, 0.0)),
        "sphere": Sphere((0, 0, -1.0), 1.0),
        "capsule": Capsule((-0.2, 0, -1.0), (0.2, 0, -1.0), 1.0),
        "cylinder": Cylinder((0, 0, -0.1), (0, 0, 0.0), 0.2),
        "mesh": TriangleMesh(mesh.vertices - [0, 0, 0.05], mesh.faces),
    }[solid]
    platform = RigidBody("platform", shape, 100.0, friction=0.0)
    joints = (
        Joint("lift", "prismatic", None, "platform", stiffness=2e4, damping=5e3),
        Joint("rail", "prismatic", None, "block", start=0.001),
    )
    contact = Contact("block", "platform", 1e8, 2e9)
    sim = Simulation(Scene((platform, block()), joints=joints, contacts=(contact,)), Articulated(), dt=5e-3)
    end = sim.rollout(None, 500).final
    weight = float(sim.sense(end).contact_force[0, :, 2].sum())
    assert abs(weight / (2.0 * 9.81) - 1.0) < 1e-3
    lift = sim.model.robot.coordinates["lift"].start
    total = 9.81 * (2.0 + float(sim.model.mass.numpy()[0, 0]))
    assert abs(float(end.q[0, lift]) / (-total / 2e4) - 1.0) < 1e-3


def test_clouds_cover_surfaces_evenly():
    for shape in (*list(SOLIDS.values())[1:],):
        (cloud,) = clouds(RigidBody("b", shape, points=200))
        assert 150 < len(cloud.positions) <= 201
        assert np.abs(signed_distance(shape, cloud.positions)).max() < 5e-3
        symmetric_cloud._known.clear()
        (again,) = clouds(RigidBody("b", shape, points=200))
        assert (cloud.positions == again.positions).all()
    (box,) = clouds(RigidBody("b", Box((0, 0, 0), (1, 2, 3)), points=100))
    assert np.isclose(box.areas.sum(), 22.0)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)])
    assert (np.linalg.norm(box.positions[:, None] - corners, axis=2).min(0) == 0.0).all()


def test_a_surface_is_spread_once(monkeypatch):
    """Each number of points of each surface; a cloud that is changed changes no other one."""
    spread, made = symmetric_cloud._spread, []
    monkeypatch.setattr(symmetric_cloud, "_spread", lambda mesh, count: made.append(count) or spread(mesh, count))
    monkeypatch.setattr(symmetric_cloud, "_known", OrderedDict())
    monkeypatch.setattr(symmetric_cloud, "_KEPT", 2)
    first = symmetric_cloud.spread(BALL, 40)
    expected = first.copy()
    first += 1.0
    assert (symmetric_cloud.spread(BALL.copy(), 40) == expected).all()
    assert made == [40]
    symmetric_cloud.spread(BALL, 50)
    symmetric_cloud.spread(BALL.copy().apply_scale(2.0), 50)
    assert made == [40, 50, 50]
    symmetric_cloud.spread(BALL, 40)  # the oldest one has made room
    assert made == [40, 50, 50, 40]


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (0.1, 2.0, 0.7)])
def test_distance_without_a_sign_has_the_bits_of_that_with_one(scale):
    rng = np.random.default_rng(0)
    mesh = TriangleMesh(BALL.vertices * scale + [0.3, 0.0, -5.0], BALL.faces)
    around, inside = rng.normal(size=(500, 3)) - [0, 0, 5], 0.5 * (mesh.vertices + mesh.vertices.mean(axis=0))
    x = np.concatenate([mesh.vertices, mesh.vertices[mesh.faces].mean(axis=1), around, inside])
    signed = signed_distance(mesh, x)
    assert signed.min() < -0.005 and signed.max() > 0.1
    assert (surface_distance(mesh.vertices, mesh.faces, x) == np.abs(signed)).all()
