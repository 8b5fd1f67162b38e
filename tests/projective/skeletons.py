"""An soft arm with two bones, and pendulums with soft bodies on them."""

import dataclasses

import numpy as np
import torch

from warpbots.scene import Box, Inertia, Joint, Material, RigidBody, Scene, Servo, SoftBody, Torque
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

SOFT = Material(5e4, 0.3, 1000.0)


def bones(thickness: float, shift: float = 0.0) -> tuple[RigidBody, RigidBody]:
    """Two bones in line, 14 cm and 12 cm long."""
    half = thickness / 2.0
    upper = RigidBody("upper", Box((0.0, -half + shift, -half), (0.14, half + shift, half)), density=2000.0)
    return upper, RigidBody("fore", Box((0.16, -half, -half), (0.28, half, half)))


BONES = bones(0.024)

_START = {"revolute": 1.0, "prismatic": 0.1, "ball": (1.0, 0.5, -0.5), "free": (0.1, 0.05, -0.1, 1.0, 0.5, -0.5)}


def arm(
    root: str | None,
    material: Material = SOFT,
    thickness: float = 0.024,
    velocity: float = 0.0,
    upper: float | None = 1.0,
    motor: Torque | Servo | bool = True,
    weightless: bool = False,
    gravity: tuple[float, ...] | None = None,
    obstacles: tuple = (),
    shift: float = 0.0,
    soft_velocity: tuple[float, ...] | None = None,
    joints: bool = True,
) -> Scene:
    """A soft bar along x with two bones that hang together at an elbow, the first of them on the world by `root`."""
    soft = SoftBody("arm", Box((0, -0.03, -0.03), (0.3, 0.03, 0.03)), material, velocity=soft_velocity)
    made = bones(thickness, shift)
    if weightless:
        inertia = Inertia(1e-9, (0.1, 0.0, 0.0), (1e-13, 1e-13, 1e-13))
        made = tuple(dataclasses.replace(b, inertia=inertia) for b in made)
    if not joints:
        return Scene((soft, *made), (), obstacles, gravity=gravity)
    start = None if velocity == 0.0 else velocity * np.array(_START[root])
    axis = (0.0, 0.0, 1.0) if root == "prismatic" else (0.0, 1.0, 0.0)
    shoulder = Joint("shoulder", root, None, "upper", axis=axis, start_velocity=start)
    spring = {"stiffness": 0.1, "damping": 0.002} if not weightless else {}
    limits = {"upper": upper, "limit_stiffness": 500.0} if upper is not None and not weightless else {}
    elbow = Joint(
        "elbow", "revolute", "upper", "fore", position=(0.15, 0.0, 0.0), axis=(0.0, 1.0, 0.0), **spring, **limits
    )
    motors = () if motor is False else (Torque("motor", "elbow", 0.2) if motor is True else motor,)
    return Scene((soft, *made), motors, obstacles, gravity=gravity, joints=(shoulder, elbow))


def simulated(scene: Scene, cell: float, thickness: float | None = None) -> Simulation:
    """Steps of 5 ms without contact of soft bodies with itself."""
    if thickness is not None:
        thick = bones(thickness)
        bodies = [
            dataclasses.replace(b, shape=thick[k - 1].shape) if isinstance(b, RigidBody) else b
            for k, b in enumerate(scene.bodies)
        ]
        scene = dataclasses.replace(scene, bodies=tuple(bodies))
    double = torch.get_default_dtype() == torch.float64
    solver = ProjectiveDynamics(cell, tolerance=1e-12 if double else None, collisions=False)
    return Simulation(scene, solver, 0.005, substeps=1)


def stirred_bones(sim: Simulation, rng: np.random.Generator, steps: int) -> dict[str, torch.Tensor]:
    """Everything that a rollout can be differentiated by, at random; unlimited joints have limits far away."""

    def noise(value: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.as_tensor(rng.uniform(-1, 1, value.shape))

    inputs = {n: sim.parameter(n) for n in sim.parameters()}
    for name in ("youngs_modulus", "density", "mass"):
        inputs[name] = inputs[name] * (1.0 + noise(inputs[name], 0.2))
    for name in ("joint_stiffness", "joint_damping", "armature"):
        inputs[name] = inputs[name] + 0.01 * (1.0 + noise(inputs[name], 0.5))
    for name, scale in (("limit_stiffness", 100.0), ("limit_damping", 0.01)):
        inputs[name] = inputs[name] + scale * (1.0 + noise(inputs[name], 0.5))
    for name, far in (("joint_lower", -5.0), ("joint_upper", 5.0)):
        inputs[name] = torch.where(inputs[name].abs() > 1e10, far, inputs[name])
    inputs["load"] = inputs["load"] + noise(inputs["load"], 0.05)
    rest = sim.state()
    inputs |= {"position": rest.position, "q": rest.q}
    inputs["velocity"] = rest.velocity + noise(rest.velocity, 0.1)
    inputs["qd"] = rest.qd + noise(rest.qd, 0.5)
    inputs["qd"][:, -1] += 2.0
    inputs["control"] = noise(torch.zeros(sim.worlds, steps, sim.channels), 0.8)
    return inputs


def reached(sim: Simulation, state) -> np.ndarray:
    """How far nodes have come [m]."""
    return state.position[0].numpy() - sim.model.matter.position


def stiff_pendulum(kind: str) -> tuple[Scene, float]:
    """A bar that is hung up at one end, or slides on a spring, with its period for small swings [s].

    Soft bodies is so stiff that it counts as rigid: the inertia is that of both bars.
    """
    lower, upper = np.array([0.0, -0.03, -0.03]), np.array([0.3, 0.03, 0.03])
    soft = SoftBody("soft", Box(lower, upper), Material(1e8, 0.3, 1000.0))
    bone = RigidBody("bone", Box((0.0, -0.03, -0.03), (0.24, 0.03, 0.03)), density=3000.0)
    # flesh is left where x > 0.24 m alone
    parts = [(3000.0, 0.0, 0.24), (1000.0, 0.24, 0.3)]
    mass = [rho * (b - a) * 0.06**2 for rho, a, b in parts]
    total = sum(mass)
    middle = sum(m * (a + b) / 2.0 for m, (_, a, b) in zip(mass, parts, strict=True)) / total
    moment = sum(
        m * ((b - a) ** 2 + 0.06**2) / 12.0 + m * ((a + b) / 2.0) ** 2 for m, (_, a, b) in zip(mass, parts, strict=True)
    )
    if kind == "prismatic":
        joint = Joint("joint", "prismatic", None, "bone", axis=(0, 0, 1), stiffness=400.0, start_velocity=0.1)
        return Scene((soft, bone), joints=(joint,), gravity=(0, 0, 0)), 2.0 * np.pi * np.sqrt(total / 400.0)
    period = 2.0 * np.pi * np.sqrt(moment / (total * 9.81 * middle))
    velocity = 0.05 if kind == "revolute" else (0.0, 0.05, 0.0)
    joint = Joint("joint", kind, None, "bone", axis=(0, 1, 0), start_velocity=velocity)
    return Scene((soft, bone), joints=(joint,), gravity=(9.81, 0.0, 0.0)), period
