"""The skins of soft bodies as k3d meshes, and the particles that no skin covers."""

from typing import TYPE_CHECKING

import numpy as np

from warpbots.view.motion import Motion
from warpbots.view.palette import packed
from warpbots.view.upright_view import filling, upright

if TYPE_CHECKING:
    import k3d

__all__ = ["bare_particles", "by_frame", "skin_meshes"]


def by_frame(values: list[np.ndarray]) -> dict[str, np.ndarray] | np.ndarray:
    """A k3d time series of arrays, one for each frame; a single array if the arrays of all frames are equal."""
    if all(np.array_equal(value, values[0]) for value in values[1:]):
        return values[0]
    return {str(k): value for k, value in enumerate(values)}


def bare_particles(motion: Motion) -> np.ndarray:
    """Whether each particle is bare at each moment; a bare particle is not covered by an intact skin.

    Particles of bodies without a skin are always bare. If a 2D body tears at any moment, its particles are bare at all
    moments.

    Returns:
        An array of shape (n_frames, n_particles), bool.
    """
    bare = np.ones(motion.position.shape[:2], dtype=bool)
    for skin in motion.skins:
        frames = [skin.at(x) for x in motion.position]
        if motion.scene.dim == 3 or all(intact.all() for _, intact, _ in frames):
            bare[:, skin.members] = [seen for *_, seen in frames]
    return bare


def skin_meshes(motion: Motion) -> "list[k3d.objects.Mesh]":
    """The skins of all bodies; in 2D only of bodies that do not tear."""
    import k3d

    made = []
    for skin in motion.skins:
        body, frames = motion.scene.bodies[skin.body], [skin.at(x) for x in motion.position]
        vertices, owner = [x for x, *_ in frames], skin.owner
        if motion.scene.dim == 3:
            none = np.zeros((1, 3), dtype=int)  # k3d takes no empty list
            faces = [skin.faces[intact] if intact.any() else none for _, intact, _ in frames]
        elif all(intact.all() for _, intact, _ in frames):
            vertices = [np.concatenate([v, x[skin.members]]) for v, x in zip(vertices, motion.position, strict=True)]
            owner, faces = np.append(owner, skin.members), [filling(skin, body.shape)] * len(frames)
        else:
            continue
        colors = [packed(motion.colors(k)[owner]) for k in range(len(motion))]
        color = int(packed(np.array([motion.scene.colors[skin.body]]))[0])
        made.append(k3d.mesh(
            {str(k): upright(x) for k, x in enumerate(vertices)}, by_frame([f.astype(np.uint32) for f in faces]),
            colors=by_frame(colors), side="front" if motion.scene.dim == 3 else "double",
            flat_shading=motion.scene.dim == 2, roughness=1.0, emissive=color, emissive_intensity=0.2, name=body.name,
        ))  # fmt: skip
    return made
