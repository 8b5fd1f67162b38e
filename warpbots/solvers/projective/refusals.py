"""Refuses scenes that projective dynamics cannot simulate, with the part, its value and the remedy."""

import numpy as np

from warpbots.scene import (
    Cable,
    Cavity,
    Expansion,
    Fibre,
    Motor,
    Oscillation,
    PneumaticCell,
    Scene,
    SceneError,
    Servo,
    SoftBody,
    Torque,
    VelocityDrive,
    bars_of,
    sheets_of,
)
from warpbots.scene.motion_checks import moves
from warpbots.solvers.law_constants import check_laws, refuse_taken_names
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.projective.model import SKELETON, ProjectiveModel
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import check_ignored_laws, refuse_actuators, refuse_flow, refuse_materials

__all__ = ["refuse_held_bones", "refuse_idle", "refuse_shared", "refuse_unsupported"]

_ACTUATORS = (  # besides stresses
    Fibre, PneumaticCell, Cable, Cavity, Expansion, Oscillation, Motor, Torque, Servo, VelocityDrive,
)  # fmt: skip
_WITHOUT_ELEMENTS = (Cable, Cavity, Motor, Torque, Servo, VelocityDrive)


def refuse_unsupported(scene: Scene) -> None:
    """Raise if the scene has something that projective dynamics cannot simulate."""
    if scene.fluid is not None and not scene.soft:
        raise SceneError(
            f"Scene.fluid: it acts on soft bodies only, and this scene has none; "
            f"{remedy(scene, 'ProjectiveDynamics', 'leave it out')}"
        )
    if scene.dim != 3:
        raise SceneError(
            f"ProjectiveDynamics simulates bodies in space; this scene is 2D: {remedy(scene, 'ProjectiveDynamics')}"
        )
    refuse_materials("ProjectiveDynamics", scene)
    refuse_taken_names("ProjectiveDynamics", scene, ProjectiveModel, SKELETON)
    refuse_flow("ProjectiveDynamics", scene)
    check_ignored_laws("ProjectiveDynamics", scene, _law_of_thin)
    check_laws(scene, second=True)
    refuse_actuators("ProjectiveDynamics", scene, _ACTUATORS)


def _law_of_thin(body: SoftBody) -> str:
    """What sheets and bars of a body follow instead of the law of its material, in words; "" for a solid."""
    if bars_of(body.shape) is not None:
        return "bars of a Truss follow Hooke's law and have no volume"
    if sheets_of(body.shape):
        return "sheets are membranes in plane stress with a law of their own"
    return ""


def refuse_held_bones(scene: Scene, mesh: Mesh) -> None:
    """Raise if a constraint holds nodes that are bound to a bone."""
    for constraint in scene.constraints:
        held = mesh.bone[mesh.regions[constraint.region] & (mesh.bone >= 0)]
        if len(held):
            names = ", ".join(repr(scene.rigid[k].name) for k in np.unique(held))
            raise SceneError(
                f"Constraint {constraint.name!r}: its region {constraint.region!r} contains {len(held)} nodes that are "
                f"bound to the bones {names}; connect the bone to the world with a Joint (parent=None), or make the "
                f"region smaller"
            )


def refuse_shared(scene: Scene, mesh: Mesh) -> None:
    """Raise if a constraint that moves holds nodes that another constraint holds, too."""
    for constraint in (c for c in scene.constraints if moves(c, scene.actuators)):
        for other in (c for c in scene.constraints if c is not constraint):
            shared = mesh.regions[constraint.region] & mesh.regions[other.region]
            if shared.any():
                raise SceneError(
                    f"Constraint {constraint.name!r}: it moves, and {shared.sum()} nodes of its region "
                    f"{constraint.region!r} are also in the region of Constraint {other.name!r}; make the regions "
                    f"disjoint"
                )


def refuse_idle(scene: Scene, mesh: Mesh) -> None:
    """Raise if the region of an actuator has no solid elements; others do not need them."""
    for actuator in (a for a in scene.actuators if not isinstance(a, _WITHOUT_ELEMENTS)):
        inside = mesh.element_regions[actuator.region]
        if not inside[mesh.of(mesh.solid.name)].any():
            others = f"of {inside.sum()} triangles of sheets and bars of trusses" if inside.any() else "of any element"
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: region {actuator.region!r} contains the centre of no "
                f"element of a solid, {'but ' if inside.any() else 'nor '}{others}; actuators of ProjectiveDynamics "
                f"act on solids only, and bones replace them: move or enlarge the region, or use smaller cells"
            )
