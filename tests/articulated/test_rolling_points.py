"""Spheres, capsules, boxes and cylinders touch at points in closed form: they roll, rest and rebound as they should."""

import math

import numpy as np
import pytest
import torch
import trimesh
from test_articulated_gradients import Loss

from warpbots.contact import signed_distance
from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Contact,
    Cylinder,
    HalfSpace,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    Sphere,
    TriangleMesh,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.articulated.mesh_symmetry import subgroups, symmetries
from warpbots.solvers.articulated.point_cloud import clouds
from warpbots.solvers.articulated.symmetric_cloud import spread

R, H = 0.05, 0.08
SHAPES = {
    "sphere": Sphere((0, 0, 0), R),
    "capsule": Capsule((0, -H, 0), (0, H, 0), R),
    "cylinder": Cylinder((0, -H, 0), (0, H, 0), R),
    "box": Box((-0.07, -0.06, -0.05), (0.07, 0.06, 0.05)),
}
FLOORS = {
    "plane": Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)), name="floor", friction=0.0),
    "box": Obstacle(Box((-9, -9, -1), (9, 9, 0)), name="floor", friction=0.0),
}
DEAD = {"damping": 1e10, "restitution": 0.0}
"""A law of what comes to rest."""


def free(shape, height: float, q=(0, 0, 0, 0, 0, 0, 1), qd=(0, 0, 0, 0, 0, 0), ground="plane", **law) -> Scene:
    """A body of one shape above a floor, free to move."""
    body = RigidBody("body", shape, 800.0, position=(0, 0, height), points=40)
    joint = Joint("free", "free", None, "body", position=(0, 0, height), start=q, start_velocity=qd)
    law = {"stiffness": 1e7, "damping": 1e7} | law
    return Scene((body,), obstacles=(FLOORS[ground],), joints=(joint,), contacts=(Contact("body", "floor", **law),))


@pytest.mark.parametrize("ground", FLOORS)
def test_a_ball_without_friction_does_not_begin_to_turn(ground):
    """A cloud of 40 points leaves it with several rad/s."""
    tilted = (0, 0, 0.1, *np.array([0.3, -0.5, 0.2, 0.8]) / math.sqrt(1.02))
    sim = Simulation(free(SHAPES["sphere"], R, tilted, (0.7, 0.2, 0, 0, 0, 0), ground), Articulated(), dt=1e-3)
    seen = sim.rollout(None, 400, observe=lambda s: torch.cat([s.q[:, :3], s.qd], dim=1)).observation[0].numpy()
    assert seen[:, 2].min() < -1e-4  # it has touched the floor
    assert np.abs(seen[:, 6:]).max() < 1e-9
    assert np.allclose(seen[-1, 3:5], [0.7, 0.2], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "inertia"),
    [("sphere", 2 / 5), ("cylinder", 1 / 2), ("capsule", None)],
)
@pytest.mark.parametrize("ground", FLOORS)
def test_round_bodies_roll_down_an_incline_as_galilei_says(name, inertia, ground):
    """a = g sin t / (1 + I / (m R^2)), straight, without slip."""
    angle = 0.2
    scene = free(SHAPES[name], R - 1e-5, ground=ground, friction=0.8, viscosity=1e7)
    scene = Scene(
        scene.bodies, obstacles=scene.obstacles, joints=scene.joints, contacts=scene.contacts,
        gravity=(9.81 * math.sin(angle), 0, -9.81 * math.cos(angle)),
    )  # fmt: skip
    sim = Simulation(scene, Articulated(), dt=2e-3)
    mass, moments = float(sim.model.mass.numpy()[0, 0]), sim.model.inertia.numpy()[0, 0]
    ratio = moments[1, 1] / (mass * R**2)
    assert inertia is None or ratio == pytest.approx(inertia, rel=1e-3)
    start = sim.rollout(None, 50).final
    end = sim.rollout(None, 200, start).final
    velocity, before = end.qd[0].numpy(), start.qd[0].numpy()
    assert (velocity[0] - before[0]) / 0.4 == pytest.approx(9.81 * math.sin(angle) / (1 + ratio), rel=2e-3)
    spin = sim.sense(end).angular_velocity[0, 0].numpy()
    assert spin[1] == pytest.approx(velocity[0] / R, rel=2e-3)
    assert np.abs([velocity[1], spin[0], spin[2]]).max() < 1e-6


def test_elastic_bounces_leave_a_spinning_ball_its_spin():
    scene = free(SHAPES["sphere"], R, (0, 0, 0.05, 0, 0, 0, 1), (0.3, 0, 0, 5.0, -3.0, 8.0), damping=0.0)
    sim = Simulation(scene, Articulated("sdirk2"), dt=5e-4)
    spin = sim.rollout(None, 1000, observe=lambda s: s.qd[:, 3:]).observation[0]
    assert float((spin - spin[0]).abs().max()) < 1e-9


def test_a_standing_cylinder_sinks_in_by_its_weight_over_four_points():
    up = (0, 0, 0, math.sqrt(0.5), 0, 0, math.sqrt(0.5))
    sim = Simulation(free(SHAPES["cylinder"], H, up, **DEAD), Articulated(), dt=4e-3)
    end = sim.rollout(None, 300).final
    weight = 9.81 * float(sim.model.mass.numpy()[0, 0])
    area = 2 * math.pi * R * (R + 2 * H) / 64
    assert float(end.q[0, 2]) == pytest.approx(-weight / (4 * 1e7 * area), rel=1e-3)
    assert float(sim.sense(end).contact_normal.sum()) == pytest.approx(weight, rel=1e-2)


@pytest.mark.parametrize("name", ["capsule", "cylinder"])
def test_what_lies_on_its_side_sinks_in_over_two_points(name):
    sim = Simulation(free(SHAPES[name], R, **DEAD), Articulated(), dt=4e-3)
    end = sim.rollout(None, 300).final
    weight = 9.81 * float(sim.model.mass.numpy()[0, 0])
    area = float(sim.model.contact_area.numpy()[0, 0])
    assert float(end.q[0, 2]) == pytest.approx(-weight / (2 * 1e7 * area), rel=3e-3)


def test_capsules_cross_at_their_closest_points():
    """No end is near: the force acts along the common normal of the axes, where they are closest."""
    beam = Obstacle(Capsule((-1, 0.2, 0), (1, 0.2, 0), 0.03), name="floor", friction=0.0)
    body = RigidBody("body", Capsule((0.1, -0.3, 0), (0.1, 0.9, 0), 0.04), position=(0, 0, 0.069), points=40)
    joint = Joint("free", "free", None, "body", position=(0, 0, 0.069))
    scene = Scene((body,), obstacles=(beam,), joints=(joint,), contacts=(Contact("body", "floor", 1e7),))
    sim = Simulation(scene, Articulated(), dt=1e-3)
    found = sim.dynamics(sim.state())
    readings = sim.sense(sim.state())
    area = float(sim.model.contact_area.numpy()[0, 0])
    force = readings.contact_force[0].sum(dim=0).numpy()
    assert np.allclose(
        force, [0, 0, 1e7 * area * 1e-3], rtol=1e-2, atol=0.02
    )  # the axis is bent by 1 / 8000 of its length
    assert np.abs(found.force[0].numpy()).max() > 0.0


@pytest.mark.parametrize("solid", ["sphere", "capsule"])
def test_a_box_is_touched_by_the_points_of_what_is_rounder(solid):
    """It rests on a ball or a log that none of its own points meets, and feels so at the nearest of them."""
    log = {"sphere": Sphere((0, 0, -0.3), 0.3), "capsule": Capsule((0, -0.5, -0.3), (0, 0.5, -0.3), 0.3)}[solid]
    body = RigidBody("body", Box((-0.2, -0.2, 0), (0.2, 0.2, 0.1)), points=8)
    joint = Joint("rail", "prismatic", None, "body")
    law = Contact("body", "floor", 1e7, **DEAD)
    scene = Scene((body,), obstacles=(Obstacle(log, name="floor", friction=0.0),), joints=(joint,), contacts=(law,))
    sim = Simulation(scene, Articulated(), dt=4e-3)
    end = sim.rollout(None, 300).final
    weight = 9.81 * 16.0
    assert float(end.q[0, 0]) < -1e-5
    own = sim.model.robot.contact_points[0]
    assert len(own) == 8
    assert float(sim.sense(end).contact_normal[0, own].sum()) == pytest.approx(weight, rel=1e-3)


def test_points_that_a_user_gives_stay_a_cloud():
    body = RigidBody("body", SHAPES["sphere"], points=Cloud([[0, 0, -R], [R, 0, 0]], 1e-4))
    law = Contact("body", "floor", 1e7)
    model = Articulated().build(Scene((body,), obstacles=(floor(),), contacts=(law,)))
    assert model.contact_point.numpy()[0].tolist() == [[0, 0, -R], [R, 0, 0]]
    assert not model.contact_radius.numpy().any()


def placed(mesh: trimesh.Trimesh, down=(0, 0, -1)) -> trimesh.Trimesh:
    """A mesh that is turned with a direction downwards."""
    return mesh.apply_transform(trimesh.geometry.align_vectors(down, (0, 0, -1)))


BALL = trimesh.creation.icosphere(2, R)
MESHES = {
    "ball": BALL.copy(),
    "ball on a corner": placed(BALL.copy(), BALL.vertices[0]),
    "ball on a face": placed(
        trimesh.creation.icosahedron().apply_scale(R), trimesh.creation.icosahedron().triangles_center[0]
    ),
    "brick": trimesh.creation.box((0.12, 0.1, 0.08)),
    "can": trimesh.creation.cylinder(R, 2 * H, sections=24),
    "nut": trimesh.creation.annulus(0.5 * R, R, 0.6 * R, sections=6),
    "nut on a side": placed(trimesh.creation.annulus(0.5 * R, R, 0.6 * R, sections=6), (0.75**0.5, 0.5, 0.0)),
    "seven sides": trimesh.creation.cylinder(R, 0.6 * R, sections=7),
    "pyramid": trimesh.creation.cone(R, 1.5 * R, sections=5),
}
ORDERS = {"ball": (120, 120), "brick": (8, 8), "can": (96, 16), "nut": (24, 24), "seven": (28, 28), "pyramid": (10, 10)}
"""Of a mesh, how many symmetries it has, and how many a cloud of 64 points keeps at least."""


def mesh_of(name: str, turn: bool) -> TriangleMesh:
    """A mesh, along the axes of its body or not."""
    mesh = MESHES[name].copy()
    if turn:
        mesh.apply_transform(trimesh.transformations.rotation_matrix(1.1, (0.3, 1.0, -0.4), (0.2, 0.1, 0.0)))
    return TriangleMesh(mesh.vertices, mesh.faces)


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("turn", [False, True], ids=["straight", "turned"])
def test_a_cloud_is_as_symmetric_as_its_mesh(name, turn):
    shape = mesh_of(name, turn)
    (cloud,) = clouds(RigidBody("body", shape, points=64))
    mesh = trimesh.Trimesh(shape.vertices, shape.faces, process=False)
    group, center = symmetries(mesh)
    order, kept = ORDERS[name.split()[0]]
    assert len(group) == order
    assert 45 <= len(cloud.positions) <= 64
    assert np.abs(signed_distance(shape, cloud.positions)).max() < 1e-6
    images = center + (cloud.positions - center) @ np.swapaxes(group, 1, 2)
    off = np.linalg.norm(images[:, :, None] - cloud.positions, axis=3).min(axis=2).max(axis=1)
    assert np.count_nonzero(off < 1e-9) >= kept


def test_symmetries_are_a_group_whatever_the_faces_are():
    """A hexagonal plate that is cut into triangles without symmetry has the symmetries of a hexagon."""
    corners = R * np.array([[np.cos(a), np.sin(a), z] for z in (-0.3, 0.3) for a in np.arange(6) * np.pi / 3])
    fan = np.array([[0, k, k + 1] for k in range(1, 5)])
    sides = [[[k, (k + 1) % 6, k + 6], [(k + 1) % 6, (k + 1) % 6 + 6, k + 6]] for k in range(6)]
    mesh = trimesh.Trimesh(corners, [*fan[:, ::-1], *(fan + 6), *np.reshape(sides, (-1, 3))], process=False)
    group, _ = symmetries(mesh)
    assert len(group) == 24
    products = (group[:, None] @ group).reshape(-1, 1, 3, 3)
    assert np.abs(products - group).max(axis=(2, 3)).min(axis=1).max() < 1e-12
    orders = [len(g) for g in subgroups(group)]
    assert orders == sorted(orders, reverse=True)
    assert all(24 % n == 0 for n in orders)
    for own in subgroups(group):
        products = (own[:, None] @ own).reshape(-1, 1, 3, 3)
        assert np.abs(products - own).max(axis=(2, 3)).min(axis=1).max() < 1e-9


def test_a_mesh_without_symmetry_keeps_its_points():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 0.7, 0], [0.1, 0.2, 0.4]])
    mesh = trimesh.Trimesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    assert len(symmetries(mesh)[0]) == 1
    assert (spread(mesh, 50) == trimesh.sample.sample_surface_even(mesh, 50, seed=0)[0]).all()


def test_a_mesh_with_needles_has_the_identity_at_least():
    """Distances in single precision are less accurate on needles than symmetries are tested."""
    side = 0.05 + 1e-5 * np.arange(100)
    curve = np.column_stack([side, 0.01 * (side - side[0]) * (side - side[-1]), 0.0 * side])
    base = np.concatenate([curve, [[0.08, 0.06, 0.0], [0.0, 0.05, 0.0], [0.0, 0.0, 0.0]]])
    n = len(base)
    faces = [[i, (i + 1) % n, n] for i in range(n)] + [[n - 1, i + 1, i] for i in range(n - 2)]
    mesh = trimesh.Trimesh(np.append(base, [[0.03, 0.02, 0.1]], axis=0), faces, process=False)
    mesh.apply_transform(trimesh.transformations.euler_matrix(0.3, 0.5, 0.7))
    np.testing.assert_array_equal(symmetries(mesh)[0], np.eye(3)[None])


@pytest.mark.parametrize("name", MESHES)
def test_a_symmetric_mesh_falls_without_turning(name):
    shape = mesh_of(name, False)
    low = float(shape.vertices[:, 2].min())
    sim = Simulation(free(shape, 0.01 - low, damping=1e6), Articulated(), dt=1e-3)
    seen = sim.rollout(None, 120, observe=lambda s: torch.cat([s.q[:, 2:3], s.qd[:, 3:]], dim=1)).observation[0]
    assert float(seen[:, 0].min()) < -0.01
    assert float(seen[:, 1:].abs().max()) < 1e-6


PAIRS = [(a, b) for i, a in enumerate(SHAPES) for b in list(SHAPES)[i:]]


def meeting(a: str, b: str, rng: np.random.Generator, depth: float = 2e-3) -> Simulation:
    """Two bodies that collide in free space, turned at random, one against the other by about `depth`."""
    turns = [q / np.linalg.norm(q) for q in rng.normal(size=(2, 4))]
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    bodies = [RigidBody(n, SHAPES[s], 500.0, points=40) for n, s in (("one", a), ("two", b))]
    joints = [
        Joint("one", "free", None, "one", start=(0, 0, 0, *turns[0])),
        Joint("two", "free", None, "two", start=(0, 0, 0, *turns[1])),
    ]
    laws = (Contact("one", "two", 1e7, 1e7, 0.4, 1e5), Contact("two", "one", 5e6, 1e6, 0.2, 1e6))
    sim = Simulation(Scene(bodies, joints=joints, contacts=laws, gravity=(0, 0, 0)), Articulated("sdirk2"), dt=1e-4)
    q = sim.state().q.clone()
    near, far = 0.0, 0.5
    for _ in range(40):
        middle = (near + far) / 2
        q[0, 7:10] = torch.as_tensor(middle * way)
        touching = bool((sim.sense(sim.state(q=q)).contact_normal > 0).any())
        near, far = (middle, far) if touching else (near, middle)
    q[0, 7:10] = torch.as_tensor((near - depth) * way)
    sim.start = q
    return sim


@pytest.mark.filterwarnings("ignore:RigidBody .* starts .* deep in")
@pytest.mark.verification
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_gradients_through_every_pair_of_closed_forms(a, b, rng):
    """Against central differences, by poses, velocities, points, radii and areas."""
    sim = meeting(a, b, rng, 1e-2 if a == b == "box" else 2e-3)  # boxes touch by edges first
    names = ("contact_point", "contact_radius", "contact_area", "body_position")
    inputs = {n: sim.parameter(n) for n in names if n in sim.parameters()}
    inputs |= {"q": sim.start, "qd": torch.as_tensor(rng.normal(size=(1, 12)))}
    loss = Loss(sim, rng, 3, inputs)
    gradient = loss.gradient()
    for name, value in inputs.items():
        d = torch.as_tensor(rng.normal(size=value.shape)) * (1e-3 if name == "contact_area" else 1.0)
        slope = float((gradient[name] * d).sum())
        errors = [abs(slope - loss.difference(name, d, h)) for h in (1e-6, 1e-7)]
        assert slope != 0.0, name
        assert min(errors) < 1e-5 * abs(slope) + 1e-7 * float((gradient[name] * d).abs().sum()), (name, slope, errors)


@pytest.mark.parametrize("half", [0.05, 0.02, 0.01, 0.002])
def test_plates_have_points_on_both_faces(half):
    """Also where a point and its image on the other face are closer than points are apart; and they stay symmetric."""
    points = spread(trimesh.creation.cylinder(0.2, 2.0 * half, sections=24), 64)
    assert 32 < len(points) <= 64
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-7)
    assert min((points[:, 2] > 0.9 * half).sum(), (points[:, 2] < -0.9 * half).sum()) >= 8
