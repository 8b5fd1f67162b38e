"""Velocities of surfaces that move like a conveyor belt, in the schema of PhysX for rigid bodies.

USD and Newton have no schema for these velocities. Velocities in world axes are converted to axes of the collider;
angular velocities are not read, and are reported.
"""

from pxr import Usd, UsdPhysics

from warpbots.scene import PrescribedMotion
from warpbots.usd.stage.applied_schemas import SURFACE_VELOCITY_API
from warpbots.usd.stage.attributes import apply, authored, get, put, schemas, value_of
from warpbots.usd.stage.codecs import CODECS, Conversion
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["make_kinematic", "read_surface_velocity", "write_surface_velocity"]

_VELOCITY = rows("Obstacle.surface_velocity")[0]


def read_surface_velocity(
    prim: Usd.Prim, frame: StageUnits, motion: PrescribedMotion | None
) -> tuple[float, ...] | None:
    """Velocity of the surface of the collider `prim` in its axes [m/s], or None.

    Args:
        prim: The collider, at or below a kinematic body.
        frame: Units and axes of the stage.
        motion: The motion of the collider.

    Raises:
        SceneError: The velocity is given in world axes, but the collider turns.
    """
    body = _body_above(prim)
    if body is None or not authored(body, _VELOCITY.name):
        return None
    raw = value_of(body, _VELOCITY.name)
    if not get(body, "surface velocity enabled", frame):
        return None
    if get(body, "surface velocity in axes of the prim", frame):
        return get(body, "Obstacle.surface_velocity", frame)
    if motion is not None and motion.rotations is not None:
        raise LocatedError(
            body.GetPath(),
            f"its surface velocity is in world axes, but the body turns; give the velocity in axes of the body "
            f"({rows('surface velocity in axes of the prim')[0].name} = true)",
        )
    in_world = Conversion(frame.factor, lambda: frame.to_scene, frame.lift, frame.drop)
    return CODECS[_VELOCITY.kind].decode(raw, _VELOCITY, in_world)


def write_surface_velocity(prim: Usd.Prim, velocity: tuple[float, ...] | None, frame: StageUnits) -> None:
    """Author the velocity of the surface of an obstacle in its axes [m/s]; None removes it."""
    for sets, value in (
        ("Obstacle.surface_velocity", velocity),
        ("surface velocity enabled", velocity and True),
        ("surface velocity in axes of the prim", velocity and True),
    ):
        put(prim, sets, value, frame)
    if velocity is not None:
        apply(prim, SURFACE_VELOCITY_API)
    elif SURFACE_VELOCITY_API in schemas(prim):
        prim.RemoveAppliedSchema(SURFACE_VELOCITY_API)


def make_kinematic(prim: Usd.Prim, moves: bool) -> None:
    """Mark `prim` as a rigid body that moves as prescribed, or remove this mark."""
    if moves:
        UsdPhysics.RigidBodyAPI.Apply(prim).CreateKinematicEnabledAttr(True)
    elif prim.HasAPI(UsdPhysics.RigidBodyAPI):
        prim.RemoveProperty("physics:kinematicEnabled")
        prim.RemoveAPI(UsdPhysics.RigidBodyAPI)


def _body_above(prim: Usd.Prim) -> Usd.Prim | None:
    """The rigid body at or above `prim`, or None."""
    while prim and not prim.IsPseudoRoot():
        if "PhysicsRigidBodyAPI" in schemas(prim):
            return prim
        prim = prim.GetParent()
    return None
