"""Refuses scenes in which bodies and obstacles start inside one another."""

import numpy as np

from warpbots.contact import sampled_surface, signed_distance
from warpbots.scene import Scene, SceneError, parts_of, unnamed_pairs
from warpbots.scene.motion_checks import moves
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.contact.bone_surface import BoneSurfaces, distance_to_body, immovable
from warpbots.solvers.projective.mesh import Mesh

__all__ = ["SAMPLES", "refuse_overlap", "refuse_swallowed"]

SAMPLES = 64
"""Number of samples along the longest edge of an obstacle without a closed form."""

_SUNK = 1e-3
"""Depth at which a node may start in an obstacle [mean edges]."""


def refuse_overlap(scene: Scene, mesh: Mesh, surfaces: BoneSurfaces, components: Components) -> None:
    """Raise if a soft body, or the surface of a bone, starts inside an obstacle, unless both stay or never touch."""
    slack, bone = np.split(_SUNK * components.edge, [len(mesh)]), surfaces.bone[surfaces.vertices]
    names = [scene.bodies[k].name for k in mesh.body]
    nowhere = np.zeros((len(mesh), len(scene.obstacles)), dtype=bool)
    soft = "nodes of SoftBody", names, mesh.position, slack[0], nowhere
    bare = (
        "surface points of RigidBody",
        [scene.rigid[k].name for k in bone],
        *(a[surfaces.vertices] for a in (surfaces.position, slack[1], _may_overlap(scene)[surfaces.bone])),
    )
    for k, obstacle in enumerate(scene.obstacles):
        for what, names, position, allowed, may in (soft, bare):
            depth = -signed_distance(obstacle.shape, position) if len(position) else np.zeros(0)
            inside = (depth > allowed) & ~may[:, k]
            if inside.any():
                i = int((depth * inside).argmax())
                raise SceneError(
                    f"Obstacle {obstacle.name!r}: {inside.sum()} {what} {names[i]!r} start inside it, the deepest "
                    f"{depth[i]:.4g} m; move the body or the obstacle apart"
                )


def _may_overlap(scene: Scene) -> np.ndarray:
    """Which rigid bodies may overlap with which obstacles: both stay in their places, or they never touch.

    Shape (rigid bodies, obstacles), bool.
    """
    still = np.array([not moves(o, scene.actuators) for o in scene.obstacles], dtype=bool)
    return np.outer(immovable(scene), still) | unnamed_pairs(scene)[:, len(scene.rigid) :]


def refuse_swallowed(scene: Scene, surfaces: BoneSurfaces, cell: float) -> None:
    """Raise if an obstacle, or a solid of a union, starts inside a body, even if no node is inside the obstacle.

    An obstacle and a body that both stay in their places, or that never touch, may overlap.
    """
    may = _may_overlap(scene)
    for number, obstacle in enumerate(scene.obstacles):
        for part in parts_of(obstacle.shape):
            lower, upper = part.bounds
            if not np.isfinite([lower, upper]).all():
                continue
            step = max(float((upper - lower).min()) / 8.0, float((upper - lower).max()) / SAMPLES)
            skin, _ = sampled_surface(part, lower - step, upper + step, step)
            if not len(skin):
                raise SceneError(
                    f"Obstacle {obstacle.name!r}: it is too thin for samples {step:.3g} m apart, {SAMPLES} along its "
                    f"longest edge of {(upper - lower).max():.3g} m; make it thicker than "
                    f"{2.0 * step:.3g} m, away from the bodies, or cut it into a Union of smaller parts"
                )
            for body in (*scene.soft, *(scene.rigid[k] for k in surfaces.bones if not may[k, number])):
                depth = -distance_to_body(body, skin)
                if depth.max(initial=0.0) > 0.1 * cell:
                    raise SceneError(
                        f"Obstacle {obstacle.name!r}: it starts inside {type(body).__name__} {body.name!r}, up to "
                        f"{depth.max():.4g} m below its surface; move the body or the obstacle apart"
                    )
