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
    dimension,
    sheets_of,
)
from warpbots.scene.motion_checks import moves

__all__ = [
    "COUPLED", "COUPLED_SPRINGS", "EMBEDDED", "IN_MATTER", "SOLVERS", "depth_in", "immovable", "is_bone", "is_in",
    "lacking", "moving_constraints", "moving_obstacles", "remedy", "takers",
]  # fmt: skip

MPM, SPRINGS, PROJECTIVE, ARTICULATED = "MPM", "MassSpring", "ProjectiveDynamics", "Articulated"
COUPLED, COUPLED_SPRINGS = "Coupled(MPM(), Articulated())", "Coupled(MassSpring(), Articulated())"
SOLVERS = MPM, SPRINGS, PROJECTIVE, ARTICULATED, COUPLED, COUPLED_SPRINGS
"""Names of the solvers, and of two solvers together."""

_TOUCHING = 1e-6
"""Depth up to which bodies merely touch [largest extent of the rigid body]."""

IN_MATTER = "rigid bodies inside soft ones"
"""Name of the part of a scene with a rigid body that is embedded in matter."""

EMBEDDED = 0.03
"""Depth from which a rigid body counts as embedded in matter [largest extent of the body]."""

_SAMPLES = 12
"""Number of sample points along each edge of the bounds of a rigid body, to test whether it is in a soft body."""


@dataclasses.dataclass(frozen=True)
class _ScenePart:
    """A kind of part that a scene may have and that not all solvers support.

    Attributes:
        name: Name of the part, in the plural.
        found: Function whose result is true if a scene has such a part.
        takers: Names of the solvers that support such parts.
    """

    name: str
    found: Callable[[Scene], object]
    takers: tuple[str, ...]


def _actuated(*kinds: type) -> Callable[[Scene], bool]:
    return lambda scene: any(isinstance(a, kinds) for a in scene.actuators)


def _bent(scene: Scene) -> bool:
    stresses = [a for a in scene.actuators if acts_as_stress(a)]
    return any(law_and_constants(a, scene.dim)[0] is not proportional for a in stresses)


def _made_of(has: Callable[[object], bool]) -> Callable[[Scene], bool]:
    """A function that tests whether `has` is true for at least one material of a scene."""
    return lambda scene: any(has(material) for body in scene.soft for material in body.materials)


def depth_in(bone: RigidBody, body: SoftBody) -> float:
    """Depth of the deepest point of a rigid body in a soft body [m]; -infinity if they are apart."""
    dim = dimension(body.shape)
    lower = np.maximum(bone.bounds[0][:dim], body.shape.bounds[0])
    upper = np.minimum(bone.bounds[1][:dim], body.shape.bounds[1])
    if bone.shape is None or not (lower <= upper).all():
        return -np.inf
    edges = (np.linspace(a, b, _SAMPLES) for a, b in zip(lower, upper, strict=True))
    points = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, dim)
    local = (points - np.array(bone.position)[:dim]) @ np.array(bone.rotation)[:dim, :dim]
    return -float(np.maximum(signed_distance(bone.shape, local), signed_distance(body.shape, points)).min())


def is_in(bone: RigidBody, body: SoftBody, share: float = _TOUCHING) -> bool:
    """Whether part of a rigid body is in a soft body, by more than a `share` of the largest extent of the former."""
    return depth_in(bone, body) > share * float(np.ptp(bone.bounds, axis=0).max())


def immovable(scene: Scene) -> np.ndarray:
    """Which rigid bodies cannot move, because joints without freedom connect them with the world, shape (n,), bool."""
    tied = {j.child: j.parent for j in scene.joints if not j.freedom}
    found = np.zeros(len(scene.rigid), dtype=bool)
    for k, body in enumerate(scene.rigid):
        name = body.name
        while name in tied:
            name = tied[name]
        found[k] = name is None
    return found


def is_bone(scene: Scene, body: RigidBody) -> bool:
    """Whether part of a rigid body is in a soft body that fills a volume."""
    solid = (b for b in scene.soft if not sheets_of(b.shape) and bars_of(b.shape) is None)
    return any(is_in(body, soft) for soft in solid)


def _embedded(scene: Scene) -> bool:
    """Whether a rigid body is in a soft body deeper than bodies that are placed in contact."""
    return any(is_in(bone, soft, EMBEDDED) for bone in scene.rigid for soft in scene.soft)


def _rigid_in_fluid(scene: Scene) -> bool:
    return scene.fluid is not None and not all(is_bone(scene, body) for body in scene.rigid)


def _soft_laws(scene: Scene) -> bool:
    return any({law.points, law.solid} & {body.name for body in scene.soft} for law in scene.laws)


def moving_obstacles(scene: Scene) -> list[str]:
    """Names of the obstacles that move, or whose surface moves."""
    return [o.name for o in scene.obstacles if moves(o, scene.actuators)]


def moving_constraints(scene: Scene) -> list[str]:
    """Names of the constraints that move."""
    return [c.name for c in scene.constraints if moves(c, scene.actuators)]


def _stiffened(thin: Callable[[SoftBody], object]) -> Callable[[Scene], bool]:
    """A function that tests whether a scene has a body that is `thin` and has an added incompressibility."""
    return lambda scene: any(thin(b) and b.material.incompressibility for b in scene.soft)


_PARTS = (
    _ScenePart("soft bodies", lambda s: bool(s.soft), (MPM, SPRINGS, PROJECTIVE, COUPLED, COUPLED_SPRINGS)),
    _ScenePart("scenes without soft bodies", lambda s: not s.soft, (PROJECTIVE, ARTICULATED)),
    _ScenePart("scenes without rigid bodies", lambda s: not s.rigid, (MPM, SPRINGS, PROJECTIVE)),
    _ScenePart(
        "rigid bodies", lambda s: bool(s.rigid or s.joints), (PROJECTIVE, ARTICULATED, COUPLED, COUPLED_SPRINGS)
    ),
    _ScenePart(IN_MATTER, _embedded, (PROJECTIVE, ARTICULATED, COUPLED_SPRINGS)),
    _ScenePart("motors at joints", _actuated(Torque, Servo), (PROJECTIVE, ARTICULATED, COUPLED, COUPLED_SPRINGS)),
    _ScenePart("Contact laws", lambda s: bool(s.laws), (PROJECTIVE, ARTICULATED, COUPLED, COUPLED_SPRINGS)),
    _ScenePart("Contact laws of soft bodies", _soft_laws, (PROJECTIVE,)),
    _ScenePart("sheets", lambda s: any(sheets_of(b.shape) for b in s.soft), (PROJECTIVE,)),
    _ScenePart("obstacles that move", moving_obstacles, SOLVERS),
    _ScenePart("constraints that move", moving_constraints, (MPM, SPRINGS, PROJECTIVE, COUPLED, COUPLED_SPRINGS)),
    _ScenePart("fluids around bodies", lambda s: s.fluid is not None, (PROJECTIVE,)),
    _ScenePart("rigid bodies without flesh in a fluid", _rigid_in_fluid, ()),
    _ScenePart("scenes in 2D", lambda s: s.dim == 2, (MPM, SPRINGS, COUPLED, COUPLED_SPRINGS)),
    _ScenePart("liquid materials", lambda s: any(b.material.law in FLUIDS for b in s.soft), (MPM, COUPLED)),
    _ScenePart("plasticity", _made_of(lambda m: m.plasticity is not None), (MPM, COUPLED)),
    _ScenePart("fibres in materials", _made_of(lambda m: bool(m.fibres)), (MPM, COUPLED)),
    _ScenePart("Maxwell branches", _made_of(lambda m: bool(m.branches)), (MPM, COUPLED)),
    _ScenePart("yield strains", _made_of(lambda m: m.yield_strain is not None), (SPRINGS, COUPLED_SPRINGS)),
    _ScenePart("breaking strains", _made_of(lambda m: m.breaking_strain is not None), (SPRINGS, COUPLED_SPRINGS)),
    _ScenePart("incompressibility", _made_of(lambda m: m.incompressibility != 0), (MPM, PROJECTIVE, COUPLED)),
    _ScenePart("incompressibility of sheets", _stiffened(lambda b: sheets_of(b.shape)), ()),
    _ScenePart("incompressibility of trusses", _stiffened(lambda b: bars_of(b.shape) is not None), (MPM, COUPLED)),
    _ScenePart("motors at attachments", _actuated(Motor), (SPRINGS, PROJECTIVE, COUPLED_SPRINGS)),
    _ScenePart("attachments", lambda s: bool(s.attachments), (SPRINGS, PROJECTIVE, COUPLED_SPRINGS)),
    _ScenePart("cavities", _actuated(Cavity), (PROJECTIVE,)),
    _ScenePart("fibres and pneumatic cells", _actuated(Fibre, PneumaticCell), (PROJECTIVE,)),
    _ScenePart("stresses that are not proportional to the control", _bent, (MPM, PROJECTIVE, COUPLED)),
    _ScenePart(
        "expansions and oscillations", _actuated(Expansion, Oscillation), (SPRINGS, PROJECTIVE, COUPLED_SPRINGS)
    ),
)


def _lacking(scene: Scene) -> dict[str, str]:
    """The first part of the scene that a solver does not support, by name of the solver; without other solvers."""
    found = [part for part in _PARTS if part.found(scene)]
    lacks = {solver: [part.name for part in found if solver not in part.takers] for solver in SOLVERS}
    return {solver: names[0] for solver, names in lacks.items() if names}


def lacking(scene: Scene, solver: str, decided: str | None = None) -> str | None:
    """The first kind of part of the scene, in the plural, that a solver does not support; None if there is none.

    Args:
        scene: The scene.
        solver: Name of the solver.
        decided: A kind of part that does not count, because the solver decides about it itself.
    """
    parts = (part for part in _PARTS if solver not in part.takers and part.name != decided)
    return next((part.name for part in parts if part.found(scene)), None)


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
