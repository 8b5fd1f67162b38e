"""Checks that raise an error if a scene, or the number of worlds, is not supported; shared by all solvers."""

import numpy as np
import warp as wp

from warpbots.actuation_laws import acts_as_stress
from warpbots.materials import FLUIDS, LAWS
from warpbots.numerics import precision, real_numpy
from warpbots.scene import Scene, SceneError, Servo, Torque, sheets_of
from warpbots.scene.field_types import fitted
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.law_constants import refuse_constants
from warpbots.solvers.scene_parts import remedy
from warpbots.user_warning import warn_user

__all__ = [
    "OVERFLOW",
    "refuse_actuators",
    "refuse_copies",
    "refuse_far",
    "refuse_fluid",
    "refuse_materials",
    "refuse_flow",
    "refuse_rigid",
    "refuse_sheets",
    "refuse_states_without_gradient",
    "refuse_worlds",
]

OVERFLOW = "the loss or its weights overflow, or the motion diverges: simulate fewer steps, or halve dt"
"""Reason why a gradient through explicit steps may be infinite or NaN, with the remedy."""


_STRAIN = 0.01
"""Largest strain that rounding of positions may cause; a tenth of this strain causes a warning."""


def refuse_far(position: np.ndarray, spacing: float, step: float, gravity: float) -> None:
    """Raise if matter is so far from the origin that rounding of positions is too coarse; warn if it is coarse.

    Let ulp be the distance between neighbouring floating-point numbers at these positions. Rounding causes strains of
    ulp / spacing. Matter slower than ulp / (2 step) does not move at all; this speed must be below the speed after a
    fall of one `spacing`.

    Args:
        position: Positions of matter [m], shape (..., dim).
        spacing: Distance between neighbouring points of matter [m].
        step: Length of a solver step [s].
        gravity: Magnitude of the gravitational acceleration [m/s^2].

    Raises:
        ValueError: Rounding causes a strain above a hundredth, or keeps matter from falling.
    """
    far = float(np.abs(position).max(initial=0.0))
    ulp = float(np.spacing(real_numpy(far)))
    slow, falls = ulp / (2.0 * step), float(np.sqrt(2.0 * gravity * spacing))
    severity = max(ulp / spacing / _STRAIN, slow / falls if falls else 0.0)
    if severity < 0.1:
        return
    said = (
        f"matter is {far:.6g} m from the origin, where positions in {precision} are {ulp:.2g} m apart: with "
        f"{spacing:.2g} m between its points that is a strain of {ulp / spacing:.1g}, and matter slower than "
        f"{slow:.1g} m/s stands still (solver steps of {step:.2g} s); move the scene to the origin"
    )
    said += ", or set WARPBOTS_PRECISION=float64 before warpbots is imported" if precision == "float32" else ""
    if severity > 1.0:
        raise ValueError(said)
    warn_user(said)


def refuse_rigid(solver: str, scene: Scene) -> None:
    """Raise if a scene for a solver of soft bodies has rigid bodies, joints, contacts or motors at joints.

    Raises:
        SceneError: The scene has such parts; the message lists them.
    """
    motors = [a for a in scene.actuators if isinstance(a, Torque | Servo)]
    parts = [*scene.rigid, *scene.joints, *scene.contacts, *motors]
    if parts:
        listed = ", ".join(f"{type(p).__name__} {p.name!r}" for p in parts)
        raise SceneError(f"{solver} simulates soft bodies only; this scene has {listed}: {remedy(scene, solver)}")


def refuse_actuators(solver: str, scene: Scene, others: tuple[type, ...]) -> None:
    """Raise if an actuator is not an active stress and not of a class that the solver supports.

    Args:
        solver: Name of the solver.
        scene: The scene.
        others: Classes of actuators that the solver supports in addition to active stresses.

    Raises:
        SceneError: There is such an actuator; the message names the first.
    """
    for actuator in scene.actuators:
        if not (acts_as_stress(actuator) or isinstance(actuator, others)):
            taken = ", ".join(["Pressure", "Muscle", *(kind.__name__ for kind in others)])
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: {solver} has no such actuator; use one of {taken}, or "
                f"register its law with warpbots.actuation_laws.stress_law"
            )


def refuse_sheets(solver: str, scene: Scene) -> None:
    """Raise if a scene for a solver without sheets has a soft body whose shape is or contains a sheet.

    Raises:
        SceneError: There is such a body; the message names the first.
    """
    for body in scene.soft:
        if sheets_of(body.shape):
            raise SceneError(f"{solver} simulates solids; SoftBody {body.name!r} is a Sheet: {remedy(scene, solver)}")


def refuse_fluid(solver: str, scene: Scene) -> None:
    """Raise if bodies of the scene are surrounded by a fluid (`Scene.fluid`), for a solver that does not support this.

    Raises:
        SceneError: The scene has a fluid.
    """
    if scene.fluid is not None:
        raise SceneError(f"Scene.fluid: {solver} has no fluid around bodies; {remedy(scene, solver, 'leave it out')}")


def refuse_materials(solver: str, scene: Scene) -> None:
    """Raise if a scene for a solver of elastic continua has a material that it does not know, or that yields or breaks.

    Args:
        solver: Name of the solver.
        scene: The scene.

    Raises:
        SceneError: A material has an unknown law, a yield or breaking strain, or a constant that its law does not have
            or not allow; or it lacks one.
    """
    for body in scene.soft:
        if body.material.law not in LAWS:
            raise SceneError(f"SoftBody {body.name!r}: law must be one of {', '.join(LAWS)}, got {body.material.law!r}")
        for material in body.materials:
            for field in ("yield_strain", "breaking_strain"):
                if getattr(material, field) is not None:
                    raise SceneError(
                        f"SoftBody {body.name!r}: {solver} has no {field}; "
                        f"{remedy(scene, solver, 'leave it out of the material')}"
                    )
    refuse_constants(scene)


def refuse_flow(solver: str, scene: Scene) -> None:
    """Raise if a scene for a solver of elastic matter has a material that is fluid, plastic, or has fibres or branches.

    Raises:
        SceneError: There is such a body; the message names the first.
    """
    for body in scene.soft:
        if body.material.law in FLUIDS:
            raise SceneError(
                f"SoftBody {body.name!r}: {solver} has no fluids, such as law={body.material.law!r}; "
                f"{remedy(scene, solver, 'take another law')}"
            )
        if body.material.plasticity is not None:
            raise SceneError(
                f"SoftBody {body.name!r}: {solver} has no plasticity such as "
                f"{type(body.material.plasticity).__name__}; {remedy(scene, solver, 'leave it out of the material')}"
            )
        for field in ("fibres", "branches"):
            if any(getattr(material, field) for material in body.materials):
                raise SceneError(
                    f"SoftBody {body.name!r}: {solver} has no Material.{field}; "
                    f"{remedy(scene, solver, 'leave them out of the material')}"
                )


def refuse_worlds(solver: str, worlds: int) -> None:
    """Raise if a solver is asked for fewer than one world.

    Raises:
        ValueError: `worlds` is not an integer, or below 1.
    """
    if fitted(worlds, int, f"{solver}: worlds") < 1:
        raise ValueError(f"{solver}: worlds must be at least 1, got {worlds}")


def refuse_copies(solver: str, worlds: int, size: float) -> None:
    """Raise if the arrays of all worlds together do not fit into memory.

    Args:
        solver: Name of the solver.
        worlds: Number of worlds.
        size: Memory per world [bytes].

    Raises:
        SceneError: The worlds do not fit.
    """
    refuse_excess(worlds, size, f"{solver}: worlds", "use fewer")


def refuse_states_without_gradient(solver: str, **states: list[wp.array]) -> None:
    """Raise if a step is recorded on a tape and a state has no gradient arrays; the gradient would silently be zero.

    Args:
        solver: Name of the solver.
        states: Arrays of each state by the name of the argument.

    Raises:
        RuntimeError: An array has no gradient.
    """
    for name, arrays in states.items():
        if any(a.grad is None for a in arrays):
            raise RuntimeError(
                f"{solver}.step: {name} has arrays without gradients, but a gradient was recorded through it; make it "
                f"with state(model, requires_grad=True)"
            )
