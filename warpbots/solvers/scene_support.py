"""Checks that raise an error if a scene, or the number of worlds, is not supported; shared by all solvers."""

from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.actuation_laws import acts_as_stress
from warpbots.contact import signed_distance
from warpbots.materials import FLUIDS, LAWS
from warpbots.numerics import precision, real_numpy
from warpbots.scene import Material, Scene, SceneError, Servo, SoftBody, Torque, bars_of, sheets_of
from warpbots.scene.field_types import fitted
from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.motion_checks import moves
from warpbots.solvers.law_constants import refuse_constants
from warpbots.solvers.obstacle_poses import obstacle_poses
from warpbots.solvers.scene_parts import moving_constraints, moving_obstacles, remedy
from warpbots.user_warning import warn_user

__all__ = [
    "OVERFLOW",
    "check_ignored_laws",
    "refuse_actuators",
    "refuse_copies",
    "refuse_embedded",
    "refuse_far",
    "refuse_fluid",
    "refuse_materials",
    "refuse_flow",
    "refuse_moving",
    "refuse_rigid",
    "refuse_sheets",
    "refuse_states_without_gradient",
    "refuse_worlds",
    "warn_of_sunken",
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


_PER_EDGE, _MOST = 12, 0.5
"""Samples of an obstacle along each edge of its bounds, and the share of it that may be inside a body at the start."""


def refuse_embedded(scene: Scene) -> None:
    """Raise if most of an obstacle is inside soft bodies at the start, which cannot leave it.

    Obstacles that stick may be inside matter: they hold it. `warn_of_sunken` examines matter inside obstacles.

    Args:
        scene: The scene.

    Raises:
        SceneError: Such an obstacle exists; the message names it and the body, and gives the share and the place.
    """
    rotation, origin = (a[0] for a in obstacle_poses(scene, np.zeros(1)))
    for k, obstacle in enumerate(scene.obstacles):
        lower, upper = obstacle.shape.bounds
        if obstacle.condition == "sticky" or not np.isfinite([lower, upper]).all():
            continue
        axes = (a + (b - a) * (np.arange(_PER_EDGE) + 0.5) / _PER_EDGE for a, b in zip(lower, upper, strict=True))
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, scene.dim)
        points = points[signed_distance(obstacle.shape, points) < 0.0]
        points = points @ rotation[k, : scene.dim, : scene.dim].T + origin[k, : scene.dim]
        for body in (b for b in scene.soft if not sheets_of(b.shape) and bars_of(b.shape) is None):
            inside = signed_distance(body.shape, points) < 0.0
            if len(points) and inside.mean() > _MOST:
                raise SceneError(
                    f"Obstacle {obstacle.name!r}: {100.0 * inside.mean():.0f} % of it is inside SoftBody "
                    f"{body.name!r}, around {points[inside].mean(axis=0).round(4).tolist()} m; move the body or the "
                    f"obstacle apart, or use condition='sticky' to hold this matter"
                )


def warn_of_sunken(scene: Scene, body: np.ndarray, position: np.ndarray, spacing: float) -> None:
    """Warn of a soft body that starts deeper than a cell in an obstacle that stays, from which nothing moves it out.

    Rigid contact of the explicit solvers ends an approach and does not correct positions. Obstacles that stick hold the
    matter in them, and constraints the matter of their bodies.

    Args:
        scene: The scene.
        body: Index of the body of each point of matter, shape (n,).
        position: Positions of the matter at the start [m], shape (n, dim).
        spacing: Distance between neighbouring points of matter, or size of a cell [m].
    """
    held = {c.region for c in scene.constraints}
    free = np.array([not held & b.regions.keys() for b in scene.soft], dtype=bool)
    for obstacle in scene.obstacles:
        if obstacle.condition != "sticky" and not moves(obstacle, scene.actuators):
            depth = np.where(free[body], -signed_distance(obstacle.shape, position), 0.0)
            i = int(depth.argmax())
            if depth[i] > spacing:
                warn_user(
                    f"SoftBody {scene.soft[body[i]].name!r} starts {depth[i]:.3g} m deep in Obstacle "
                    f"{obstacle.name!r}, and contact does not push it out: move the body or the obstacle apart, or use "
                    "condition='sticky' to hold this matter"
                )
                return


def refuse_rigid(solver: str, scene: Scene) -> None:
    """Raise if a scene for a solver of soft bodies has rigid bodies, joints, contacts or motors at joints.

    Raises:
        SceneError: The scene has such parts; the message lists them.
    """
    motors = [a for a in scene.actuators if isinstance(a, Torque | Servo)]
    parts = [*scene.rigid, *scene.joints, *scene.laws, *motors]
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


def refuse_moving(solver: str, scene: Scene, obstacles: bool = True, constraints: bool = True) -> None:
    """Raise if obstacles or constraints of the scene move, for a solver in which they cannot.

    Args:
        solver: Name of the solver.
        scene: The scene.
        obstacles: Whether obstacles cannot move.
        constraints: Whether constraints cannot move.

    Raises:
        SceneError: One of them moves; the message names the first.
    """
    found = [("Obstacle", n) for n in moving_obstacles(scene) if obstacles]
    found += [("Constraint", n) for n in moving_constraints(scene) if constraints]
    if found:
        kind, name = found[0]
        raise SceneError(f"{kind} {name!r} moves, which {solver} cannot simulate: {remedy(scene, solver)}")


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
        _refuse_unknown_law(body)
        for material in body.materials:
            for field in ("yield_strain", "breaking_strain"):
                if getattr(material, field) is not None:
                    raise SceneError(
                        f"SoftBody {body.name!r}: {solver} has no {field}; "
                        f"{remedy(scene, solver, 'leave it out of the material')}"
                    )
    refuse_constants(scene)


def check_ignored_laws(solver: str, scene: Scene, instead: Callable[[SoftBody], str]) -> None:
    """Warn if the matter of a body does not follow its law; raise if it does not follow its incompressibility.

    All laws of solids agree at small strains; an added incompressibility stiffens matter at any strain.

    Args:
        solver: Name of the solver.
        scene: The scene.
        instead: Function that returns a text with the law that the matter of a body follows instead of the law of its
            material, or "" if the matter follows the law of its material.

    Raises:
        SceneError: A law is unknown, or the matter of a body does not follow its incompressibility; the message names
            the first such body.
    """
    for body in scene.soft:
        _refuse_unknown_law(body)
        followed = instead(body)
        if followed and body.material.incompressibility:
            raise SceneError(
                f"SoftBody {body.name!r}: {followed}, so incompressibility={body.material.incompressibility} has no "
                f"meaning for {solver}; {remedy(scene, solver, 'leave it out of the material')}"
            )
        if followed and body.material.law != Material.law:
            warn_user(
                f"SoftBody {body.name!r}: {followed}, instead of law={body.material.law!r}, under {solver}; at small "
                f"strains both have the same stiffness"
            )
    refuse_constants(scene)


def _refuse_unknown_law(body: SoftBody) -> None:
    """Raise if the law of a body is not registered."""
    if body.material.law not in LAWS:
        raise SceneError(f"SoftBody {body.name!r}: law must be one of {', '.join(LAWS)}, got {body.material.law!r}")


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
