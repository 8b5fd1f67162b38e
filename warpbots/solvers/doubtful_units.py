"""Warnings about numbers that are probably not in m, Pa and degrees, and about gravity that lifts."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from warpbots.actuators import Fibre, Muscle, PneumaticCell, Pressure
from warpbots.scene import DruckerPrager, HalfSpace, Points, Scene, Sheet, SoftBody, Truss, parts_of
from warpbots.user_warning import warn_user

__all__ = ["warn_of_units"]

_MOST = 10.0
"""Largest ratio of a stress to the modulus of a solid that it may deform as intended [1]."""

_LONG = 100.0
"""Length of a rigid body from which on it is probably in millimetres [m]."""

_SMOOTH = math.pi / 2.0
"""Friction angle up to which it is probably in radians; all grains have larger ones [degrees]."""

_ALONG = 0.99
"""Cosine of the angle between gravity and the normal of a ground from which on gravity lifts bodies off it [1]."""


def warn_of_units(scene: Scene) -> None:
    """Warn of the first number that is probably in another unit or has the other sign.

    These are a soft body far too soft for its weight or an actuator, sand without friction, a rigid body of 100 m, and
    gravity that lifts bodies off a ground.
    """
    kinds = _too_heavy, _too_strong, _too_smooth, _too_long, _rising
    said = next(itertools.chain.from_iterable(kind(scene) for kind in kinds), None)
    if said is not None:
        warn_user(said)


def _too_heavy(scene: Scene) -> Iterator[str]:
    """Soft bodies whose Young's modulus is less than a tenth of the stress of their weight.

    Fluids, sand and clay may collapse; fibres, cells and a fluid around bodies bear a part of the weight.
    """
    g = np.abs(scene.gravity)
    if not g.any() or scene.fluid is not None or any(isinstance(a, Fibre | PneumaticCell) for a in scene.actuators):
        return
    for body in scene.soft:
        if not _is_plain(body):
            continue
        lower, upper = body.shape.bounds
        pressure = min(m.density for m in body.materials) * float(g @ (np.array(upper) - np.array(lower)))
        modulus = max(m.youngs_modulus for m in body.materials)
        if pressure > _MOST * modulus:
            yield (
                f"SoftBody {body.name!r}: a Young's modulus of {modulus:.3g} Pa does not bear its weight, whose "
                f"stress is density * gravity * height = {pressure:.3g} Pa: give Pa (1 kPa is 1e3), "
                f"kg/m^{scene.dim} and m"
            )


def _too_strong(scene: Scene) -> Iterator[str]:
    """Muscles and pressures above ten times the stiffness of the matter that they drive."""
    bodies = {region: body for body in scene.soft for region in (body.name, *body.regions)}
    for actuator in scene.actuators:
        body = bodies.get(actuator.region) if isinstance(actuator, Muscle | Pressure) else None
        if body is None or not _is_plain(body):
            continue
        muscle = isinstance(actuator, Muscle)
        stress = actuator.max_stress if muscle else actuator.max_pressure
        stiffest = max(body.materials, key=lambda m: m.youngs_modulus)
        E, nu = stiffest.youngs_modulus, stiffest.poissons_ratio
        modulus, what = (E, "Young's modulus") if muscle else (E / (3.0 * (1.0 - 2.0 * nu)), "bulk modulus")
        if stress > _MOST * modulus:
            yield (
                f"{type(actuator).__name__} {actuator.name!r}: {'max_stress' if muscle else 'max_pressure'} of "
                f"{stress:.3g} Pa is {stress / modulus:.3g} times the {what} of SoftBody {body.name!r}, {modulus:.3g} "
                f"Pa, and deforms it beyond all measure: give both in Pa (1 kPa is 1e3)"
            )


def _too_smooth(scene: Scene) -> Iterator[str]:
    """Sand whose friction angle is at most a right angle in radians."""
    for body in scene.soft:
        for material in body.materials:
            sand = material.plasticity
            if isinstance(sand, DruckerPrager) and sand.friction_angle <= _SMOOTH:
                yield (
                    f"SoftBody {body.name!r}: DruckerPrager(friction_angle={sand.friction_angle:.3g}) is in degrees, "
                    f"and such grains flow like a fluid: give degrees, such as "
                    f"{math.degrees(sand.friction_angle):.3g} for {sand.friction_angle:.3g} radians"
                )


def _too_long(scene: Scene) -> Iterator[str]:
    """Rigid bodies longer than `_LONG`, apart from those that are fixed to the world, such as a ground."""
    grounds = {joint.child for joint in scene.joints if joint.kind == "fixed" and joint.parent is None}
    for body in scene.rigid:
        lower, upper = body.bounds
        length = float(np.max(upper - lower))
        if length > _LONG and body.name not in grounds:
            yield (
                f"RigidBody {body.name!r} is {length:.3g} m long: give lengths in m (1 mm is 1e-3), and densities in "
                f"kg/m^3"
            )


def _is_plain(body: SoftBody) -> bool:
    """Whether a body is an elastic solid whose stiffness is that of its Young's modulus alone."""
    others = any(
        m.law == "weakly_compressible" or m.plasticity is not None or m.fibres or m.branches for m in body.materials
    )
    return not others and not any(isinstance(part, Points | Sheet | Truss) for part in parts_of(body.shape))


def _rising(scene: Scene) -> Iterator[str]:
    """Grounds away from which gravity points, in a scene where no half-space holds bodies back."""
    g = np.array(scene.gravity)
    grounds = [o for o in scene.obstacles if isinstance(o.shape, HalfSpace)]
    fall = [float(g @ np.array(o.shape.normal)) for o in grounds]
    if min(fall, default=0.0) < 0.0:
        return
    for ground, speed_up in zip(grounds, fall, strict=True):
        if speed_up > _ALONG * np.linalg.norm(g):
            yield (
                f"Scene {scene.name!r}: gravity {tuple(map(float, g))} points away from Obstacle {ground.name!r}, "
                f"whose outward normal is {tuple(map(float, ground.shape.normal))}, so that everything rises from it: "
                f"give gravity the direction in which bodies fall, such as (0, 0, -9.81)"
            )
