"""Boxes whose edges cross touch there, between the points of both."""

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from test_articulated_gradients import Loss

from warpbots.scene import Box, Contact, Cylinder, HalfSpace, Joint, Obstacle, Posed, RigidBody, Scene, Sphere
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

pytestmark = pytest.mark.filterwarnings("ignore:.* may fall through each other face on face")  # they are on edges

LENGTH, R = 0.2, 0.02
BAR = Box((-LENGTH, -R, -R), (LENGTH, R, R))
RIDGE = R * math.sqrt(2)
"""Height of an edge over the axis of a bar that is turned by 45 degrees about it [m]."""
K = 1e7
CAN = Cylinder((0, 2, 0), (0, 2.2, 0), 0.1)


PARAMETERS = (
    "contact_area", "contact_stiffness", "contact_damping", "contact_friction", "contact_viscosity", "contact_scale",
    "body_position", "body_rotation", "joint_position", "joint_rotation", "mass", "center_of_mass", "inertia", "gravity",
)  # fmt: skip


def turned(yaw: float) -> Rotation:
    """A bar on its edge, along x and turned by an angle in degrees about z."""
    return Rotation.from_euler("z", yaw, degrees=True) * Rotation.from_euler("x", 45, degrees=True)


def bars(
    gap: float, yaw: float = 90.0, off=(0.0, 0.0), velocity=(0.0, 0.0, -0.5), dt: float = 2e-4, **law
) -> Simulation:
    """A bar above another one, both on their edges and free in space."""
    start = (*off, 2 * RIDGE + gap, *turned(yaw).as_quat())
    bodies = (RigidBody("upper", BAR, 500.0, points=40), RigidBody("lower", BAR, 500.0, points=0, friction=0.0))
    joints = (
        Joint("upper", "free", None, "upper", start=start, start_velocity=(*velocity, 0, 0, 0)),
        Joint("lower", "free", None, "lower", start=(0, 0, 0, *turned(0.0).as_quat())),
    )
    laws = (Contact("upper", "lower", K, **{"damping": 0.0} | law),)
    return Simulation(
        Scene(bodies, joints=joints, contacts=laws, gravity=(0, 0, 0)), Articulated(tolerance=1e-12), dt=dt
    )


def balls(dt: float) -> Simulation:
    """Two balls as heavy as the bars, which meet as fast, at a point as stiff."""
    sim = bars(0.002)
    mass, area = float(sim.model.mass.numpy()[0, 0]), float(sim.model.contact_area.numpy()[0, 0])
    radius = 0.05
    own = 4 * math.pi * radius**2 / 64
    density = mass / (4 / 3 * math.pi * radius**3)
    ball = Sphere((0, 0, 0), radius)
    bodies = [RigidBody(n, ball, density, points=p, friction=0.0) for n, p in (("upper", 40), ("lower", 0))]
    joints = (
        Joint("upper", "free", None, "upper", start=(0, 0, 0.102, 0, 0, 0, 1), start_velocity=(0, 0, -0.5, 0, 0, 0)),
        Joint("lower", "free", None, "lower"),
    )
    laws = (Contact("upper", "lower", K * area / own, 0.0),)
    return Simulation(Scene(bodies, joints=joints, contacts=laws, gravity=(0, 0, 0)), Articulated(), dt=dt)


def gained(sim: Simulation, steps: int) -> tuple[float, float, float]:
    """Relative change of energy, and changes of momentum and of angular momentum."""
    before, after = sim.sense(sim.state()), sim.sense(sim.rollout(None, steps).final)
    energy = float(after.kinetic_energy.sum() / before.kinetic_energy.sum()) - 1.0
    changes = (getattr(after, n).sum(1) - getattr(before, n).sum(1) for n in ("momentum", "angular_momentum"))
    return energy, *(float(change.abs().max()) for change in changes)


@pytest.mark.parametrize("yaw", [90.0, 60.0, 25.0])
def test_bars_that_cross_exchange_their_velocities_without_turning(yaw):
    sim = bars(0.002, yaw)
    seen = sim.rollout(None, 200, observe=lambda s: torch.cat([s.q, s.qd], dim=1)).observation[0].numpy()
    depth = 2 * RIDGE - (seen[:, 2] - seen[:, 9]).min()
    mass, area = float(sim.model.mass.numpy()[0, 0]), float(sim.model.contact_area.numpy()[0, 0])
    assert depth == pytest.approx(0.5 * math.sqrt(mass / 2 / (K * area)), rel=0.02)
    assert seen[-1, 14:] == pytest.approx([*8 * [0.0], -0.5, 0, 0, 0], abs=1e-4)


@pytest.mark.parametrize("off", [(0.0, 0.0), (0.03, 0.0), (0.05, -0.07)])
def test_crossed_bars_conserve_what_two_balls_do(off):
    """Momenta to rounding and the tolerance of Newton's method, energy as well as a pair of balls at the same steps."""
    of_balls = gained(balls(2e-4), 200)
    energy, momentum, angular = gained(bars(0.002, 60.0, off), 200)
    assert abs(energy) < 3 * abs(of_balls[0]) < 1e-3
    assert momentum < 1e-13
    assert angular < 1e-10


@pytest.mark.parametrize("off", [(0.03, 0.0), (0.05, -0.07), (-0.11, 0.02)])
@pytest.mark.parametrize("yaw", [90.0, 60.0])
def test_crossed_bars_rebound_as_in_mujoco(yaw, off):
    """Its contact of boxes is of the same stiffness: a spring on the mass that the contact feels."""
    sim = bars(0.002, yaw, off)
    end = sim.sense(sim.rollout(None, 200).final)
    size = " ".join(map(str, (LENGTH, R, R)))
    geom = (
        f'<freejoint/><geom type="box" size="{size}" density="500" condim="1" solref="-1e5 0" solimp="0.999 0.999 1"/>'
    )
    poses = [(f"{off[0]} {off[1]} {2 * RIDGE + 0.002}", turned(yaw)), ("0 0 0", turned(0.0))]
    quats = [" ".join(map(str, np.roll(rotation.as_quat(), 1))) for _, rotation in poses]
    own = "".join(f'<body pos="{p}" quat="{q}">{geom}</body>' for (p, _), q in zip(poses, quats, strict=True))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="1e-4" gravity="0 0 0"/><worldbody>{own}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[2] = -0.5
    mujoco.mj_step(model, data, 400)
    spins = np.array([data.body(k + 1).xmat.reshape(3, 3) @ data.qvel[6 * k + 3 : 6 * k + 6] for k in range(2)])
    assert end.velocity[0].numpy() == pytest.approx(data.qvel.reshape(2, 6)[:, :3], abs=2e-3)
    assert end.angular_velocity[0].numpy() == pytest.approx(spins, abs=0.05)
    assert np.abs(spins).max() > 1.0


def test_a_bar_rests_on_the_edge_of_an_obstacle():
    """Dead, on a rail: it sinks in by its weight over the stiffness of one point, and feels it at its nearest one."""
    body = RigidBody(
        "bar", BAR, 500.0, position=(0.03, 0, 2 * RIDGE), rotation=turned(90.0).as_matrix().tolist(), points=40
    )
    edge = Obstacle(Posed(BAR, (0, 0, 0), turned(0.0).as_matrix().tolist()), name="edge", friction=0.0)
    law = Contact("bar", "edge", K, damping=1e10, restitution=0.0)
    rail = Joint("rail", "prismatic", None, "bar", axis=(0, 0, 1))
    sim = Simulation(Scene((body,), obstacles=(edge,), joints=(rail,), contacts=(law,)), Articulated(), dt=4e-3)
    end = sim.rollout(None, 200).final
    weight = 9.81 * float(sim.model.mass.numpy()[0, 0])
    area = float(sim.model.contact_area.numpy()[0, sim.model.robot.contact_points[0][0]])
    assert float(end.q[0, 0]) == pytest.approx(-weight / (K * area), rel=1e-3)
    readings = sim.sense(end)
    felt = readings.contact_normal[0]
    assert float(felt.max()) == pytest.approx(weight, rel=1e-3)
    assert readings.contact_force[0, int(felt.argmax())].numpy() == pytest.approx([0, 0, weight], abs=1e-3 * weight)
    place = sim.model.contact_point.numpy()[0, int(felt.argmax())]
    assert abs(place[0]) < 0.04  # the bar crosses the edge in its middle


def test_worlds_are_independent():
    gaps = (-1e-3, -4e-4, 1e-3)
    sims = [bars(gap, 60.0, (0.01, -0.02), friction=0.4, viscosity=1e5) for gap in gaps]
    together = Simulation(sims[0].scene, Articulated(tolerance=1e-12), dt=2e-4, worlds=3)
    q, qd = (torch.cat([getattr(sim.state(), name) for sim in sims]) for name in ("q", "qd"))
    end = together.rollout(None, 20, together.state(q=q, qd=qd)).final
    for w, sim in enumerate(sims):
        assert torch.equal(end.q[w], sim.rollout(None, 20).final.q[0])


def test_boxes_that_meet_no_box_have_no_edges():
    """On planes, balls and cans, whose contact is the same as if there were none."""
    body = RigidBody("box", BAR, points=40)
    others = {"floor": HalfSpace((0, 0, -1), (0, 0, 1)), "ball": Sphere((1, 0, 0), 0.1), "can": CAN}
    scene = Scene(
        (body,),
        obstacles=[Obstacle(shape, name=name) for name, shape in others.items()],
        joints=(Joint("free", "free", None, "box"),),
        contacts=[Contact("box", name, K) for name in others],
    )
    found = Articulated().build(scene)
    assert set(found.contact_topology.pair_crossed.numpy()) == {-1}
    assert set(found.contact_topology.pair_beside.numpy()) == {-1}
    assert found.solids.rounding.numpy().max() > 0.0


def state_of(sim: Simulation, gap: float, rng: np.random.Generator, size: float = 1e-2):
    """Poses near those of the start at a distance, and random velocities."""
    q = sim.state().q.clone()
    q[0, 2] = 2 * RIDGE + gap
    q[0, 7:10] += torch.as_tensor(1e-3 * rng.normal(size=3) * [1, 1, 0])
    return q, torch.as_tensor(rng.normal(size=(1, 12)) * size)


@pytest.mark.verification
@pytest.mark.parametrize(
    ("yaw", "gap", "off", "alone"), [(60.0, -5e-4, (0.01, -0.02), True), (1.2, -3e-3, (0, 0), False)]
)
def test_gradients_through_crossed_edges(yaw, gap, off, alone, rng):
    """By all parameters, against central differences: of edges alone, and of edges that share their contact with points."""
    sim = bars(gap, yaw, off, friction=0.4, viscosity=1e5, damping=1e6)
    q, qd = state_of(sim, gap, rng)
    force = float(sim.sense(sim.state(q=q, qd=torch.zeros_like(qd))).contact_normal.sum())
    full = K * float(sim.model.contact_area.numpy()[0, 0]) * -gap
    assert (abs(force / full - 1.0) < 1e-3) == alone
    inputs = {n: sim.parameter(n) for n in PARAMETERS if n in sim.parameters()} | {"q": q, "qd": qd}
    loss = Loss(sim, rng, 3, inputs)
    gradient = loss.gradient()
    for name, value in inputs.items():
        d = torch.as_tensor(rng.normal(size=value.shape)) * value.abs().max().clamp(min=1e-3)
        slope = float((gradient[name] * d).sum())
        differences = [loss.difference(name, d, h) for h in (1e-4, 1e-5, 1e-6)]
        assert slope != 0.0 or name == "contact_friction", name  # which sticks in one case
        assert min(abs(slope - of) for of in differences) < 1e-6 * abs(slope) + 1e-9, (name, slope, differences)
