"""``warpbots info``: what a scene holds, what can be differentiated, and the stable time step."""

import argparse
import math
from typing import Any

import warpbots as wb
from warpbots.cli.simulations import simulation as simulation_of

__all__ = ["info"]


def info(options: argparse.Namespace) -> None:
    """Print it."""
    simulation = simulation_of(options)
    scene, model = simulation.scene, simulation.model
    (_say_rigid if model.matter is None else _say_soft)(scene, model)
    for obstacle in scene.obstacles:
        print(
            f"  obstacle {obstacle.name}: {type(obstacle.shape).__name__}, {obstacle.condition}"
            + (f", mu {obstacle.friction:g}" if obstacle.condition == "friction" else "")
        )
    for attachment in scene.attachments:
        print(f"  attachment {attachment.name}: {attachment.first} to {attachment.second}")
    for part in (*scene.constraints, *scene.loads):
        print(f"  {type(part).__name__.lower()} {part.name}: region {part.region}")
    print(f"  {type(simulation.solver).__name__}: {model.summary()}")
    print("differentiable:")
    state = simulation.state()
    for name, field in vars(state).items():
        if field.numel():
            print(f"  state {name}: shape {tuple(field.shape)}")
    print(f"  control: shape (worlds, steps, {simulation.channels}), in [-1, 1]")
    for name, p in simulation.parameters().items():
        left = "[" if p.inclusive else "("
        shape = tuple(simulation.parameter(name).shape)
        print(f"  {name}: {p.doc}, shape {shape}, {left}{p.lower:g}, {p.upper:g}) {p.unit}")
    step = simulation.dt / simulation.substeps
    bound = simulation.max_time_step
    print(
        f"time step: {step:.3g} s ({simulation.dt:g} s in {simulation.substeps} substeps), "
        + (f"{step / bound:.0%} of the stability bound of {bound:.3g} s" if math.isfinite(bound) else "implicit")
    )


def _say_soft(scene: wb.Scene, model: Any) -> None:
    """Print soft bodies and their actuators."""
    print(f"{scene.name}: {scene.dim}D, {len(model.matter)} particles, gravity {list(scene.gravity)} m/s^2")
    for i, body in enumerate(scene.bodies):
        m = body.material
        count = int((model.matter.body == i).sum())
        print(
            f"  body {body.name}: {type(body.shape).__name__}, {count} particles, {m.law}, E {m.youngs_modulus:g} Pa, "
            f"nu {m.poissons_ratio:g}, density {m.density:g} kg/m^{scene.dim}"
        )
        for region in body.regions:
            print(f"    region {region}: {int(model.matter.regions[region].sum())} particles")
    for channel, actuator in enumerate(scene.actuators):
        print(f"  control channel {channel}: {type(actuator).__name__} {actuator.name}")


def _say_rigid(scene: wb.Scene, model: Any) -> None:
    """Print rigid bodies, their joints, motors and contact laws."""
    mass = model.parameter("mass").numpy()[0]
    print(f"{scene.name}: {len(mass)} rigid bodies, {mass.sum():.4g} kg, gravity {list(scene.gravity)} m/s^2")
    for body, m in zip(scene.rigid, mass, strict=True):
        shape = "no shape" if body.shape is None else type(body.shape).__name__
        print(f"  body {body.name}: {shape}, {m:.4g} kg" + (f", surface {body.surface}" if body.surface else ""))
    for joint in model.robot.joints:
        limits = "" if joint.lower is None else f", limits {list(joint.lower)} to {list(joint.upper)}"
        print(f"  joint {joint.name}: {joint.kind}, {joint.parent or 'world'} to {joint.child}{limits}")
    for channel, motor in enumerate(scene.actuators):
        strength = f"up to {motor.max_torque:g}" if isinstance(motor, wb.Torque) else f"stiffness {motor.stiffness:g}"
        print(f"  control channel {channel}: {type(motor).__name__} {motor.name} at joint {motor.joint}, {strength}")
    for law in scene.contacts:
        print(f"  contact {law.name}: {law.stiffness:g} Pa/m, mu {law.friction:g}")
