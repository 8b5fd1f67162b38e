"""Robots of files, as they come, in projective dynamics."""

import numpy as np
import pytest
import torch
from loose_bodies import G, last

import warpbots as wb
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

GRIPPER = """<mujoco><worldbody>
  <body name="palm" pos="0 0 0.1">
    <joint name="lift" type="slide" axis="0 0 1" range="-0.1 0.1"/>
    <geom name="palm" type="box" size="0.08 0.03 0.01" mass="0.5" friction="{mu}"/>
    <geom name="knob" type="sphere" size="0.01" pos="0 0 0.012" friction="0.1"/>
    <body name="left" pos="-0.0283 0 -0.06"><joint name="l" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.008 0.015 0.055" mass="0.05" friction="{mu}"/></body>
    <body name="right" pos="0.0283 0 -0.06"><joint name="r" type="slide" axis="-1 0 0"/>
      <geom type="box" size="0.008 0.015 0.055" mass="0.05" friction="{mu}"/></body>
  </body>
  <body name="cube" pos="0 0 0.04"><freejoint/>
    <geom type="box" size="0.02 0.02 0.03" mass="0.1" friction="{mu}"/></body>
</worldbody><actuator>
  <position joint="lift" kp="2000" kv="100" ctrlrange="-0.1 0.1"/>
  <motor joint="l" ctrlrange="-5 5"/><motor joint="r" ctrlrange="-5 5"/>
</actuator></mujoco>"""
"""Two fingers on slides around a cube, without a floor; fingers overlap with the palm that carries them."""


@pytest.fixture
def gripper(tmp_path):
    """A simulation of the gripper from its file."""

    def load(mu: float, worlds: int = 1, tolerance: float | None = None) -> Simulation:
        path = tmp_path / "gripper.xml"
        path.write_text(GRIPPER.format(mu=mu))
        scene = wb.robots.load(path)
        assert scene.contacts
        assert {b.name: b.friction for b in scene.rigid}["cube"] == mu
        with pytest.warns(
            UserWarning, match="Contact laws select which rigid bodies touch one another and obstacles, and give"
        ):
            return Simulation(scene, ProjectiveDynamics(0.02, tolerance=tolerance), 5e-3, substeps=1, worlds=worlds)

    return load


def test_a_gripper_of_a_file_holds_what_coulomb_allows(gripper):
    """0.8 and 0.95 of 2 mu N are held; 1.3 and 2 of it fall with g (1 - 2 mu N / W)."""
    mu, load, weight = 0.6, np.array([0.8, 0.95, 1.3, 2.0]), 0.1 * G
    sim = gripper(mu, len(load))
    squeeze = torch.as_tensor(weight / load / (2.0 * mu) / 5.0)[:, None].expand(-1, 2)
    control = torch.cat([torch.zeros(len(load), 1), squeeze], dim=1)
    state, speeds = sim.state(), []
    for _ in range(30):
        state = sim.step(state, control)
        speeds.append(sim.sense(state).velocity[:, :, 2].numpy())
    cube, finger = (speeds[-1][:, sim.model.robot.body(n)] for n in ("cube", "left"))
    slips = load > 1.0
    acceleration = (cube - speeds[9][:, sim.model.robot.body("cube")]) / (20 * 5e-3)
    np.testing.assert_allclose(acceleration[slips], -G * (1.0 - 1.0 / load[slips]), rtol=1e-3)
    np.testing.assert_allclose(cube[~slips], finger[~slips], atol=1e-4)


@pytest.mark.verification
def test_the_gradient_of_a_lift_is_that_of_differences(gripper):
    """Height of the cube by the commands of all motors and by masses, in a firm grip that slips a little."""
    sim = gripper(0.6, tolerance=1e-13)
    control = torch.tensor([[0.3, 0.15, 0.17]])
    mass = sim.parameter("mass")

    def height(control: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        state = sim.state()
        for _ in range(4):
            state = sim.step(state, control, mass=mass)
        return (state.q[0] * torch.linspace(1.0, 2.0, state.q.shape[1])).sum()

    leaves = control.clone().requires_grad_(), mass.clone().requires_grad_()
    height(*leaves).backward()
    for k, leaf in enumerate(leaves):
        value = leaf.detach()
        way = torch.randn(value.shape, generator=torch.Generator().manual_seed(k)) * value
        slope, slopes = float((leaf.grad * way).sum()), []
        for size in (1e-3, 1e-4):  # below, another set of contacts that share a load moves the end by 1e-9
            ends = []
            for s in (1.0, -1.0):
                inputs = [v.detach() + (s * size * way if n == k else 0.0) for n, v in enumerate(leaves)]
                with torch.no_grad():
                    ends.append(float(height(*inputs)))
            slopes.append((ends[0] - ends[1]) / (2.0 * size))
        assert min(abs(slope - s) for s in slopes) < 2e-4 * abs(slope), (slope, slopes)


def test_only_rigid_bodies_with_a_law_touch():
    """Two balls that fly at each other pass without a law between them, and collide with one."""
    ball = wb.shapes.Sphere((0.0, 0.0, 0.0), 0.02)
    bodies = [
        wb.RigidBody(n, ball, position=(x, 0, 0.1), points=p, friction=0.0)
        for n, x, p in (("a", -0.03, 1), ("b", 0.03, 0))
    ]
    joints = [wb.Joint(n, "free", None, n, start_velocity=(v, 0, 0, 0, 0, 0)) for n, v in (("a", 1.0), ("b", -1.0))]
    speeds = []
    for law in (wb.Contact("a", "floor", 1e6), wb.Contact("a", "b", 1e6)):
        ground = [wb.floor(friction=0.0)] if law.solid == "floor" else []
        scene = wb.Scene(bodies, obstacles=ground, joints=joints, contacts=[law], gravity=(0, 0, 0))
        with pytest.warns(UserWarning, match="ProjectiveDynamics: Contact laws"):
            sim = Simulation(scene, ProjectiveDynamics(0.02), 5e-3, substeps=1)
        speeds.append(float(sim.sense(last(sim, 5)).velocity[0, 0, 0]))
    assert speeds[0] == pytest.approx(1.0, abs=1e-6)
    assert speeds[1] < 0.2


@pytest.mark.verification(float32=True)
def test_what_is_fixed_to_a_neighbour_is_a_neighbour():
    """A leg overlaps with a motor that is fixed to the hip which carries both, as in files of quadrupeds."""
    box = wb.shapes.Box((-0.03, -0.02, -0.02), (0.03, 0.02, 0.02))
    leg = wb.shapes.Box((-0.015, -0.015, -0.2), (0.015, 0.015, 0.02))
    places = {"hip": (0.0, 0.0, 0.5), "motor": (0.0, 0.03, 0.5), "leg": (0.0, 0.06, 0.5), "foot": (0.0, 0.06, 0.31)}
    shapes = {"hip": box, "motor": box, "leg": leg, "foot": wb.shapes.Sphere((0.0, 0.0, 0.0), 0.02)}
    bodies = [wb.RigidBody(n, shapes[n], 500.0, position=x) for n, x in places.items()]
    joints = [
        wb.Joint("bolts", "fixed", "hip", "motor", places["motor"]),
        wb.Joint("thigh", "revolute", "hip", "leg", places["leg"], axis=(0, 1, 0), start_velocity=3.0),
        wb.Joint("ankle", "fixed", "leg", "foot", places["foot"]),
    ]
    scene = wb.Scene(bodies, joints=joints)
    ends = []
    for solver in (ProjectiveDynamics(0.03), wb.Articulated("bdf1")):
        sim = Simulation(scene, solver, 5e-3, substeps=1)
        ends.append(last(sim, 10))
    assert (ends[0].q - ends[1].q).abs().max() < 1e-6
    assert (ends[0].qd - ends[1].qd).abs().max() < 1e-5
    loose = wb.Scene(bodies, joints=[joints[0], joints[2]])
    with pytest.raises(wb.SceneError, match="RigidBody 'motor' and RigidBody 'leg'.*connect them by a Joint"):
        ProjectiveDynamics(0.03).build(loose)
