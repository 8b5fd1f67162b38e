"""``warpbots info``: prints the contents of a scene, its differentiable quantities, and the stable time step."""

import argparse
import math
from typing import Any

import warpbots as wb
from warpbots.cli.simulations import simulation as simulation_of
from warpbots.contact import volume
from warpbots.solvers.law_constants import constants_in_words
from warpbots.tables.scene_table import UNTOUCHED, moving_words

__all__ = ["info"]


def info(options: argparse.Namespace) -> None:
    """Print the contents of the scene in a file, its differentiable quantities, and the stable time step."""
    simulation = simulation_of(options)
    scene, model = simulation.scene, simulation.model
    _say_bodies(scene, model)
    for channel, actuator in enumerate(scene.actuators):
        print(f"  control channel {channel}: {type(actuator).__name__} {actuator.name}{_joint_of(actuator)}")
    for law in scene.laws:
        print(f"  contact {law.name}: {law.stiffness:g} Pa/m, mu {law.friction:g}")
    if scene.contacts == ():
        print(f"  contact: {UNTOUCHED}")
    for obstacle in scene.obstacles:
        print(
            f"  obstacle {obstacle.name}: {type(obstacle.shape).__name__}, {obstacle.condition}"
            + (f", mu {obstacle.friction:g}" if obstacle.condition == "friction" else "")
            + _motion_of(obstacle)
        )
    for attachment in scene.attachments:
        print(f"  attachment {attachment.name}: {attachment.first} to {attachment.second}")
    for part in (*scene.constraints, *scene.loads):
        motion = _motion_of(part) if isinstance(part, wb.Constraint) else ""
        print(f"  {type(part).__name__.lower()} {part.name}: region {part.region}{motion}")
    print(f"  {type(simulation.solver).__name__}: {model.summary()}")
    print("differentiable:")
    state = simulation.state()
    for name, field in vars(state).items():
        if field.numel():
            print(f"  state {name}: shape {tuple(field.shape)}")
    print(f"  control: shape (worlds, steps, {simulation.channels}), in [-1, 1]")
    for name, p in simulation.parameters().items():
        shape = tuple(simulation.parameter(name).shape)
        print(f"  {name}: {p.doc}, shape {shape}, {p.span(simulation.scene.dim)}")
    step = simulation.dt / simulation.substeps
    bound = simulation.max_time_step
    print(
        f"time step: {step:.3g} s ({simulation.dt:g} s in {simulation.substeps} substeps), "
        + (f"{step / bound:.0%} of the stability bound of {bound:.3g} s" if math.isfinite(bound) else "implicit")
    )


def _say_bodies(scene: wb.Scene, model: Any) -> None:
    """Print soft bodies with their regions, and rigid bodies with their joints."""
    weights = [_mass(body) for body in scene.rigid]
    counts = [f"{len(model.matter)} particles"] if model.matter is not None else []
    counts += [f"{len(weights)} rigid bodies, {sum(weights):.4g} kg"] if weights else []
    print(f"{scene.name}: {scene.dim}D, {', '.join(counts)}, gravity {list(scene.gravity)} m/s^2")
    for i, body in enumerate(scene.bodies):
        if isinstance(body, wb.SoftBody):
            _say_soft(body, scene.dim, int((model.matter.body == i).sum()))
            for region in body.regions:
                own = body.region_materials.get(region)
                words = f", {_material(own, scene.dim)}" if own else ""
                print(f"    region {region}: {int(model.matter.regions[region].sum())} particles{words}")
        else:
            shape = "no shape" if body.shape is None else type(body.shape).__name__
            surface = f", surface {body.surface}" if body.surface else ""
            print(f"  body {body.name}: {shape}, {_mass(body):.4g} kg{surface}")
    for joint in scene.joints if model.matter is not None else model.robot.joints:
        limits = "" if joint.lower is None else f", limits {list(joint.lower)} to {list(joint.upper)}"
        print(f"  joint {joint.name}: {joint.kind}, {joint.parent or 'world'} to {joint.child}{limits}")


def _say_soft(body: wb.SoftBody, dim: int, count: int) -> None:
    print(f"  body {body.name}: {type(body.shape).__name__}, {count} particles, {_material(body.material, dim)}")


def _material(material: wb.Material, dim: int) -> str:
    """A text with the law, its constants, and the density of a material."""
    constants = constants_in_words(material)
    return (
        f"{material.law}{f' ({constants})' if constants else ''}, E {material.youngs_modulus:g} Pa, nu "
        f"{material.poissons_ratio:g}, density {material.density:g} kg/m^{dim}"
    )


def _mass(body: wb.RigidBody) -> float:
    """Mass of a rigid body [kg]."""
    if body.inertia is not None:
        return body.inertia.mass
    return 0.0 if body.shape is None else body.density * volume(body.shape)


def _joint_of(actuator: Any) -> str:
    """A text with what a motor or a drive moves, and its strength; an empty text for all other actuators."""
    if isinstance(actuator, wb.actuators.Torque):
        return f" at joint {actuator.joint}, up to {actuator.max_torque:g}"
    if isinstance(actuator, wb.actuators.Servo):
        return f" at joint {actuator.joint}, stiffness {actuator.stiffness:g}"
    if isinstance(actuator, wb.actuators.VelocityDrive):
        unit = "rad/s" if actuator.kind == "rotation" else "m/s"
        return f" of {actuator.moves}: {actuator.kind}, up to {actuator.max_speed:g} {unit}"
    return ""


def _motion_of(part: wb.Obstacle | wb.Constraint) -> str:
    """A text with the prescribed motion of an obstacle or a constraint, empty without one."""
    words = moving_words(part)
    return f", {words}" if words else ""
