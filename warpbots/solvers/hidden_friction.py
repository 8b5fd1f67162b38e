"""Warnings about coefficients of friction without effect: a law replaces them, or a solver does not use them."""

from warpbots.scene import Obstacle, RigidBody, Scene, SoftBody
from warpbots.user_warning import warn_user

__all__ = ["hidden_friction", "warn_of_unused_friction"]


def hidden_friction(scene: Scene) -> str | None:
    """A warning that names an obstacle or rigid body whose friction has no effect, and the law that hides it.

    The law has neither friction nor viscosity, which are 0 if they are left out, and the obstacle or body has another
    coefficient than 0. A default counts only if no law of the scene has friction, because a user who gives it to one
    law knows of it. The default of a rigid body does not count on an obstacle, which decides alone, nor does the
    default of an obstacle without the condition ``"friction"``. Coefficients that soft bodies use, which touch without
    a law, are not examined.

    Args:
        scene: The scene.
    """
    soft, anywhere = {body.name for body in scene.soft}, any(law.friction or law.viscosity for law in scene.laws)
    for law in scene.laws:
        named = {law.points, law.solid}
        if law.friction or law.viscosity or soft - named:
            continue
        obstacles = [o for o in scene.obstacles if o.name in named]
        bodies = [b for b in scene.rigid if {b.name, b.surface} & named]
        given = [part for part in (*obstacles, *bodies) if part.friction not in (0.0, type(part).friction)]
        usual = [] if anywhere else obstacles or bodies
        if given or (usual and all(map(_rubs, usual))):
            return _said((*given, *usual)[0], law.name)
    return None


def warn_of_unused_friction(scene: Scene, solver: str) -> None:
    """Warn of a soft body whose friction is not the default, for a solver that uses the friction of no body.

    Args:
        scene: The scene.
        solver: Name of the solver.
    """
    for body in scene.soft:
        if body.friction != SoftBody.friction:
            warn_user(
                f"SoftBody {body.name!r} has friction {body.friction:g}, which {solver} does not use: contact with an "
                f"obstacle has the friction of the obstacle, and friction between soft bodies needs ProjectiveDynamics"
            )
            return


def _rubs(part: Obstacle | RigidBody) -> bool:
    return part.friction != 0.0 and getattr(part, "condition", "friction") == "friction"


def _said(part: Obstacle | RigidBody, law: str) -> str:
    kind = type(part).__name__
    default = " by default" * (part.friction == type(part).friction)
    return (
        f"{kind} {part.name!r} has friction {part.friction:g}{default}, but Contact {law!r} replaces it by its own, "
        f"which is 0: give the Contact friction={part.friction:g} and viscosity=1e7, or the {kind} friction=0"
    )
