"""A scene as a short table: bodies, actuators and surroundings."""

import dataclasses
import math
import textwrap
from typing import Any

import numpy as np

from warpbots.contact import volume
from warpbots.scene import Constraint, Material, Obstacle, PrescribedMotion, RigidBody, Scene, Shape, SoftBody
from warpbots.tables.table import Table, TableSection

__all__ = ["UNTOUCHED", "moving_words", "scene_sections", "scene_table"]

UNTOUCHED = "without laws: rigid bodies touch no other rigid body and no obstacle"
"""What an empty list of contact laws means, in words."""


def scene_table(scene: Scene) -> Table:
    """The table of a scene."""
    return Table(f"Scene {scene.name!r}, {scene.dim}D, {_box(*scene.bounds)}", scene_sections(scene))


def scene_sections(scene: Scene) -> list[TableSection]:
    """The contents of a scene, with one section for each kind of part."""
    groups = ("actuators", "attachments", "constraints", "loads", "contacts")
    single = {name: part for name in ("fluid", "task") if (part := getattr(scene, name)) is not None}
    around = [("gravity", f"{_numbers(scene.gravity)} m/s^2")]
    if scene.domain is not None:
        around.append(("domain", _box(*map(np.array, scene.domain))))
    if scene.contacts == ():
        around.append(("contact", UNTOUCHED))
    return [
        TableSection("soft bodies", [_soft(body, scene.dim) for body in scene.soft]),
        TableSection("rigid bodies", [_rigid(body) for body in scene.rigid]),
        TableSection("joints", [(j.name, j.kind, f"{j.parent or 'world'} to {j.child}") for j in scene.joints]),
        *(
            TableSection(name, [(p.name, type(p).__name__, _details(p)) for p in getattr(scene, name) or ()])
            for name in groups
        ),
        TableSection("obstacles", [(o.name, _shape(o.shape), _condition(o), moving_words(o)) for o in scene.obstacles]),
        TableSection("fields", [(f.name, f"{f.values.size} numbers", _range(f.values)) for f in scene.fields]),
        TableSection("world", [*around, *((name, _details(part)) for name, part in single.items())]),
    ]


def _soft(body: SoftBody, dim: int) -> tuple[str, ...]:
    names = textwrap.shorten(", ".join(body.regions), 40, placeholder=" ...")
    densities = {m.density for m in body.materials}
    mass = f"{body.material.density * volume(body.shape):.4g} kg" if len(densities) == 1 else ""
    return body.name, _shape(body.shape), mass, _material(body.material, dim), f"regions {names}" if names else ""


def _rigid(body: RigidBody) -> tuple[str, ...]:
    if body.inertia is not None:
        mass = body.inertia.mass
    else:
        mass = 0.0 if body.shape is None else body.density * volume(body.shape)
    return body.name, "no shape" if body.shape is None else _shape(body.shape), f"{mass:.4g} kg"


def _range(values: np.ndarray) -> str:
    return f"{values.min():.4g} to {values.max():.4g}"


def _condition(obstacle: Obstacle) -> str:
    rough = f", coefficient {obstacle.friction:.3g}" if obstacle.condition == "friction" else ""
    return obstacle.condition + rough


def moving_words(part: Obstacle | Constraint) -> str:
    """The prescribed motion of an obstacle or a constraint, and the velocity of a surface; empty if there are none."""
    words = []
    if part.motion is not None:
        what = [name for name in ("positions", "rotations") if getattr(part.motion, name) is not None]
        beyond = {"error": "", "hold": ", held", "repeat": ", repeated"}[part.motion.beyond]
        words.append(f"moves by {len(part.motion.times)} {' and '.join(what)} in {part.motion.times[-1]:.4g} s{beyond}")
    if isinstance(part, Obstacle) and part.surface_velocity is not None:
        words.append(f"surface velocity {_numbers(part.surface_velocity)} m/s")
    return ", ".join(words)


def _shape(shape: Shape) -> str:
    lower, upper = shape.bounds
    bounded = np.isfinite(upper - lower).all()
    return f"{type(shape).__name__}, {_edges(lower, upper)}" if bounded else type(shape).__name__


def _material(material: Material, dim: int) -> str:
    words = [
        material.law, f"E {material.youngs_modulus:.4g} Pa", f"nu {material.poissons_ratio:.3g}",
        f"{material.density:.4g} kg/m^{dim}",
    ]  # fmt: skip
    words += [f"{name} {value:.4g}" for name, value in material.constants.items()]
    words += [f"damping {material.damping:.3g} s"] * bool(material.damping)
    if material.plasticity is not None:
        words.append(f"{type(material.plasticity).__name__} ({_details(material.plasticity)})")
    words += [f"{type(part).__name__} ({_details(part)})" for part in (*material.fibres, *material.branches)]
    return ", ".join(words)


def _box(lower: np.ndarray, upper: np.ndarray) -> str:
    return f"{_edges(lower, upper)} from {_numbers(lower)} m"


def _edges(lower: np.ndarray, upper: np.ndarray) -> str:
    return " x ".join(f"{edge:.3g}" for edge in upper - lower) + " m"


def _numbers(values: Any) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"


def _details(part: Any) -> str:
    """Fields of a part that differ from their defaults: numbers, texts, short vectors, and the kind of its shape."""
    words = []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name == "name" or value is None or value is field.default:
            continue
        if isinstance(value, Shape):
            words.append(_shape(value))
        elif isinstance(value, bool | str):
            words.append(f"{field.name} {value}")
        elif isinstance(value, int | float):
            if value != field.default and math.isfinite(value):
                words.append(f"{field.name} {value:.4g}")
        elif isinstance(value, tuple) and len(value) <= 3 and all(isinstance(v, int | float) for v in value):
            words.append(f"{field.name} {_numbers(value)}")
        elif isinstance(value, tuple):
            words.append(f"{len(value)} {field.name}")
        elif isinstance(value, PrescribedMotion):
            words.append(moving_words(part))
    return ", ".join(words)
