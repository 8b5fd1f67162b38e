"""A bottle in a cage of 14 handles, and the same mesh after some of them have moved."""

import numpy as np
import torch
from canvas import Camera, Drawing

from warpbots.design import box_cage

SIDES, RINGS = 18, 13


def bottle() -> tuple[np.ndarray, np.ndarray]:
    """Vertices (RINGS * SIDES, 3) and quads of a surface of revolution of height 2."""
    z = np.linspace(0, 2, RINGS)
    radius = 0.29 + 0.21 * np.cos(np.pi * np.clip((z - 0.5) / 1.1, 0, 1))
    angle = 2 * np.pi * np.arange(SIDES) / SIDES
    rings = np.stack([radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle), z[:, None] + 0 * angle], -1)
    k = np.arange(RINGS * SIDES).reshape(RINGS, SIDES)
    right = np.roll(k, -1, axis=1)
    return rings.reshape(-1, 3), np.stack([k[:-1], right[:-1], right[1:], k[1:]], -1).reshape(-1, 4)


def draw() -> Drawing:
    """The cage at rest and moved."""
    d = Drawing(
        "A cage and its handles",
        "Left: a mesh of 234 vertices in a cage of 14 handles. Right: handles at the top were moved apart and one on "
        "the side was pulled out; every vertex of the mesh follows with its mean value coordinates.",
        424,
    )
    vertices, quads = bottle()
    cage = box_cage((-0.56, -0.56, -0.02), (0.56, 0.56, 2.02))
    weights = cage.weights(torch.as_tensor(vertices)).numpy()
    rest = np.asarray(cage.handles)
    moved = rest.copy()
    top = rest[:, 2] > 2
    moved[top, :2] *= 1.75
    moved[top, 2] += 0.1
    side = int(np.argmax(rest[:, 0] - np.abs(rest[:, 2] - 1)))
    moved[side, 0] += 0.75
    for origin, handles in (((170, 352), rest), ((490, 352), moved)):
        camera = Camera(origin, 132, -62, 14)
        x = weights @ handles
        normal = np.cross(x[quads[:, 1]] - x[quads[:, 0]], x[quads[:, 3]] - x[quads[:, 0]]) @ camera.toward
        visible = quads[normal > 0]
        faces = np.asarray(cage.faces)
        pairs = np.unique(np.sort(faces[:, [(0, 1), (1, 2), (2, 0)]].reshape(-1, 2), 1), axis=0)
        d.segments(camera(handles[pairs]), "faint", 1.5)
        for quad in visible[np.argsort(camera.depth(x[visible].mean(1)))]:
            d.line(camera(x[quad]), "blue", 0.8, fill="sky", closed=True)
        for k, (handle, start) in enumerate(zip(handles, rest, strict=True)):
            changed = np.linalg.norm(handle - start) > 1e-9
            if k == side and changed:
                d.arrow(camera(start), camera(handle - (0.06, 0, 0)), "orange", 3)
            d.circle(camera(handle), 9, "orange" if changed else "paper", "orange", 2.5)
    d.text((170, 412), "14 handles, 234 vertices")
    d.text((490, 412), "handles move, the mesh follows")
    return d
