"""Gradients to everything against central differences in double precision, with and without contact."""

import dataclasses

import numpy as np
import pytest
import torch
import trimesh
from mechanisms import random_tree

from warpbots.gradients import Checkpoints
from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Contact,
    Cylinder,
    Joint,
    RigidBody,
    Scene,
    Servo,
    Sphere,
    Torque,
    TriangleMesh,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated

ICOSPHERE = trimesh.creation.icosphere(3, 0.1)
SOLIDS = {
    "box": Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)),
    "sphere": Sphere((0, 0, 0), 0.1),
    "capsule": Capsule((-0.1, 0, 0), (0.1, 0, 0), 0.07),
    "cylinder": Cylinder((0, 0, -0.1), (0, 0, 0.1), 0.09),
    "mesh": TriangleMesh(ICOSPHERE.vertices, ICOSPHERE.faces),
}


def scuffle(solid: str, mu: float = 0.4) -> Scene:
    """A solid that slides over a floor while an arm with a ball joint, driven by three motors, pushes into it."""
    low, up = {"sphere": (0.098, 0.295), "mesh": (0.098, 0.295), "capsule": (0.069, 0.247)}.get(solid, (0.098, 0.309))
    bodies = (
        RigidBody("stone", SOLIDS[solid], 500.0, position=(0, 0, low), points=60, surface="wood"),
        RigidBody("arm", Capsule((0, 0, 0), (0.3, 0, 0), 0.05), position=(-0.35, 0.02, up), points=80),
        RigidBody("tip", Sphere((0, 0, 0), 0.04), position=(-0.04, 0.02, up - 0.01), points=40),
        RigidBody("flap", SOLIDS["box"], 100.0, position=(0, 1, 1)),
    )
    joints = (
        Joint("elbow", "revolute", None, "arm", position=(-0.35, 0.02, up), axis=(0.1, 1, 0.2), damping=0.01,
              armature=0.01, start=0.21, lower=-0.2, upper=0.2, stiffness=0.3, neutral=0.1),
        Joint("wrist", "ball", "arm", "tip", position=(-0.05, 0.02, up), damping=0.01, armature=0.01, stiffness=0.3),
        Joint("flap", "revolute", None, "flap", position=(0, 1, 1.2), axis=(1, 0, 0), start=-0.3, lower=-0.2, upper=0.5),
        Joint("stone", "free", None, "stone", stiffness=0.1, damping=0.01, armature=0.01),
    )  # fmt: skip
    laws = (
        Contact("wood", "floor", 5e5, 5e5, mu, 2e4), Contact("arm", "wood", 2e6, 2e5, 0.3, 2e4),
        Contact("stone", "tip", 1e6, 1e5, 0.3, 1e4), Contact("tip", "stone", 1e6, 1e5, 0.3, 1e3),
    )  # fmt: skip
    motors = (Torque("t", "elbow", 0.5), Servo("s", "elbow", 2.0, 0.1, 0.1, 0.5), Torque("b", "wrist", 0.1, axis=1))
    return Scene(bodies, motors, (floor(),), joints=joints, contacts=laws)


def start_of(sim: Simulation, rng: np.random.Generator, steps: int) -> dict[str, torch.Tensor]:
    """Everything that a rollout can be differentiated by, nothing of it at its edge."""
    inputs = {name: sim.parameter(name) for name in sim.parameters()}
    for name, value in inputs.items():
        if name in ("joint_stiffness", "joint_damping", "armature") or name.startswith(("limit_", "motor_")):
            inputs[name] = value + 0.01
    state = sim.state()
    velocity = torch.as_tensor(rng.normal(size=state.qd.shape))
    if "stone" in sim.model.robot.velocities:
        slide = torch.tensor([-1.0, 0.3, -0.1, 0.5, 0.2, 1.0], dtype=torch.float64)
        velocity[:, sim.model.robot.velocities["stone"]] = slide
        velocity[:, sim.model.robot.velocities["elbow"]] = 1.0
    control = torch.as_tensor(rng.uniform(-0.8, 0.8, (sim.worlds, steps, sim.channels)))
    return inputs | {"q": state.q, "qd": velocity, "control": control}


class Loss:
    """A function of all inputs of a rollout, or of those that are given, with random weights of its end."""

    def __init__(self, sim: Simulation, rng: np.random.Generator, steps: int, inputs: dict | None = None):
        self.sim, self.steps = sim, steps
        self.inputs = start_of(sim, rng, steps) if inputs is None else inputs
        final = self.final(self.inputs)
        self.weights = {n: torch.as_tensor(rng.normal(size=t.shape)) for n, t in vars(final).items()}

    def final(self, inputs: dict[str, torch.Tensor]):
        inputs = dict(inputs)
        control = inputs.pop("control", None)
        state = self.sim.state(q=inputs.pop("q"), qd=inputs.pop("qd"))
        return self.sim.rollout(control, self.steps, state, **inputs).final

    def __call__(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return sum((self.weights[n] * t).sum() for n, t in vars(self.final(inputs)).items())

    def gradient(self) -> dict[str, torch.Tensor]:
        leaves = {n: t.clone().requires_grad_() for n, t in self.inputs.items()}
        return dict(zip(leaves, torch.autograd.grad(self(leaves), list(leaves.values())), strict=True))

    def difference(self, name: str, direction: torch.Tensor, h: float) -> float:
        with torch.no_grad():
            ahead, behind = (self({**self.inputs, name: self.inputs[name] + s * h * direction}) for s in (1, -1))
        return float(ahead - behind) / (2 * h)


def direction_of(name: str, value: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """A direction in which an input may move; inertia stays one of a body, limits that are none stay so."""
    d = torch.as_tensor(rng.uniform(0.5, 1.0, value.shape) * rng.choice([-1, 1], value.shape))
    d = d * value.abs().clamp(min=1e-3) * (value.abs() < 1e9)
    if name == "inertia":
        d = 0.15 * (d + d.mT)
    return d.abs() if name.endswith(("stiffness", "damping")) or name == "armature" else d


def assert_gradients(loss: Loss, rng: np.random.Generator, tolerance: float = 1e-5) -> None:
    """Every gradient is the central difference, over the better of two steps: kinks spoil long ones, rounding short."""
    for name, gradient in loss.gradient().items():
        if not gradient.numel():
            continue
        if name != "contact_viscosity":  # which only what sticks feels
            assert (gradient != 0).any(), f"{name} has no effect here"
        d = direction_of(name, loss.inputs[name], rng)
        slope = float((gradient * d).sum())
        rounding = 1e-9 * float((gradient * d).abs().sum()) + 5e-9
        errors = [abs(slope - loss.difference(name, d, h)) for h in (1e-5, 1e-6)]
        assert min(errors) < tolerance * abs(slope) + rounding, (name, slope, errors)


@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
def test_gradients_of_random_trees(integrator, rng):
    sim = Simulation(random_tree(rng, 6), Articulated(integrator), dt=0.01, worlds=2)
    assert_gradients(Loss(sim, rng, 4), rng)


@pytest.mark.parametrize("solid", SOLIDS)
def test_gradients_through_contact_of_every_solid(solid, rng):
    sim = Simulation(scuffle(solid), Articulated(), dt=0.004)
    loss = Loss(sim, rng, 6)
    touching = sim.sense(loss.final(loss.inputs), **{n: loss.inputs[n] for n in sim.parameters()}).contact_normal
    assert (touching > 0).sum() >= 2
    assert_gradients(loss, rng)


@pytest.mark.parametrize("mu", [0.1, 5.0], ids=["sliding", "sticking"])
def test_gradients_at_sliding_and_sticking(mu, rng):
    assert_gradients(Loss(Simulation(scuffle("box", mu), Articulated("sdirk2", 1e-11), dt=0.004), rng, 6), rng)


@pytest.mark.filterwarnings("ignore:Contact .box on floor. is not resolved")
@pytest.mark.parametrize("method", ["sdirk2", "bdf1"])
@pytest.mark.parametrize("viscosity", [1e9, 1e10])
def test_a_box_that_comes_to_rest_within_a_range_narrower_than_the_tolerance(method, viscosity):
    """At rest it sticks below 1e-7 or 1e-8 m/s; in a stage of 0.6 ms the tolerance is 2e-6 m/s."""
    box = RigidBody("box", Box((-0.05, -0.05, -0.02), (0.05, 0.05, 0.02)), position=(0, 0, 0.02), points=8)
    free = Joint("free", "free", None, "box", start_velocity=(1, 0, 0, 0, 0, 0))
    law = Contact("box", "floor", 1e8, 1e9, friction=0.3, viscosity=viscosity)
    scene = Scene([box], joints=[free], contacts=[law], obstacles=[floor(friction=0.3)])
    sim = Simulation(scene, Articulated(method), dt=2e-3)

    def way(mu):
        return sim.rollout(None, 180, contact_friction=mu).final.q[0, 0]

    mu = torch.full((1, 1), 0.3, dtype=torch.float64, requires_grad=True)
    gradient = torch.autograd.grad(way(mu), mu)[0].item()
    with torch.no_grad():
        difference = (way(mu + 1e-5) - way(mu - 1e-5)).item() / 2e-5
    assert abs(gradient / difference - 1.0) < 1e-6


def test_a_cube_whose_points_would_not_slide_without_friction_sticks():
    """A push and a torque move the centre and turn the cube so that points of its base stay where they are.

    Sliding to either side overshoots by less than the tolerance, and friction reverses the speed.
    """
    push, side = 1.0, 0.06
    cube = RigidBody("cube", Box((-0.03,) * 3, (0.03,) * 3), 800.0, position=(0, 0, 0.03), points=26)
    law = Contact("cube", "floor", 2e6, 2e7, friction=0.4, viscosity=1e7)
    sim = Simulation(Scene([cube], contacts=[law], obstacles=[floor()]), Articulated(), dt=5e-3 / 42)
    force, torque = sim.parameter("body_force"), sim.parameter("body_torque")
    force[0, 0] = torch.tensor([push, 0.0, -3.0])
    torque[0, 0, 1] = push * side / 3.0  # inertia / (mass * height) = side / 3

    def turned(mass):
        return sim.rollout(None, 1, mass=mass, body_force=force, body_torque=torque).final.qd[0, 4]

    mass = sim.parameter("mass").requires_grad_()
    gradient = torch.autograd.grad(turned(mass), mass)[0].item()
    with torch.no_grad():
        h = 1e-6 * mass
        difference = ((turned(mass + h) - turned(mass - h)) / (2 * h)).item()
    assert abs(gradient / difference - 1.0) < 1e-5


def test_friction_has_the_direction_of_slow_sliding():
    """A corner slides so slowly that a correction within the tolerance turns its friction."""
    box = RigidBody("box", Box((-0.0417,) * 3, (0.0417,) * 3), 794.0, position=(0, 0, 0.0417), points=8)
    law = Contact("box", "floor", 1.21e5, 1.21e5, 0.5, 2.05e7, restitution=0.5)
    start = torch.tensor([[-0.0436, 0.0223, 0.0038, 0.0196, -0.7175, 0.1574]], dtype=torch.float64)
    found = []
    for tolerance in (1e-9, 1e-13):
        scene = Scene([box], contacts=[law], obstacles=[floor()])
        sim = Simulation(scene, Articulated(tolerance=tolerance), dt=5e-3, substeps=1)
        mu, q = sim.parameter("contact_friction").requires_grad_(), sim.state().q.clone()
        q[0, 2] = -0.0054
        turn = sim.rollout(None, 2, state=sim.state(q=q, qd=start), contact_friction=mu).final.qd[0, 3]
        found.append(torch.autograd.grad(turn, mu)[0].item())
    assert abs(found[0] / found[1] - 1.0) < 1e-4


def test_a_stiff_limit_holds_a_slider_that_rests_on_it_within_the_tolerance():
    """A slider that begins 5e-10 m beyond its limit, which yields by 3e-9 m: it was sixty times too fast."""
    slider = RigidBody("slider", Box((-0.02,) * 3, (0.02,) * 3), 370.0)
    rail = Joint("rail", "prismatic", None, "slider", axis=(0, 0, -1), start=(0.3000000005,), lower=-1.0, upper=0.3,
                 limit_stiffness=8.2e7, limit_damping=3.9e6)  # fmt: skip
    found = []
    for tolerance in (1e-9, 1e-13):
        sim = Simulation(Scene([slider], joints=[rail]), Articulated("bdf1", tolerance), dt=6.36e-4, substeps=1)
        force = sim.parameter("body_force").requires_grad_()
        speed = sim.rollout(None, 2, body_force=force).final.qd[0, 0]
        found.append((speed.item(), torch.autograd.grad(speed, force)[0][0, 0, 2].item()))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


@pytest.mark.parametrize("restitution", [0.9, 0.4])
def test_gradients_with_a_coefficient_of_restitution(restitution, rng):
    """Of contacts that come in, go out and rest, some of which damp with less than their bound."""
    scene = scuffle("box")
    laws = [dataclasses.replace(c, damping=20.0 * c.damping, restitution=restitution) for c in scene.contacts]
    sim = Simulation(dataclasses.replace(scene, contacts=laws), Articulated(tolerance=1e-11), dt=0.004)
    assert_gradients(Loss(sim, rng, 6), rng)


def test_taylor_remainder_is_of_second_order(rng):
    """With contact: wrong by 1 % a gradient has the slope 1.3."""
    sim = Simulation(scuffle("box"), Articulated(tolerance=1e-11), dt=0.004)
    loss = Loss(sim, rng, 6)
    gradient, base = loss.gradient(), float(loss(loss.inputs))
    for name in ("qd", "joint_position", "contact_point", "contact_stiffness", "inertia", "control"):
        d = direction_of(name, loss.inputs[name], rng)
        scale = {"control": 100.0, "inertia": 10.0, "contact_stiffness": 1.0}.get(name, 0.1)  # in the same contacts
        steps = scale * np.array([1e-3, 1e-4])
        slope = float((gradient[name] * d).sum())
        with torch.no_grad():
            left = [
                abs(float(loss({**loss.inputs, name: loss.inputs[name] + h * d})) - base - h * slope) for h in steps
            ]
        assert 1.9 < np.log10(left[0] / left[1]) < 2.1, (name, left)


@pytest.mark.parametrize("restitution", [None, 0.6])
def test_gradient_through_a_bounce(restitution, rng):
    """Where a ball is after a bounce, by its velocity before: the gradient that relaxed contact gets wrong by half."""
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.1), 200.0, position=(0, 0, 0.5), points=Cloud([[0, 0, -0.1]], 1e-4))
    law = Contact("ball", "floor", 1e8, 1e7, 0.3, 1e5, restitution=restitution)
    scene = Scene((ball,), obstacles=(floor(),), contacts=(law,))
    sim = Simulation(scene, Articulated(), dt=1e-3)

    def height(v):
        velocity = torch.zeros(1, 6, dtype=torch.float64)
        velocity = torch.cat([torch.tensor([[0.5, 0.0]], dtype=torch.float64), v.reshape(1, 1), velocity[:, 3:]], dim=1)
        return sim.rollout(None, 500, sim.state(qd=velocity)).final.q[0, 2]

    v = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(height(v), v)
    with torch.no_grad():
        difference = (height(v + 1e-5) - height(v - 1e-5)) / 2e-5
    assert float(height(v).detach()) > -0.4  # it did come back
    assert abs(float(gradient / difference) - 1.0) < 1e-4


@pytest.mark.parametrize("checkpoints", [Checkpoints.all(), Checkpoints.every(2), Checkpoints.sqrt()])
def test_every_schedule_gives_the_same_gradient(checkpoints, rng):
    found = []
    for schedule in (Checkpoints.all(), checkpoints):
        sim = Simulation(scuffle("box"), Articulated(), dt=0.004, checkpoints=schedule)
        found.append(Loss(sim, np.random.default_rng(3), 6).gradient())
    for name in found[0]:
        assert (found[0][name] == found[1][name]).all(), name


def test_worlds_do_not_meet(rng):
    """The gradients of a world, with parameters of its own, are those of the same world alone, to the last bit."""
    alone = Simulation(scuffle("box"), Articulated(), dt=0.004)
    three = Simulation(scuffle("box"), Articulated(), dt=0.004, worlds=3)
    inputs = start_of(three, rng, 8)
    changed = {
        n: v * torch.as_tensor(rng.uniform(0.98, 1.02, v.shape))
        for n, v in inputs.items()
        if not n.startswith("joint_")
    }
    inputs |= {n: v for n, v in changed.items() if n not in ("inertia", "q")}
    gradients = []
    for sim, rows in ((alone, slice(1, 2)), (three, slice(None))):
        leaves = {n: v[rows].clone().requires_grad_() for n, v in inputs.items()}
        own = dict(leaves)
        control = own.pop("control")
        state = sim.state(q=own.pop("q"), qd=own.pop("qd"))
        final = sim.rollout(control, 8, state, **own).final
        loss = (final.q**2).sum() + (final.qd**2).sum()
        gradients.append(dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True)))
    for name, gradient in gradients[0].items():
        assert (gradient[0] == gradients[1][name][1]).all(), name
