"""A warning about soft bodies that hit an obstacle so fast that their lattice folds, which no spring undoes.

Masses of one body pass through one another without `MassSpring.collision`. Layers that do so in an impact find a second
shape without stress, in which the lattice is folded, and keep it. The table is the height of a cube that came to rest
after an impact on a rigid floor, relative to its height before, for five and eight cells across (E = 1e5 Pa, damping of
0.1 ms). Its speed v is relative to the speed of sound c = sqrt(E / rho).

    v / c            0.4            0.5            0.6            0.8            1
    collision 0      1.00 / 1.00    1.00 / 0.75    0.60 / 0.62    0.60
    collision 1                     1.00           0.64           0.66
    collision 4                                    0.99 / 1.00    0.99 / 0.82    0.73
    collision 16                                                  0.99           1.01 (1.2 c)

Shorter steps change nothing: at v = c without contact of masses, the cube folds in steps of 0.8 and of 0.1 ms.
"""

import math

import numpy as np

from warpbots.contact import normal
from warpbots.scene import Scene, SoftBody, bars_of
from warpbots.solvers.landing import landing
from warpbots.user_warning import warn_user

__all__ = ["warn_of_fast_impacts"]

_SAFE = ((16.0, math.inf), (4.0, 0.7), (0.0, 0.4))
"""Stiffness of contact between masses, and largest speed of an impact that lattices survive with it [c]."""


def warn_of_fast_impacts(scene: Scene, spacing: float, contact_stiffness: float, collision: float) -> None:
    """Warn of a soft body that flies or falls on an obstacle faster than its lattice can take.

    Only bodies are examined that no constraint or attachment holds, and only surfaces that are not softer than a cell
    of the body.

    Args:
        scene: Scene of soft bodies.
        spacing: Distance between neighbouring masses [m].
        contact_stiffness: Pressure of obstacles per depth [Pa/m], or 0 for rigid surfaces.
        collision: Stiffness of contact between masses [1].
    """
    safe = next(speed for stiffness, speed in _SAFE if collision >= stiffness)
    if safe == math.inf or not scene.obstacles:
        return
    held = {c.region for c in scene.constraints}
    joined = {name for a in scene.attachments for name in (a.first, a.second)}
    for body in scene.soft:
        softest = min(body.materials, key=lambda m: m.youngs_modulus / m.density)
        soft_surface = 0.0 < contact_stiffness * spacing < softest.youngs_modulus
        if bars_of(body.shape) or body.name in joined or held & body.regions.keys() or soft_surface:
            continue
        sound = math.sqrt(softest.youngs_modulus / softest.density)
        speed, name = _impact(scene, body, spacing)
        if speed > safe * sound:
            needed = min(stiffness for stiffness, limit in _SAFE if speed <= limit * sound)
            warn_user(
                f"SoftBody {body.name!r} hits Obstacle {name!r} at {speed:.3g} m/s, more than {safe:g} of the speed "
                f"of sound in it ({sound:.3g} m/s): its lattice may fold there and stay so, in steps of any length; "
                f"use MassSpring(collision={needed:g}), a slower body, or a stiffer or lighter material"
            )
            return


def _impact(scene: Scene, body: SoftBody, step: float) -> tuple[float, str]:
    """Speed towards the surface of an obstacle at which a body reaches it [m/s], and the name of the obstacle.

    Its middle decides where it hits, and its bounds decide when. It flies straight on, or falls; the faster of the two
    impacts counts, and without one the speed is 0.
    """
    x, v, g = (
        np.mean(body.shape.bounds, axis=0),
        np.array(body.velocity or np.zeros(scene.dim)),
        np.array(scene.gravity),
    )
    half, fastest = np.ptp(body.shape.bounds, axis=0) / 2.0, (0.0, "")
    for way in (v, g):
        if not np.any(way):
            continue
        along = way / np.linalg.norm(way)
        length, obstacle = landing(scene, x, scene.obstacles, along)
        if obstacle is not None:
            towards = abs(float(normal(obstacle.shape, (x + length * along)[None], step)[0] @ along))
            length = max(0.0, length - float(half @ np.abs(along)))
            speed = towards * math.sqrt(max(0.0, (v @ along) ** 2 + 2.0 * float(g @ along) * length))
            fastest = max(fastest, (speed, obstacle.name))
    return fastest
