"""Which solvers support which parts of a scene, so that error messages can recommend another solver.

If a solver refuses a part of a scene, the message names the solvers that support all parts of the scene. If there is no
such solver, the message says so, and names a part that each solver does not support.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from warpbots.actuation_laws import acts_as_stress, law_and_constants, proportional
from warpbots.contact import signed_distance
from warpbots.materials import FLUIDS
from warpbots.scene import (
    Cavity,
    Expansion,
    Fibre,
    Motor,
    Oscillation,
    PneumaticCell,
    RigidBody,
    Scene,
    Servo,
    SoftBody,
    Torque,
    bars_of,
    sheets_of,
)

__all__ = ["SOLVERS", "is_bone", "remedy", "takers"]

MPM, SPRINGS, PROJECTIVE, ARTICULATED = SOLVERS = "MPM", "MassSpring", "ProjectiveDynamics", "Articulated"
"""Names of the solvers."""

_SAMPLES = 12
"""Number of sample points along each edge of the bounds of a rigid body, to test whether it is in a soft body."""


@dataclasses.dataclass(frozen=True)
class _ScenePart:
    """A kind of part that a scene may have and that not all solvers support.

    Attributes:
        name: Name of the part, in the plural.
        found: Function that tells whether a scene has such a part.
        takers: Names of the solvers that support such parts.
    """

    name: str
    found: Callable[[Scene], bool]
    takers: tuple[str, ...]


def _actuated(*kinds: type) -> Callable[[Scene], bool]:
    return lambda scene: any(isinstance(a, kinds) for a in scene.actuators)


def _bent(scene: Scene) -> bool:
    stresses = [a for a in scene.actuators if acts_as_stress(a)]
    return any(law_and_constants(a, scene.dim)[0] is not proportional for a in stresses)


def _made_of(has: Callable[[object], bool]) -> Callable[[Scene], bool]:
    """A function that tests whether `has` is true for at least one material of a scene."""
    return lambda scene: any(has(material) for body in scene.soft for material in body.materials)


def _is_in(bone: RigidBody, body: SoftBody) -> bool:
    """Whether part of a rigid body is in a soft body; for sheets and trusses, whether it is in their bounds."""
    lower = np.maximum(bone.bounds[0], body.shape.bounds[0])
    upper = np.minimum(bone.bounds[1], body.shape.bounds[1])
    if bone.shape is None or not (lower <= upper).all():
        return False
    edges = (np.linspace(a, b, _SAMPLES) for a, b in zip(lower, upper, strict=True))
    points = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, 3)
    local = (points - np.array(bone.position)) @ np.array(bone.rotation)
    inside = signed_distance(bone.shape, local) <= 0.0
    if not sheets_of(body.shape) and bars_of(body.shape) is None:
        inside &= signed_distance(body.shape, points) <= 0.0
    return bool(inside.any())


def is_bone(scene: Scene, body: RigidBody) -> bool:
    """Whether a rigid body is in a soft body, or is a link without a shape that carries other bodies."""
    if body.shape is None:
        return any(joint.parent == body.name for joint in scene.joints)
    return any(_is_in(body, soft) for soft in scene.soft)


def _loose(scene: Scene) -> bool:
    return not all(is_bone(scene, body) for body in scene.rigid)


def _off_zero(scene: Scene) -> bool:
    return any(j.start is not None and np.any(j.start[: j.straight]) for j in scene.joints)


_PARTS = (
    _ScenePart("soft bodies", lambda s: bool(s.soft), (MPM, SPRINGS, PROJECTIVE)),
    _ScenePart("scenes without soft bodies", lambda s: not s.soft, (ARTICULATED,)),
    _ScenePart("rigid bodies", lambda s: bool(s.rigid or s.joints), (PROJECTIVE, ARTICULATED)),
    _ScenePart("rigid bodies outside of soft ones", _loose, (ARTICULATED,)),
    _ScenePart("motors at joints", _actuated(Torque, Servo), (PROJECTIVE, ARTICULATED)),
    _ScenePart("Contact laws", lambda s: bool(s.contacts), (ARTICULATED,)),
    _ScenePart("joints that start away from zero", _off_zero, (ARTICULATED,)),
    _ScenePart("sheets", lambda s: any(sheets_of(b.shape) for b in s.soft), (PROJECTIVE,)),
    _ScenePart("fluids around bodies", lambda s: s.fluid is not None, (PROJECTIVE,)),
    _ScenePart("scenes in 2D", lambda s: s.dim == 2, (MPM, SPRINGS)),
    _ScenePart("liquid materials", lambda s: any(b.material.law in FLUIDS for b in s.soft), (MPM,)),
    _ScenePart("plasticity", _made_of(lambda m: m.plasticity is not None), (MPM,)),
    _ScenePart("fibres in materials", _made_of(lambda m: bool(m.fibres)), (MPM,)),
    _ScenePart("Maxwell branches", _made_of(lambda m: bool(m.branches)), (MPM,)),
    _ScenePart("yield strains", _made_of(lambda m: m.yield_strain is not None), (SPRINGS,)),
    _ScenePart("breaking strains", _made_of(lambda m: m.breaking_strain is not None), (SPRINGS,)),
    _ScenePart("incompressibility", _made_of(lambda m: m.incompressibility != 0), (MPM, PROJECTIVE)),
    _ScenePart("motors at attachments", _actuated(Motor), (SPRINGS, PROJECTIVE)),
    _ScenePart("attachments", lambda s: bool(s.attachments), (SPRINGS, PROJECTIVE)),
    _ScenePart("cavities", _actuated(Cavity), (PROJECTIVE,)),
    _ScenePart("fibres and pneumatic cells", _actuated(Fibre, PneumaticCell), (PROJECTIVE,)),
    _ScenePart("stresses that are not proportional to the control", _bent, (MPM, PROJECTIVE)),
    _ScenePart("expansions and oscillations", _actuated(Expansion, Oscillation), (SPRINGS, PROJECTIVE)),
)


def _lacking(scene: Scene) -> dict[str, str]:
    """The first part of the scene that a solver does not support, by name of the solver; without other solvers."""
    found = [part for part in _PARTS if part.found(scene)]
    lacks = {solver: [part.name for part in found if solver not in part.takers] for solver in SOLVERS}
    return {solver: names[0] for solver, names in lacks.items() if names}


def takers(scene: Scene) -> tuple[str, ...]:
    """Names of the solvers that support all parts of a scene."""
    lacking = _lacking(scene)
    return tuple(solver for solver in SOLVERS if solver not in lacking)


def remedy(scene: Scene, solver: str, change: str = "") -> str:
    """The end of the message about a part of a scene that a solver refuses: what the user can do.

    Args:
        scene: The scene.
        solver: Name of the solver that refuses the part.
        change: A change of the scene that helps, in the imperative.
    """
    others = [name for name in takers(scene) if name != solver]
    if others:
        return f"{change} or use {' or '.join(others)}" if change else f"use {' or '.join(others)}"
    missing: dict[str, list[str]] = {}
    for name, part in _lacking(scene).items():
        missing.setdefault(part, []).append(name)
    lacks = "; ".join(
        f"{' and '.join(names)} take{'s' * (len(names) == 1)} no {part}" for part, names in missing.items()
    )
    none = f"no solver takes all of this scene yet ({lacks})"
    return f"{change}; {none}" if change else none
