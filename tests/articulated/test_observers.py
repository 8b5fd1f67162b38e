"""What controllers see of rigid bodies is what geometry and weight say it is, and has gradients."""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.observers import (
    Centroid,
    Clusters,
    ContactForces,
    EndEffector,
    Joints,
    JointTorques,
    Poses,
    Tactile,
)

G = 9.81
BOX = wb.shapes.Box((-0.1, -0.1, 0.0), (0.1, 0.1, 0.2))


def arm(worlds: int = 1) -> wb.Simulation:
    """A double pendulum of links of 0.4 m and 0.3 m that turn about y, driven at both joints."""
    bodies = (
        wb.RigidBody("upper", wb.shapes.Box((-0.02, -0.02, -0.4), (0.02, 0.02, 0.0))),
        wb.RigidBody("lower", wb.shapes.Box((-0.02, -0.02, -0.3), (0.02, 0.02, 0.0)), position=(0.0, 0.0, -0.4)),
    )
    joints = (
        wb.Joint("shoulder", "revolute", None, "upper", axis=(0.0, 1.0, 0.0), start=0.5),
        wb.Joint("elbow", "revolute", "upper", "lower", position=(0.0, 0.0, -0.4), axis=(0.0, 1.0, 0.0), start=-0.8),
    )
    motors = (
        wb.actuators.Torque("motor", "shoulder", 2.0),
        wb.actuators.Servo("servo", "elbow", 5.0, 0.1, target=0.2, reach=0.3),
    )
    return wb.Simulation(wb.Scene(bodies, motors, joints=joints), wb.Articulated(), dt=0.01, worlds=worlds)


@pytest.fixture(scope="module")
def standing():
    """Two boxes that have come to rest on a floor, one of them without points of its own on the other."""
    bodies = (
        wb.RigidBody("still", wb.shapes.Sphere((1.0, 0.0, 1.0), 0.1)),
        wb.RigidBody("left", BOX, points=8, position=(-0.5, 0.0, 0.0)),
        wb.RigidBody("right", BOX, 2000.0, points=26, position=(0.5, 0.0, 0.0)),
    )
    joints = (wb.Joint("held", "fixed", None, "still"),)
    laws = [wb.Contact(name, "floor", 1e6, 1e7, 0.8, 1e5) for name in ("left", "right")]
    sim = wb.Simulation(
        wb.Scene(bodies, obstacles=(wb.floor(0.0),), joints=joints, contacts=laws), wb.Articulated(), dt=0.008
    )
    return sim, sim.rollout(None, 125).final


def tip(q):
    """Where the end of the lower link is, from its angles, shape (worlds, 2)."""
    a, b = q[:, 0], q[:, 0] + q[:, 1]
    x, z = -0.4 * torch.sin(a) - 0.3 * torch.sin(b), -0.4 * torch.cos(a) - 0.3 * torch.cos(b)
    return torch.stack([x, torch.zeros_like(x), z], dim=1)


def test_joints_are_coordinates_and_velocities():
    sim = arm(worlds=2)
    state = sim.state(qd=torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    seen = Joints().bind(sim)(state)
    np.testing.assert_allclose(seen.numpy(), [[0.5, -0.8, 1.0, 2.0], [0.5, -0.8, 3.0, 4.0]])


def test_the_end_effector_is_where_the_angles_put_it():
    sim = arm(worlds=2)
    state = sim.state(q=torch.tensor([[0.3, 0.9], [-1.2, 0.4]]))
    seen = EndEffector("lower", (0.0, 0.0, -0.3)).bind(sim)(state)
    torch.testing.assert_close(seen, tip(state.q), rtol=0.0, atol=1e-12)


def test_gradients_of_an_end_effector_are_those_of_its_formula():
    sim = arm()
    q, expected = (torch.tensor([[0.3, 0.9]], dtype=torch.float64, requires_grad=True) for _ in range(2))
    weight = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    (EndEffector("lower", (0.0, 0.0, -0.3)).bind(sim)(sim.state(q=q)) @ weight).sum().backward()
    (tip(expected) @ weight).sum().backward()
    torch.testing.assert_close(q.grad, expected.grad, rtol=0.0, atol=1e-12)


def test_observations_follow_what_replaces_parameters():
    sim = arm()
    at = sim.parameter("joint_position")
    at[0, 0] += at.new_tensor([0.1, 0.2, 0.3])
    for observer in (EndEffector("lower"), Poses(("upper",))):
        observe = observer.bind(sim)
        moved = observe(sim.state(), joint_position=at) - observe(sim.state())
        np.testing.assert_allclose(moved[0, :3], [0.1, 0.2, 0.3], atol=1e-12)
    moved = sim.center_of_mass(sim.state(), joint_position=at) - sim.center_of_mass(sim.state())
    np.testing.assert_allclose(moved, [[0.1, 0.2, 0.3]], atol=1e-12)


def test_a_network_sees_the_parameters_that_its_rollout_replaces():
    sim = arm()
    at, observe = sim.parameter("joint_position"), EndEffector("lower")
    at[0, 0] += at.new_tensor([0.1, 0.2, 0.3])
    at.requires_grad_()
    policy, bound, seen = wb.controllers.MLP(sim, observe, hidden=()), observe.bind(sim), []

    def told(state, time):
        seen.append(bound(state, joint_position=at))
        return policy.layers(seen[-1])

    own, other = (sim.rollout(c, 3, joint_position=at) for c in (policy, told))
    torch.testing.assert_close(own.control, other.control, rtol=0.0, atol=1e-12)
    gradients = [torch.autograd.grad(run.control.sum(), at)[0] for run in (own, other)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)
    assert gradients[0].abs().max() > 1e-3


def test_poses_are_origins_and_rotations_by_rows():
    sim = arm()
    state = sim.state(q=torch.tensor([[0.3, 0.9]]))
    seen = Poses().bind(sim)(state)[0].reshape(2, 12)
    c, s = np.cos(1.2), np.sin(1.2)
    np.testing.assert_allclose(seen[1, :3], [-0.4 * np.sin(0.3), 0.0, -0.4 * np.cos(0.3)], atol=1e-12)
    np.testing.assert_allclose(seen[1, 3:], [c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c], atol=1e-12)
    torch.testing.assert_close(Poses(("lower",)).bind(sim)(state)[0], seen[1])


def test_torques_are_those_of_motors_under_their_control():
    sim = arm()
    state = sim.state(qd=torch.tensor([[0.0, 0.7]]))
    observe = JointTorques().bind(sim)
    held = 5.0 * (0.2 + 0.8) - 0.1 * 0.7
    np.testing.assert_allclose(observe(state), [[0.0, held]])
    np.testing.assert_allclose(observe(state, torch.tensor([0.5, -1.0])), [[1.0, held - 5.0 * 0.3]])


def test_contact_forces_carry_the_weight(standing):
    sim, state = standing
    force = ContactForces().bind(sim)(state)[0].reshape(3, 3)
    np.testing.assert_allclose(force, [[0, 0, 0], [0, 0, 8.0 * G], [0, 0, 16.0 * G]], rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(ContactForces(("right",)).bind(sim)(state)[0], force[2])


def test_a_skin_feels_the_weight_at_its_own_points(standing):
    sim, state = standing
    for name, count, weight in (("left", 8, 8.0 * G), ("right", 26, 16.0 * G)):
        felt = Tactile(name).bind(sim)(state)[0].reshape(count, 4)
        body = sim.model.robot.body(name)
        points = sim.model.contact_point.numpy()[0][[range(0), range(8), range(8, 34)][body]]
        below = points[:, 2] == 0.0
        assert felt[:, 0].sum().item() == pytest.approx(weight, rel=1e-3)
        assert (felt[below, 0] > 0.0).all()
        assert (felt[~below] == 0.0).all()


def test_shear_is_felt_in_the_axes_of_the_body():
    """A box turned by 90 degrees about z slides along x: the floor holds it back along its own y."""
    body = wb.RigidBody("box", BOX, points=8)
    turn = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    joint = wb.Joint("free", "free", None, "box", start=(0.0, 0.0, -1e-4, *turn))
    law = wb.Contact("box", "floor", 1e6, 0.0, 0.5, 1e6)
    sim = wb.Simulation(
        wb.Scene((body,), obstacles=(wb.floor(0.0),), joints=(joint,), contacts=(law,)), wb.Articulated(), dt=0.001
    )
    state = sim.state(qd=torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))
    felt = Tactile("box").bind(sim)(state)[0].reshape(8, 4).sum(dim=0)
    np.testing.assert_allclose(felt[1:], [0.0, 0.5 * felt[0].item(), 0.0], atol=1e-9)
    np.testing.assert_allclose(ContactForces().bind(sim)(state)[0, :2], [-0.5 * felt[0].item(), 0.0], atol=1e-9)


def test_what_touch_feels_has_gradients(standing):
    sim, state = standing
    height = state.q.detach().clone().requires_grad_()
    observe = Tactile("left").bind(sim)
    observe(sim.state(q=height, qd=state.qd.detach())).sum().backward()
    z = sim.model.robot.coordinates["left"].start + 2
    area = float(sim.model.contact_area.numpy()[0, :8].sum()) / 2.0  # the lower half
    assert height.grad[0, z].item() == pytest.approx(-1e6 * area, rel=1e-3)


def test_centre_is_weighted_by_mass(standing):
    sim, state = standing
    mass = sim.model.mass.numpy()[0]
    center = sim.sense(state).center[0].numpy()
    np.testing.assert_allclose(sim.center_of_mass(state)[0], mass @ center / mass.sum(), atol=1e-12)
    heavy = torch.tensor([0.0, 0.0, 3.0])
    np.testing.assert_allclose(sim.center_of_mass(state, mass=heavy)[0], center[2], atol=1e-12)


@pytest.mark.parametrize("observer", [None, Joints(), EndEffector("lower", (0.0, 0.0, -0.3)), Poses(), JointTorques()])
def test_a_network_is_trained_through_what_it_sees(observer):
    sim = arm(worlds=2)
    policy = wb.controllers.MLP(sim, observer, hidden=(8,), clock=0.5)
    sim.rollout(policy, 5).final.q.square().sum().backward()
    for name, p in policy.named_parameters():
        assert torch.isfinite(p.grad).all()
        assert p.grad.abs().max() > 0.0, name


def test_wrong_gradients_of_a_network_would_be_seen():
    """Its gradient is that of finite differences."""
    sim = arm()
    policy = wb.controllers.MLP(sim, EndEffector("lower", (0.0, 0.0, -0.3)), hidden=(6,))

    def loss() -> torch.Tensor:
        return sim.rollout(policy, 6).final.q.square().sum()

    loss().backward()
    weight, h = policy.layers[-2].weight, 1e-5
    for index in ((0, 1), (1, 3)):
        values = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                weight[index] += sign * h
                values.append(loss().item())
                weight[index] -= sign * h
        assert weight.grad[index].item() == pytest.approx((values[0] - values[1]) / (2.0 * h), rel=1e-4)


def test_what_cannot_be_seen_is_refused(standing):
    sim, _ = standing
    for observer in (Clusters(2), Centroid()):
        name = type(observer).__name__
        with pytest.raises(TypeError, match=rf"{name}: scene 'robot' has rigid bodies alone.*use Joints, Poses"):
            observer.bind(sim)
    with pytest.raises(KeyError, match="there is no rigid body 'nose'; the scene has still, left, right"):
        Tactile("nose").bind(sim)
    with pytest.raises(ValueError, match=r"body 'still' has no contact points; give its RigidBody points="):
        Tactile("still").bind(sim)
    with pytest.raises(ValueError, match=r"EndEffector.point must be three finite numbers"):
        EndEffector("left", (0.0, 1.0)).bind(sim)
    with pytest.raises(KeyError, match="there is no region 'leg': regions are parts of soft bodies"):
        sim.region("leg")
    with pytest.raises(KeyError, match="there is no region 'leg': regions are parts of soft bodies"):
        sim.center_of_mass(sim.state(), "leg")


def test_soft_bodies_have_no_joints():
    ball = wb.SoftBody("ball", wb.shapes.Sphere((0.0, 0.0), 0.1), wb.Material(1e4))
    sim = wb.Simulation(wb.Scene((ball,)), wb.MPM(dx=0.02), dt=0.001)
    with pytest.raises(TypeError, match="Joints: scene 'robot' has no rigid bodies; use Clusters or Centroid"):
        Joints().bind(sim)
    with pytest.raises(ValueError, match="there is no parameter 'mass'"):
        sim.center_of_mass(sim.state(), mass=torch.ones(1))
