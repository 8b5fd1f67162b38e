"""A warning about bodies that sink into the masses on which they rest, under an integrator of two stages."""

import numpy as np

from warpbots.scene import Scene
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.implicit_integrators import LAST_STAGE
from warpbots.solvers.coupled.bound_points import BoundPoints
from warpbots.solvers.scene_parts import immovable

__all__ = ["sinking"]


def sinking(scene: Scene, bound: BoundPoints, bodies: Articulated) -> str | None:
    """A warning if bodies at rest sink into points of matter whose overlap no force removes; None if they do not.

    Bodies that cannot move, and bodies to which points are bound, do not.

    Impulses act in the last stage of a step, whose share of the step is g, and gravity acts in all stages. So a body
    that ends each step at rest has fallen with the velocity g G h during the rest of it, by g (1 - g) G h^2, with the
    acceleration G of gravity and the step h.

    Args:
        scene: The scene.
        bound: The points that are bound to bodies.
        bodies: Solver of the rigid bodies.
    """
    share = LAST_STAGE[bodies.used_integrator]
    shapes = np.array([body.shape is not None for body in scene.rigid])
    rests = shapes & ~immovable(scene) & ~np.isin(np.arange(len(shapes)), bound.of)
    if share == 1.0 or not np.any(scene.gravity) or not rests.any():
        return None
    return (
        f"rigid bodies that rest on masses sink into them under Articulated({bodies.used_integrator!r}), with the "
        f"velocity {share * (1.0 - share):.2f} G h for the acceleration G of gravity and solver steps h: use "
        f"Articulated('bdf1')"
    )
